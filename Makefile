# Each target sets up .venv by itself, and again only when what it is made from has changed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INPUTS := pyproject.toml constraints.txt setup.py $(wildcard regard/attention/kernels/*)
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
WORKERS ?= 2

.PHONY: demo test lint format docs bench clean

demo: $(VENV)/base.stamp
	$(BIN)/regard steps --picture bird.svg

test: $(VENV)/dev.stamp
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

$(VENV)/docs.stamp: $(INPUTS) | $(VENV)/pyvenv.cfg
	$(INSTALL) -e ".[docs]"
	@touch $@

$(VENV)/bench.stamp: $(INPUTS) | $(VENV)/pyvenv.cfg
	$(INSTALL) -e ".[bench]"
	@touch $@

clean:
	rm -rf $(VENV) build site *.egg-info
