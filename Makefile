# From clone to result: each target makes and fills .venv as far as it needs, and again only when the pins change.
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run test test-all test-faults test-seeds test-spark java lint bench docs clean
SHELL := /bin/sh

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
JOBS ?= auto

# The first of these that runs and is new enough; or say `make PYTHON=/path/to/python3.11 run`.
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for python in python3.11 python3 python3.12 python3.13 python; do \
	if $$python -c '$(NEW_ENOUGH)' 2>/dev/null; then echo $$python; break; fi; done)

# A stamp says what .venv holds: for these pins, made in this folder (a venv does not survive a move).
HERE := $(shell printf '%s' '$(CURDIR)' | cksum | cut -d' ' -f1)
PINS := $(HERE)-$(shell cat constraints.txt pyproject.toml | cksum | cut -d' ' -f1)
MADE := $(VENV)/.made-$(HERE)
CORE := $(VENV)/.core-$(PINS)
TEST := $(VENV)/.test-$(PINS)
JUDGES := $(VENV)/.judges-$(PINS)
LINT := $(VENV)/.lint-$(PINS)
DOCS := $(VENV)/.docs-$(PINS)
SPARK := $(VENV)/.spark-$(PINS)

help:            ## this list
	@sed -n 's/^\([a-z%-]*\): .*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

run: $(CORE)     ## the main job: train on countries-s3, show its metrics beside the paper's, and some predictions
	$(BIN)/r2n train countries-s3 --out runs/countries-s3-$$(date +%Y%m%d-%H%M%S)

test: $(TEST)    ## the tests, without the slow ones
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --maxprocesses=8 -m "not slow and not spark"

test-all: $(JUDGES) $(SPARK) java ## all tests, and how much of the sources they cover (that takes several times as long)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --maxprocesses=8 --hypothesis-profile free --cov

test-faults: $(TEST) ## what can happen to a run: interrupts, full disks, damaged files, hostile data
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --maxprocesses=8 tests/faults tests/end_to_end/test_resume.py

SEEDS ?= 20
test-seeds: $(TEST) ## the property tests, with other examples each of SEEDS times
	@for seed in $$(seq 1 $(SEEDS)); do echo "seed $$seed"; OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(JOBS) \
		--maxprocesses=8 -m "not slow and not spark" --hypothesis-profile free --hypothesis-seed $$seed tests/properties tests/contracts \
		|| exit 1; done

test-spark: $(SPARK) java ## what runs on Spark; fetches Java from Debian's packages where there is none
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m spark

java:
	@command -v java >/dev/null || [ -x "$$JAVA_HOME/bin/java" ] || { \
		if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
			echo "Spark needs Java 17 or later: install it, or let JAVA_HOME name its folder" >&2; exit 1; fi; \
		apt-get update -qq && { apt-get install -y -qq openjdk-17-jre-headless \
			|| apt-get install -y -qq default-jre-headless; }; }

lint: $(LINT)    ## format, lint, types, directions of import
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

bench: $(TEST)   ## speed, as ratios to peers in one run
	@for script in benchmarks/*.py; do echo $$script; $(BIN)/python $$script || exit 1; done

example-%: $(CORE) ## one of the examples, by the name of its folder: make example-link_prediction
	OMP_NUM_THREADS=1 $(BIN)/python -m examples.$*

docs: $(DOCS)    ## the documentation, in docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -E -b html docs docs/_build/html

clean:           ## remove .venv and all that the targets and tools have made
	rm -rf $(VENV) dist build docs/_build examples/*/data .coverage .coverage.* .hypothesis .import_linter_cache .pytest_cache .ruff_cache runs
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(MADE):
	@if [ -z '$(PYTHON)' ] || ! '$(PYTHON)' -c '$(NEW_ENOUGH)'; then \
		echo "r2n needs Python 3.11 or later, and '$(or $(PYTHON),python3)' is not: make PYTHON=/path/to/python3.11 ..." >&2; \
		exit 1; fi
	'$(PYTHON)' -m venv --clear $(VENV)
	@touch $@

$(CORE): | $(MADE)
	@rm -f $(VENV)/.core-* $(VENV)/.test-* $(VENV)/.judges-* $(VENV)/.lint-* $(VENV)/.docs-* $(VENV)/.spark-*
	$(PIP) install -c constraints.txt hatchling
	$(PIP) install -c constraints.txt --no-build-isolation -e .
	@touch $@

$(TEST): | $(CORE)
	$(PIP) install -c constraints.txt --no-build-isolation -e ".[test]"
	@touch $@

$(JUDGES): | $(TEST)
	$(PIP) install -c constraints.txt --no-build-isolation -e ".[judges]"
	@touch $@

$(LINT): | $(TEST)
	$(PIP) install -c constraints.txt --no-build-isolation -e ".[lint]"
	@touch $@

$(DOCS): | $(CORE)
	$(PIP) install -c constraints.txt --no-build-isolation -e ".[docs]"
	@touch $@

$(SPARK): | $(TEST)
	$(PIP) install -c constraints.txt pyspark
	$(PIP) install -c constraints.txt --no-build-isolation -e ".[spark]"
	@touch $@
