# From clone to result: each target makes and fills .venv as far as it needs, and again only when the pins change.
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run test test-all test-faults test-browser test-serving test-postgres test-processes test-spark test-seeds
.PHONY: test-lowest locked lock sbom licences chromium java plant-bugs fuzz lint bench docs clean
SHELL := /bin/sh

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
JOBS ?= auto

# The first of these that runs and is new enough; or say `make PYTHON=/path/to/python3.11 run`.
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for python in python3.11 python3 python3.12 python3.13 python; do \
	if $$python -c '$(NEW_ENOUGH)' 2>/dev/null; then echo $$python; break; fi; done)

CHECK_PYTHON = if [ -z '$(PYTHON)' ] || ! '$(PYTHON)' -c '$(NEW_ENOUGH)'; then \
	echo "r2n needs Python 3.11 or later, and '$(or $(PYTHON),python3)' is not: make PYTHON=/path/to/python3.11 ..." >&2; \
	exit 1; fi

# A stamp says what .venv holds: for these pins, made in this folder (a venv does not survive a move).
HERE := $(shell printf '%s' '$(CURDIR)' | cksum | cut -d' ' -f1)
PINS := $(HERE)-$(shell cat constraints.txt pyproject.toml | cksum | cut -d' ' -f1)
MADE := $(VENV)/.made-$(HERE)
CORE := $(VENV)/.core-$(PINS)
TEST := $(VENV)/.test-$(PINS)
JUDGES := $(VENV)/.judges-$(PINS)
LINT := $(VENV)/.lint-$(PINS)
DOCS := $(VENV)/.docs-$(PINS)
BROWSER := $(VENV)/.browser-$(PINS)
AXE_VERSION := 4.10.3
AXE_SUM := 0f2b4d7dcdf7d1219df8d1959ad68e565f51d14c3f0d88bb71cd59abeb956292
AXE := $(VENV)/axe-$(AXE_VERSION)/package/axe.min.js
SPARK := $(VENV)/.spark-$(PINS)
FUZZ := $(VENV)/.fuzz-$(PINS)
SBOM := $(VENV)/.sbom-$(PINS)
LOWEST_VENV := .venv-lowest
LOWEST := $(LOWEST_VENV)/.made-$(HERE)-$(shell cat locks/lowest.txt pyproject.toml | cksum | cut -d' ' -f1)
ELSEWHERE := not browser and not postgres and not spark

help:            ## this list
	@sed -n 's/^\([a-z%-]*\): .*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

run: $(CORE)     ## the main job: train on countries-s3, show its metrics beside the paper's, and some predictions
	$(BIN)/r2n train countries-s3 --out runs/countries-s3-$$(date +%Y%m%d-%H%M%S)

# CHECKS=1: shapes and types at every call of r2n, as `make test-all` has them; that takes twice as long.
CHECKS ?= 0
test: $(TEST)    ## the tests, without the slow ones
	R2N_TYPE_CHECKS=$(CHECKS) OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --maxprocesses=8 --dist worksteal -m "not slow and $(ELSEWHERE)"

test-lowest: $(LOWEST) ## the tests of `make test` with the lowest versions that pyproject.toml allows, in .venv-lowest
	R2N_TYPE_CHECKS=$(CHECKS) OMP_NUM_THREADS=1 $(LOWEST_VENV)/bin/python -m pytest -n $(JOBS) --maxprocesses=8 --dist worksteal -m "not slow and $(ELSEWHERE)"

test-all: $(JUDGES) ## all tests, and how much of the sources they cover (that takes several times as long)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --maxprocesses=8 -m "$(ELSEWHERE)" --hypothesis-profile free --cov

test-faults: $(TEST) ## what can happen to a run: interrupts, full disks, damaged files, hostile data
	R2N_TYPE_CHECKS=$(CHECKS) OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --maxprocesses=8 --dist worksteal -m "$(ELSEWHERE)" tests/faults

INPUTS ?= 1000000
fuzz: $(FUZZ)    ## every reader against INPUTS inputs made by atheris; what is found is in build/fuzzing
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.faults.fuzzing.campaign --inputs $(INPUTS)

test-browser: $(BROWSER) $(AXE) chromium ## the page of r2n serve in a real browser; screenshots in build/screenshots
	OMP_NUM_THREADS=1 R2N_AXE=$(AXE) $(BIN)/python -m pytest -n $(JOBS) --maxprocesses=2 -m browser tests/browser

test-postgres: $(TEST) ## facts from a PostgreSQL server of the tests' own; Debian's is installed where there is none
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || $(INSTALL_POSTGRES) || \
		{ echo "there is no PostgreSQL, and it cannot be installed: as root, apt-get install postgresql" >&2; exit 1; }
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m postgres tests/postgres

test-processes: $(TEST) ## processes that share the work: equal numbers, killed and resumed
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/end_to_end/test_processes.py

INSTALL_POSTGRES := { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get -q update && \
	DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends postgresql; }

test-serving: $(JUDGES) ## r2n serve as clients meet it: thousands of requests from its document, rough clients
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/serving tests/properties/test_served_what_if.py

SEEDS ?= 20
test-seeds: $(TEST) ## the property tests, with other examples each of SEEDS times
	@for seed in $$(seq 1 $(SEEDS)); do echo "seed $$seed"; R2N_TYPE_CHECKS=0 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q \
		-n $(JOBS) --maxprocesses=8 -m "hypothesis and not slow and not spark" --hypothesis-profile seeded --hypothesis-seed $$seed \
		tests/properties tests/contracts || exit 1; done

test-spark: $(SPARK) java ## what runs on Spark; fetches Java from Debian's packages where there is none
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "spark and not slow" $$(grep -rl --include='test_*.py' 'mark\.spark' tests)

java:
	@command -v java >/dev/null || [ -x "$$JAVA_HOME/bin/java" ] || { \
		if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
			echo "Spark needs Java 17 or later: install it, or let JAVA_HOME name its folder" >&2; exit 1; fi; \
		apt-get update -qq && { apt-get install -y -qq openjdk-17-jre-headless \
			|| apt-get install -y -qq default-jre-headless; }; }

plant-bugs: $(TEST) ## bugs planted one by one in a copy of the tree: which test finds each (that takes half an hour)
	$(BIN)/python tools/plant_bugs.py

lint: $(LINT)    ## format, lint, types, directions of import
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

locked:          ## .venv anew for `make test`, every file checked by its hash (Linux on x86-64, Python 3.11, torch for CPU)
	rm -rf $(VENV)
	@$(MAKE) --no-print-directory $(MADE)
	$(PIP) install --no-deps --require-hashes --only-binary :all: -r locks/test.txt
	$(PIP) install --no-deps --no-index --no-build-isolation -e .
	$(PIP) check
	@touch $(CORE) $(TEST)

lock: $(TEST)    ## locks/test.txt anew, after a change of constraints.txt or of the extra [test]
	$(BIN)/python -m tools.lock

licences: $(JUDGES) $(LINT) $(DOCS) $(BROWSER) $(SPARK) $(FUZZ) ## the licence of each package of constraints.txt, checked
	$(PIP) install -c constraints.txt --no-build-isolation -e ".[sbom,tune]"
	$(BIN)/python -m tools.licences

sbom: $(TEST) $(SBOM) ## a bill of materials of .venv in build/sbom.json (CycloneDX), checked
	$(BIN)/python -m tools.sbom $(VENV)/sbom/bin/cyclonedx-py

bench: $(TEST)   ## speed, as ratios to peers in one run
	@for script in benchmarks/*.py; do echo $$script; $(BIN)/python $$script || exit 1; done

example-%: $(CORE) ## one of the examples, by the name of its folder: make example-link_prediction
	OMP_NUM_THREADS=1 $(BIN)/python -m examples.$*

docs: $(DOCS)    ## the documentation, in docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -E -b html docs docs/_build/html

clean:           ## remove .venv, .venv-lowest and all that the targets and tools have made
	rm -rf $(VENV) $(LOWEST_VENV) dist build docs/_build examples/*/data .coverage .coverage.* .hypothesis .import_linter_cache .pytest_cache .ruff_cache runs
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(MADE):
	@$(CHECK_PYTHON)
	'$(PYTHON)' -m venv --clear $(VENV)
	@touch $@

$(CORE): | $(MADE)
	@rm -f $(VENV)/.core-* $(VENV)/.test-* $(VENV)/.judges-* $(VENV)/.lint-* $(VENV)/.docs-* $(VENV)/.browser-* $(VENV)/.spark-* $(VENV)/.fuzz-*
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

$(BROWSER): | $(TEST)
	$(PIP) install -c constraints.txt --no-build-isolation -e ".[browser]"
	@touch $@

$(SBOM): | $(CORE)
	@rm -f $(VENV)/.sbom-*
	$(BIN)/python -m venv --clear $(VENV)/sbom
	$(VENV)/sbom/bin/python -m pip --disable-pip-version-check --quiet install -c constraints.txt cyclonedx-bom
	@touch $@

# httpx: Starlette's test client of that time is built on it, that of today on httpx2.
$(LOWEST):
	@$(CHECK_PYTHON)
	'$(PYTHON)' -m venv --clear $(LOWEST_VENV)
	$(LOWEST_VENV)/bin/python -m pip --disable-pip-version-check --quiet install -c locks/lowest.txt hatchling
	$(LOWEST_VENV)/bin/python -m pip --disable-pip-version-check --quiet install -c locks/lowest.txt --only-binary :all: \
		--no-build-isolation -e ".[test]" httpx
	@touch $@

$(AXE): | $(MADE)
	@command -v npm >/dev/null || { echo "npm is needed to fetch axe-core" >&2; exit 1; }
	rm -rf $(VENV)/axe-$(AXE_VERSION) && mkdir $(VENV)/axe-$(AXE_VERSION)
	cd $(VENV)/axe-$(AXE_VERSION) && npm pack --silent axe-core@$(AXE_VERSION) >/dev/null \
		&& echo "$(AXE_SUM)  axe-core-$(AXE_VERSION).tgz" | sha256sum --check --quiet && tar -xzf axe-core-$(AXE_VERSION).tgz

# R2N_BROWSER names another browser of its family.
chromium:
	@[ -n "$$R2N_BROWSER" ] || command -v chromium >/dev/null || command -v chromium-browser >/dev/null \
		|| command -v google-chrome >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
		&& apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; } \
		|| { echo "Chromium is needed: apt-get install chromium, or set R2N_BROWSER" >&2; exit 1; }

$(SPARK): | $(TEST)
	$(PIP) install -c constraints.txt pyspark
	$(PIP) install -c constraints.txt --no-build-isolation -e ".[spark]"
	@touch $@

$(FUZZ): | $(TEST)
	$(PIP) install -c constraints.txt --no-build-isolation -e ".[fuzz]"
	@touch $@
