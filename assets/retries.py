"""Retries by kind of failure: what may pass when one waits is tried again, and nothing else is."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from warehouse.errors import UnreachableError


@contextmanager
def retried(context: dg.AssetExecutionContext, retries: int, first_wait_seconds: float) -> Iterator[None]:
    """Have a step run again, a while later, if a source cannot be reached in it.

    Args:
        context: of the step.
        retries: how often it may be run again.
        first_wait_seconds: see `seconds_before_retry`.
    """
    try:
        yield
    except UnreachableError as error:
        if retries <= 0:
            raise
        wait = seconds_before_retry(context.retry_number, first_wait_seconds)
        raise dg.RetryRequested(max_retries=retries, seconds_to_wait=wait) from error


def seconds_before_retry(number: int, first_wait_seconds: float) -> float:
    """How long to wait before retry `number`, from 0: twice as long each time, and up to twice that by chance."""
    return float(first_wait_seconds * 2**number) * random.uniform(1, 2)  # noqa: S311
