PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test check bench faults pins schemas format

setup: .venv/.ready

.venv/.ready: requirements/dev.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

pins:
	$(BIN)/pip-compile --quiet --generate-hashes --no-annotate --no-header --no-emit-index-url --no-emit-find-links \
	  --no-emit-trusted-host --strip-extras --allow-unsafe -o requirements/dev.txt requirements/dev.in
