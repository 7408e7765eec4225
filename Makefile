# Everything sets itself up: with Python 3.11 or later and make, `make demo` and `make test` need nothing done before.

PYTHON ?= python3
BIN := .venv/bin
LOCK := requirements.lock
# Releases of DuckDB besides our own that must be able to read a snapshot.
DUCKDB_VERSIONS := 1.1 1.4

.PHONY: install versions demo test test-system system-packages torture lint docs bench bench-check lock clean

install: .venv/installed

.venv/installed: $(LOCK) pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --requirement $(LOCK)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

versions: $(DUCKDB_VERSIONS:%=.venv-duckdb-%/installed)

.venv-duckdb-%/installed: tests/versions/duckdb-%.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --requirement $<
	touch $@

demo: install
	$(BIN)/python -m replica.demo

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint versions
	$(BIN)/python -m pytest --ignore=tests/system

# What the tests of `make test-system` need besides. These are Debian's names; to install them needs root, or sudo.
SYSTEM_PACKAGES := chromium faketime postgresql systemd
SUDO := $(shell test "$$(id -u)" = 0 || echo sudo)
system-packages:
	dpkg --status $(SYSTEM_PACKAGES) >/dev/null 2>&1 || { $(SUDO) apt-get update --quiet=2 && \
		DEBIAN_FRONTEND=noninteractive $(SUDO) apt-get install --quiet=2 --yes --no-install-recommends $(SYSTEM_PACKAGES); }

test-system: install system-packages
	KERNELMART_SYSTEM_TESTS=1 $(BIN)/python -m pytest tests/system

# Ingests killed at random moments, and what must be true after each; prints the seed.
torture: install
	$(BIN)/python -m tests.torture --times 200

# SCALE=1 is the real thing's size.
SCALE ?= 1
bench: install
	$(BIN)/python -m benchmarks.ranking
	$(BIN)/python -m benchmarks.pipeline --scale $(SCALE)
	$(BIN)/python -m benchmarks.sources

# Fails only where an ingest has become several times slower beside the floor, or much larger.
bench-check: install
	$(BIN)/python -m benchmarks.pipeline --check --scale 0.1 --rounds 1

docs: install
	$(BIN)/python -m warehouse.dictionary

# Names, versions and hashes of every package, for all platforms; needs uv.
lock:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --extra postgres --extra s3 --extra test \
		--extra build --output-file $(LOCK) pyproject.toml
	for version in $(DUCKDB_VERSIONS); do echo "duckdb==$$version.*" | uv pip compile --quiet --universal --python-version 3.11 \
		--generate-hashes --no-header --no-annotate --output-file tests/versions/duckdb-$$version.txt -; done

clean:
	rm -rf .venv .venv-duckdb-* .mypy_cache .ruff_cache .pytest_cache build *.egg-info
