# Two commands do everything: `make demo` and `make test`. `make help` explains the rest.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
ARCHIVES := .lockstep/class-archives
UNIT := tests/layout tests/tools tests/lockstep tests/app tests/streaming tests/sinks tests/bench tests/conf
TOGETHER := --dist loadscope --no-loadscope-reorder
# Most of a test's time is waiting: four processes keep two cores busy.
WORKERS ?= 4
ROUNDS ?= 3
# Every command and job that a test starts would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test tests endurance check lint unit fuzz format docs screenshots checksums package release bench matrix clean docs-site

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

setup: $(STAMP) ## makes .venv with everything in it, `lockstep` too

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "Python 3.10 or later is needed: make setup PYTHON=/path/to/python3"; exit 1; }
	@command -v java >/dev/null || [ -n "$$JAVA_HOME" ] || { echo "Java 17, 21 or 25 is needed: put it on PATH, or set JAVA_HOME"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: setup ## two local clusters, MM2, a source that changes, and how long each change took
	$(BIN)/lockstep demo $(ARGS)

check: lint unit ## format, lint, types, import contracts, unit tests: under a minute

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy

unit: setup ## the tests that need neither Spark nor a broker
	$(BIN)/python -m pytest $(UNIT) -n 2 $(TOGETHER) $(ARGS)

test: setup ## lint, and beside it real brokers, real MM2, real Spark; all but `make endurance`
	@$(MAKE) --no-print-directory --jobs 2 lint tests

$(ARCHIVES)/kafka.jsa: $(STAMP)
	@$(BIN)/python -m tests.quick_java || echo "Java archives no classes here: tests take longer" >&2

tests: setup $(ARCHIVES)/kafka.jsa
	$(BIN)/python -m pytest tests -m "not endurance" -n $(WORKERS) $(TOGETHER) $(ARGS)

endurance: setup $(ARCHIVES)/kafka.jsa ## what `make test` leaves out: kills again and again, lost answers, mixes of faults
	$(BIN)/python -m pytest tests -m endurance -n 1 $(TOGETHER) $(ARGS)

fuzz: setup ## searches with fresh inputs, ROUNDS times; `make test` has the same ones every time
	for round in $$(seq $(ROUNDS)); do $(BIN)/python -m pytest tests -m hypothesis --hypothesis-profile=fuzz $(ARGS) || exit 1; done

format: setup ## writes what `check` would complain about
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: setup ## writes the generated pages and tables in docs/ from the tables in the code
	$(BIN)/python -m app.docs_pages

docs-site: setup ## build/site/index.html: all pages as a site
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	rm -rf build/site-source && mkdir -p build/site-source
	cp -r README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md LICENSE docs conf build/site-source/
	mkdir build/site-source/bench && cp -r bench/figures build/site-source/bench/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

screenshots: setup ## pictures of the page, for docs/page.md; needs chromium
	$(BIN)/python -m tests.browser.screenshots docs/images

checksums: setup ## fetches all jars and writes their checksums anew: after a version was changed
	$(BIN)/python -m tools.renew_checksums app.local.jar_sets:SETS tests.fetched_jars:SETS bench.matrix.releases:SETS

package: setup ## dist/: the wheel, and an environment with all that it needs, for hosts without PyPI
	rm -rf dist build/environment
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	$(PYTHON) -m venv build/environment
	build/environment/bin/python -m pip install --quiet --constraint constraints.txt 'venv-pack>=0.2' setuptools dist/*.whl
	build/environment/bin/venv-pack --quiet --prefix build/environment --output dist/lockstep-environment.tar.gz
	rm -rf build/environment

release: setup ## VERSION=0.2.0: edits the version and the changelog; wheel, SBOM and checksums in dist/ (INTO=folder)
	$(BIN)/python -m tools.release $(VERSION) $(if $(INTO),--into $(INTO))

bench: setup ## side by side with MM2; writes bench/figures/benchmarks.md (an hour)
	$(BIN)/python -m bench $(ARGS)

matrix: setup ## brokers and MM2 of other versions, row by row; writes docs/compatibility.md (over an hour; ARGS=3.9:4.3:3.9: one row)
	$(BIN)/python -m bench.matrix $(ARGS)

clean: ## removes .venv and everything fetched or made
	rm -rf $(VENV) .lockstep build dist
