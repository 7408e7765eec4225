# Everything sets itself up: with Python 3.11 or later and make, `make demo` and `make test` need nothing done before.

PYTHON ?= python3
BIN := .venv/bin
LOCK := requirements.lock

.PHONY: install demo test lint docs bench lock clean

install: .venv/installed

.venv/installed: $(LOCK) pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --requirement $(LOCK)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

demo: install
	$(BIN)/python -m replica.demo

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest

bench: install
	$(BIN)/python -m benchmarks.ranking

docs: install
	$(BIN)/python -m warehouse.dictionary

# Names, versions and hashes of every package, for all platforms; needs uv.
lock:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --extra s3 --extra test \
		--extra build --output-file $(LOCK) pyproject.toml

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache build *.egg-info
