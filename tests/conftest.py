"""Homes that several tests read, none of which may change one; and a webhook."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest
from filelock import FileLock

from replica.corpus import Corpus, write_corpus
from tests.webhook import Webhook, webhook

SHARED = os.environ.get("KERNELMART_CONFORMANCE")
# No test asks the real services: what is not given a replica is refused at once.
os.environ["HF_ENDPOINT"] = "http://127.0.0.1:9"
os.environ["KERNELMART_SOL_URL"] = "http://127.0.0.1:9/api"
# Those with the longest tests begin first, so that none of them is the last that everybody waits for.
LONGEST = ("test_survival", "test_ingest_pulled", "test_nights", "test_ingest", "test_ingest_code", "test_demo",
           "test_swaps", "test_reproducible")  # fmt: skip

Made = TypeVar("Made")


@dataclass(frozen=True)
class SmallHome:
    """A home with a snapshot of a small made-up corpus, and what must be in it."""

    home: Path
    corpus: Corpus


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))


@pytest.fixture(scope="session")
def small_corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return _made_once(
        tmp_path_factory, "small_corpus", lambda folder: write_corpus(folder / "saved", seed=1, scale=0.001)
    )


@pytest.fixture(scope="session")
def small_home(small_corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> SmallHome:
    home = _made_once(tmp_path_factory, "small_home", lambda folder: _ingested(folder / "home", small_corpus.folder))
    return SmallHome(home, small_corpus)


@pytest.fixture(scope="session")
def small_home_folder(small_home: SmallHome) -> Path:
    return small_home.home


@pytest.fixture(scope="session")
def real_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a snapshot of the real results."""
    if not SHARED:
        pytest.skip("KERNELMART_CONFORMANCE does not name a folder with real results")
    saved = Path(SHARED) / "data" / "dumps"
    return _made_once(tmp_path_factory, "real_home", lambda folder: _ingested(folder / "home", saved))


@pytest.fixture(scope="session")
def known_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the snapshot of `tests.small_snapshot`."""
    from tests.small_snapshot import publish

    return _made_once(tmp_path_factory, "known_home", lambda folder: publish(folder / "home").root)


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Webhook]:
    """A webhook that listens, and that the environment names."""
    with webhook() as listening:
        monkeypatch.setenv("KERNELMART_ALERT_URL", listening.url)
        yield listening


def _made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], Made]) -> Made:
    """What is made below a folder by the first process of this test run that needs it; the others wait and share it."""
    own = factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / name
    made = folder / "made.pickle"
    with FileLock(folder.with_suffix(".lock")):
        if not made.exists():
            folder.mkdir(exist_ok=True)
            made.write_bytes(pickle.dumps(make(folder)))
    # It was written a moment ago, by these same tests.
    what: Made = pickle.loads(made.read_bytes())  # noqa: S301
    return what


def _ingested(folder: Path, saved: Path) -> Path:
    from pipelines.ingest import ingest
    from pipelines.resources import Request
    from warehouse.home import Home

    assert ingest(Home(folder), Request(folder=str(saved))).published
    return folder
