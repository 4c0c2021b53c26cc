# Each target sets up .venv by itself, and again only when what it is made from has changed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INPUTS := pyproject.toml constraints.txt setup.py $(wildcard regard/attention/kernels/* regard/models/native/kernels/*)
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
WORKERS ?= 2

.PHONY: help quick demo test coverage lint format docs bench lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

quick: $(VENV)/dev.stamp ## what a change usually touches, in two minutes: lint and the fast tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow" tests

demo: $(VENV)/base.stamp ## train, evaluate and draw from nothing
	$(BIN)/regard demo --out demo

test: $(VENV)/dev.stamp $(VENV)/browser.stamp ## all tests
	$(BIN)/python -m pytest -n $(WORKERS)

coverage: $(VENV)/dev.stamp $(VENV)/browser.stamp ## all tests, with coverage, which takes half as long again
	$(BIN)/python -m pytest -n $(WORKERS) --cov --cov-report=term

lint: $(VENV)/dev.stamp ## ruff, mypy and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/dev.stamp ## fix what ruff can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/docs.stamp ## build the site into site/; a warning is an error
	@rm -rf site
	$(BIN)/python scripts/build_guide.py
	$(BIN)/python scripts/build_notebooks.py
	$(BIN)/zensical build --strict --clean
	$(BIN)/python scripts/check_site.py

bench: $(VENV)/bench.stamp ## measure all that needs no corpora: attention, training, decoding, server
	$(BIN)/python benchmarks/attention.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/decoding.py
	$(BIN)/python benchmarks/long_sequences.py
	$(BIN)/python benchmarks/serving_translations.py
	$(BIN)/python benchmarks/serving.py --clients 64 --seconds 60 --warm-up 10

lock: $(VENV)/dev.stamp ## write requirements.lock and docs/licences.md from what is installed
	$(INSTALL) uv
	$(BIN)/python scripts/lock_dependencies.py
	$(BIN)/python scripts/list_licences.py

$(VENV)/pyvenv.cfg:
	$(PYTHON) -m venv $(VENV)

$(VENV)/base.stamp: $(INPUTS) | $(VENV)/pyvenv.cfg
	$(INSTALL) -e .
	@touch $@

$(VENV)/dev.stamp: $(INPUTS) | $(VENV)/pyvenv.cfg
	$(INSTALL) -e ".[dev]"
	@touch $@ $(VENV)/base.stamp

# Debian's browser and two npm packages, for the tests of the page; without them these tests skip.
$(VENV)/browser.stamp: tests/browser/package.json | $(VENV)/pyvenv.cfg
	@command -v chromium >/dev/null || (apt-get update -qq && apt-get install -qq -y chromium) \
	  >/dev/null 2>&1 || echo "no chromium (apt install chromium): browser tests will be skipped"
	@cd tests/browser && npm ci --silent --no-audit --no-fund >/dev/null 2>&1 \
	  || echo "no npm: tests of accessibility and types of the page will be skipped"
	@touch $@

$(VENV)/docs.stamp: $(INPUTS) | $(VENV)/pyvenv.cfg
	$(INSTALL) -e ".[docs]"
	@touch $@

$(VENV)/bench.stamp: $(INPUTS) | $(VENV)/pyvenv.cfg
	$(INSTALL) -e ".[bench]"
	@touch $@

clean: ## remove .venv and everything that was built
	rm -rf $(VENV) .cache build dist site *.egg-info
