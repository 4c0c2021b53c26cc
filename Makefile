# Each target sets up .venv by itself, and again only when what it is made from has changed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INPUTS := pyproject.toml constraints.txt setup.py $(wildcard regard/attention/kernels/*)
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
WORKERS ?= 2

.PHONY: demo test lint format docs bench clean

demo: $(VENV)/base.stamp
	$(BIN)/regard demo --out demo

test: $(VENV)/dev.stamp $(VENV)/browser.stamp
	$(BIN)/python -m pytest -n $(WORKERS) --cov --cov-report=term

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/docs.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir site

bench: $(VENV)/bench.stamp
	$(BIN)/python benchmarks/attention.py

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

clean:
	rm -rf $(VENV) build site *.egg-info
