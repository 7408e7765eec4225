"""One message for each incident when it begins and one when it is over, to the webhook that the environment names."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any

import requests
from filelock import FileLock, Timeout

from pipelines.addresses import require_safe
from pipelines.deadlines import within
from pipelines.health import Health, Incident
from pipelines.pages import visible
from warehouse import files
from warehouse.errors import KernelmartError
from warehouse.home import Home, read_json

log = logging.getLogger("kernelmart")

_TIMEOUT_SECONDS = (5, 15)
_LONGEST_TEXT = 1_000
# Chat services read commands in angle brackets, and a file's name is upstream's to choose.
_HARMLESS = str.maketrans({"<": "‹", ">": "›"})


def tell(home: Home, now: datetime | None = None, health: Health | None = None) -> list[str]:
    """Tell what began and what is over since the last time; the keys of the incidents that there are.

    What cannot be told is told the next time. Without `KERNELMART_ALERT_URL` nothing is sent and nothing remembered.

    Args:
        home: the warehouse.
        now: the time, in UTC.
        health: of the home, where it is known.
    """
    health = health or Health.of(home)
    current = {incident.key: incident for incident in health.incidents(now or datetime.now(UTC))}
    if url := os.environ.get("KERNELMART_ALERT_URL"):
        try:
            with _alone(home):
                _tell_all(home, url, health, current)
        except OSError as error:
            why = error.strerror or type(error).__name__
            log.warning("%s: %s; what was told is told again", home.root / "incidents.json", why)
    return sorted(current)


@contextmanager
def _alone(home: Home) -> Iterator[None]:
    """An ingest and a sensor may both have seen something, and it is told once; without room it is told anyway."""
    lock = FileLock(home.root / "incidents.lock", timeout=60)
    try:
        lock.acquire()
    except (Timeout, OSError):
        yield
        return
    try:
        yield
    finally:
        lock.release()


def _tell_all(home: Home, url: str, health: Health, current: Mapping[str, Incident]) -> None:
    """Send what is new and what is over, and remember what was told."""
    path = home.root / "incidents.json"
    known = read_json(path)
    told: dict[str, Any] = known if isinstance(known, dict) else {}
    left = dict(told)
    for key, incident in current.items():
        if key not in told and _send(url, _begun(incident, health)):
            left[key] = incident.as_record()
    for key in sorted(told.keys() - current.keys()):
        if _send(url, _over(key, told[key], health)):
            del left[key]
    if left != told:
        files.write_json(path, left)


def _begun(incident: Incident, health: Health) -> dict[str, str]:
    stated = incident.as_record()
    text = f"{stated['what']}, since {stated['since']}. Served: {health.served()}. Try: {incident.command}"
    return {**stated, "what": _plain(incident.what), "text": _plain(f"kernelmart: {text}"), "state": "open",
            "served": health.served()}  # fmt: skip


def _over(key: str, told: Any, health: Health) -> dict[str, str]:
    known = told if isinstance(told, dict) else {}
    what, since = str(known.get("what", key)), str(known.get("since", "an unknown time"))
    text = f"kernelmart: recovered: {what}, since {since}. Served: {health.served()}"
    return {"incident": key, "what": _plain(what), "since": since, "text": _plain(text), "state": "recovered",
            "served": health.served()}  # fmt: skip


def _plain(text: str) -> str:
    return visible(text, limit=_LONGEST_TEXT).translate(_HARMLESS)


def _send(url: str, message: Mapping[str, str]) -> bool:
    """Whether a message was taken. The address is a secret: no line has it."""
    try:
        require_safe(url, "the alerts' webhook")
        with requests.Session() as session:
            # Any authentication of the session's own keeps `requests` from looking into .netrc; this one adds nothing.
            session.auth = lambda request: request
            post = partial(
                session.post, url, json=dict(message), timeout=_TIMEOUT_SECONDS, allow_redirects=False, stream=True
            )
            answer = within(sum(_TIMEOUT_SECONDS), post)
            answer.close()
        if 200 <= answer.status_code < 300:
            return True
        why = f"it answered {answer.status_code}"
    except KernelmartError as error:
        why = str(error)
    except (requests.RequestException, TimeoutError, ValueError) as error:
        # Its own text has the address in it.
        why = type(error).__name__
    log.warning("alert %s: the webhook of KERNELMART_ALERT_URL did not take it: %s", message["incident"], why)
    return False
