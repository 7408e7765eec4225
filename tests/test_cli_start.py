"""What commands read from disk before they do anything: those that only look know nothing of Dagster."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from replica.corpus import Corpus

# Each makes a command wait that has no use for it.
HEAVY = ("dagster", "huggingface_hub", "matplotlib", "pandas", "polars", "scipy", "sqlalchemy")
LOOK = """
import json, sys
from click.testing import CliRunner
from pipelines.cli import main

def loaded(*words):
    result = CliRunner().invoke(main, words)
    return [result.exit_code, sorted(set(json.loads(sys.argv[2])) & sys.modules.keys())]

home = ("--home", sys.argv[1])
print(json.dumps({
    "--help": loaded("--help"),
    "ingest --bad-option": loaded("ingest", "--bad-option"),
    "path": loaded("path", *home),
    "top": loaded("top", "amd-mixture-of-experts", *home),
    "show": loaded("show", "amd-mixture-of-experts", *home),
    "snapshots list": loaded("snapshots", "list", *home),
    "status": loaded("status", *home),
}))
"""


def test_commands_that_only_look_load_neither_dagster_nor_a_client_of_the_services(known_home: Path) -> None:
    words = [sys.executable, "-c", LOOK, str(known_home), json.dumps(HEAVY)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120)
    found = json.loads(done.stdout)
    assert found == {words: [2 if words == "ingest --bad-option" else 0, []] for words in found}


INGEST = """
import sys
from pathlib import Path
from assets.submission_sources.families import sketch
from assets.submission_sources.lexing import lex
from pipelines.ingest import ingest
from pipelines.resources import Request
from warehouse.home import Home

ingest(Home(Path(sys.argv[1])), Request(folder=sys.argv[2]))
sketch(lex(b"import torch"))
print(sorted({"pandas", "datasketch", "scipy.integrate", "scipy.linalg"} & sys.modules.keys()))
import pandas
from scipy.integrate import quad
print(quad(lambda number: 2 * number, 0, 3)[0])
"""


def test_an_ingest_does_without_pandas_and_sketches_without_most_of_scipy_and_keeps_nobody_from_them_afterwards(
    small_corpus: Corpus, tmp_path: Path
) -> None:
    words = [sys.executable, "-c", INGEST, str(tmp_path / "home"), str(small_corpus.folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.splitlines()[-2:] == ["['datasketch']", "9.0"]
