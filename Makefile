# Everything runs in .venv, made here; `make help` lists the recipes.
PY ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv

.PHONY: help demo test fuzz check bench golden docs lock clean
.DEFAULT_GOAL := help

help: ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(VENV)/.installed: pyproject.toml requirements.lock
	@$(PY) -c 'import sys; sys.exit("Flatline needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Name another: make PY=python3.12") if sys.version_info < (3, 11) else 0'
	@test -x $(BIN)/python || $(PY) -m venv $(VENV)
	@echo "installing into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

lock: ## resolve the dependencies again, with hashes, for every platform
	@$(UV) pip compile --quiet --universal --generate-hashes --no-header --group dev pyproject.toml -o requirements.lock

demo: $(VENV)/.installed ## install, then diagnose the bundled real runs
	@$(BIN)/flatline demo

test: $(VENV)/.installed ## install, then run the tests
	@$(BIN)/python -m pytest -n auto

N ?= 10000
fuzz: $(VENV)/.installed ## hostile inputs, N of them (10000), others each time
	@FLATLINE_FUZZ=$(N) $(BIN)/python -m pytest -s -p no:randomly tests/fuzz

check: $(VENV)/.installed ## format, lint, types, imports, spelling, fresh docs
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/codespell src docs lab bench tests/*.py *.md
	@$(BIN)/python -m pip check --quiet --disable-pip-version-check
	@$(BIN)/python docs/generate.py --check

bench: $(VENV)/.installed ## measure: scan speed beside ripgrep, whole commands
	@$(BIN)/python bench/run.py

golden: $(VENV)/.installed ## rewrite what scenarios are compared with; read the diff
	@$(BIN)/python -m pytest tests/test_scenarios.py --golden

docs: $(VENV)/.installed ## regenerate the generated pages
	@$(BIN)/python docs/generate.py

clean: ## remove what was built
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
