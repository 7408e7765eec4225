"""Homes that several tests read; none of them may change one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from replica.corpus import Corpus, write_corpus

SHARED = os.environ.get("KERNELMART_CONFORMANCE")
# No test asks the real services: what is not given a replica is refused at once.
os.environ["HF_ENDPOINT"] = "http://127.0.0.1:9"
os.environ["KERNELMART_SOL_URL"] = "http://127.0.0.1:9/api"


@dataclass(frozen=True)
class SmallHome:
    """A home with a snapshot of a small made-up corpus, and what must be in it."""

    home: Path
    corpus: Corpus


@pytest.fixture(scope="session")
def small_home(tmp_path_factory: pytest.TempPathFactory) -> SmallHome:
    corpus = write_corpus(tmp_path_factory.mktemp("small_corpus"), seed=1, scale=0.001)
    return SmallHome(_ingested(tmp_path_factory.mktemp("small_home"), corpus.folder), corpus)


@pytest.fixture(scope="session")
def real_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a snapshot of the real results."""
    if not SHARED:
        pytest.skip("KERNELMART_CONFORMANCE does not name a folder with real results")
    return _ingested(tmp_path_factory.mktemp("real_home"), Path(SHARED) / "data" / "dumps")


def _ingested(folder: Path, saved: Path) -> Path:
    from pipelines.ingest import ingest
    from pipelines.resources import Request
    from warehouse.home import Home

    assert ingest(Home(folder), Request(folder=str(saved))).published
    return folder


@pytest.fixture(scope="session")
def known_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the snapshot of `tests.small_snapshot`."""
    from tests.small_snapshot import publish

    return publish(tmp_path_factory.mktemp("known_home")).root


@pytest.fixture(scope="session")
def small_home_folder(small_home: SmallHome) -> Path:
    return small_home.home
