PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOWEST := .venv-lowest
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check
# uv installs in a fraction of pip's time; where it is missing or fails, pip does it. It does not read pip's settings:
# UV_INDEX_URL is its PIP_INDEX_URL
UV_PIP = UV_INDEX_URL="$${UV_INDEX_URL:-$$PIP_INDEX_URL}" $(BIN)/uv pip install --quiet --python $(BIN)/python
INSTALL = installs() { { [ -x $(BIN)/uv ] && $(UV_PIP) "$$@"; } || $(PIP) "$$@"; }; installs

.PHONY: demo test test-nojit lowest lint types docs dist clean

demo: $(VENV)/.ready-demo
	$(BIN)/ranksieve demo --out demo

# tests start many processes, which import the same modules: their bytecode is kept, whatever is set outside
test test-nojit: export PYTHONDONTWRITEBYTECODE =
test test-nojit: export PYTHONPYCACHEPREFIX = $(CURDIR)/$(VENV)/bytecode

# a process per core; kernels that several would compile at once are compiled before. Tests that kill the workers of a
# cluster depend on time, so these run alone
test: $(VENV)/.ready-test
	$(BIN)/ranksieve warm-up
	$(BIN)/python -m pytest -n auto --dist worksteal --ignore tests/cluster/test_cluster_faults.py
	$(BIN)/python -m pytest tests/cluster/test_cluster_faults.py

# kernels as plain Python, so that the interpreter checks every index; a part of the tests, as loops are slow
test-nojit: $(VENV)/.ready-test
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest \
	  tests/kernels tests/rankers/test_ranksvm.py

# the tests on the oldest Python and the lowest versions in pyproject.toml; old libraries warn of each other
lowest: | $(VENV)/bin/python
	[ -x $(BIN)/uv ] || $(PIP) uv
	$(BIN)/uv venv --quiet --clear --python 3.10 $(LOWEST)
	$(BIN)/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct -e ".[test]"
	$(LOWEST)/bin/python -m pytest -o filterwarnings=

lint: $(VENV)/.ready-dev
	$(BIN)/ruff check src tests benchmarks examples docs
	$(BIN)/ruff format --check src tests benchmarks examples docs

# all modules, then the public ones, those of the Python reference, as strictly as mypy can
types: $(VENV)/.ready-dev
	$(BIN)/mypy
	$(BIN)/mypy --strict --follow-imports silent $$($(BIN)/python docs/public_modules.py)

# the documentation as a folder of pages, site/index.html; a warning is an error
docs: $(VENV)/.ready-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet

# wheel and source distribution, then the wheel in a fresh environment, used from another folder
dist: | $(VENV)/bin/python
	rm -rf dist
	$(INSTALL) build
	$(BIN)/python -m build
	$(PYTHON) -m venv dist/.try
	dist/.try/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	cd dist/.try && bin/ranksieve --version && bin/ranksieve synth cubic --queries 4 --out data.parquet && \
	bin/ranksieve train data.parquet --trees 2 --leaves 4 --quiet --out model.txt
	rm -rf dist/.try
	ls -l dist

$(VENV)/bin/python:
	@echo "making $(VENV)"
	$(PYTHON) -m venv $(VENV)
	-$(PIP) uv

$(VENV)/.ready-demo: pyproject.toml | $(VENV)/bin/python
	$(INSTALL) -e ".[plots,serve]"
	touch $@

$(VENV)/.ready-test: pyproject.toml | $(VENV)/bin/python
	$(INSTALL) -e ".[test]"
	touch $@ $(VENV)/.ready-demo

$(VENV)/.ready-dev: pyproject.toml | $(VENV)/bin/python
	$(INSTALL) -e ".[test,dev]"
	touch $@ $(VENV)/.ready-demo $(VENV)/.ready-test

$(VENV)/.ready-docs: pyproject.toml | $(VENV)/bin/python
	$(INSTALL) -e ".[docs]"
	touch $@

clean:
	rm -rf $(VENV) $(LOWEST) build site dist demo .pytest_cache .mypy_cache .ruff_cache
