# `make demo` and `make test` are all a newcomer needs; each sets up what it needs first, once.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# Python compiles the modules that it imports, which takes less time than to compile all of them, and keeps the result,
# even if the environment says otherwise: to compile them again takes seconds for every process.
export PYTHONDONTWRITEBYTECODE =
INSTALL = $(BIN)/pip install --disable-pip-version-check --quiet --no-compile -c constraints.txt
# One thread for each test process, since two of them fill two cores; tests of several threads must not spin. A file is
# tested by one process, which shares its fixtures, and files come in the order of tests/conftest.py, the longest first.
# A process that dies ends the tests: pytest-xdist would wait for it forever.
TESTS  ?= -n 2 --dist loadfile --no-loadscope-reorder --max-worker-restart 0

.PHONY: demo test reproduce faults lint format docs bench bench-gpu clean

demo: $(VENV)/.demo-installed
	$(BIN)/gumbel-mpnn demo

test: $(VENV)/.dev-installed
	OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE $(BIN)/pytest $(TESTS)

# A table or figure of the paper, or a study of ours: make reproduce NAME=accuracy OPTIONS="--only cora --quick"
reproduce: $(VENV)/.demo-installed
	$(BIN)/python -m experiments $(NAME) $(OPTIONS)

# About a quarter of an hour; writes its counts to docs/reliability.md. A short form is part of the tests.
faults: $(VENV)/.dev-installed
	OMP_NUM_THREADS=1 PYTHONPATH=src:tests $(BIN)/python tests/faults/long_form.py

# Style, types, imports, and the sizes of everything beside their ceilings.
lint: $(VENV)/.dev-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python benchmarks/size.py

format: $(VENV)/.dev-installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.dev-installed
	$(BIN)/python docs/write_settings.py
	$(BIN)/python -m sphinx -W -b html docs docs/_build
	@echo "open docs/_build/index.html"

# Each script writes a file to benchmarks/results; those that need a data set's files find them by GUMBEL_MPNN_DATA.
bench: $(VENV)/.dev-installed
	for name in step_cpu replicas_cpu candidates start_up sdrf page_browser page; do \
		$(BIN)/python benchmarks/$$name.py || exit 1; done

bench-gpu: $(VENV)/.dev-installed
	for name in step_gpu scale_gpu replicas_gpu page; do \
		$(BIN)/python benchmarks/$$name.py || exit 1; done

clean:
	rm -rf $(VENV)

$(BIN)/python:
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'Python 3.11 or newer is needed; set PYTHON=...')"
	$(PYTHON) -m venv $(VENV)

# torch goes first and by its pin: anything that asks for it later finds it there.
$(VENV)/.torch-installed: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) torch
	touch $@

$(VENV)/.demo-installed: $(VENV)/.torch-installed
	$(INSTALL) -e .
	touch $@

$(VENV)/.dev-installed: $(VENV)/.torch-installed
	$(INSTALL) -e ".[dev,docs]"
	touch $(VENV)/.demo-installed $@
