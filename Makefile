# Every habit has one name. `make` alone lists them.
#
# A fresh machine needs Python 3.11 or newer and make; the rest goes into .venv from pinned requirements.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# The first of these that is new enough is used; say PYTHON=... to choose another.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
    $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
PORT ?= 8000
JOBS ?= $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)

VENV := .venv
BIN := $(VENV)/bin
SITE := _build/html
PIP := $(BIN)/python -m pip install --disable-pip-version-check --no-input
# A page with a warning must warn again next time: forget what was read, keep what was executed.
BUILD = $(BIN)/jupyter-book build . -W -n --keep-going $(1) || { rm -rf _build/.doctrees; exit 1; }
NOTEBOOKS = $(call BUILD,--quiet --builder custom --custom-builder notebooks)

# What a reader's shell and home happen to hold must not reach the book: not their packages, plotting backend or
# IPython profile.
unexport PYTHONPATH MPLBACKEND
export PYTHONNOUSERSITE := 1
# The matrices of this book are small: more threads get in each other's way, above all where tests run side by side.
OPENBLAS_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS
export IPYTHONDIR := $(CURDIR)/$(VENV)/ipython
export JUPYTER_PLATFORM_DIRS := 1

.PHONY: help book live editor products serve notebooks quick test test-unit test-notebooks parity bench story-gpt scaling links check pages size format
.PHONY: fonts cards playground pins clean
.PHONY: check-python

help: ## list what can be made
	@echo "make TARGET, where TARGET is one of"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' $(firstword $(MAKEFILE_LIST)) | \
	    awk -F'|' '{ printf "  %-15s %s\n", $$1, $$2 }'
	@echo "Needs Python 3.11 or newer; PYTHON=/path/to/python chooses one, PORT=8000 is where serve listens."

book: $(VENV)/.book ## install, run every chapter, build the site
	@echo "==> Running the chapters and building the site (a few minutes the first time, seconds after that)"
	@$(call BUILD)
	@echo
	@echo "The site is at $(CURDIR)/$(SITE)/index.html"
	@echo "Open that file, or say 'make serve' and open http://localhost:$(PORT)"

live: $(VENV)/.book ## fetch the Python that runs cells in the page (31 MB, once), for the next 'make book'
	@echo "==> Fetching what runs in the reader's browser"
	@$(BIN)/python book/_ext/pinned.py pyodide kernel

editor: ## bundle the editor of the live cells anew (needs Node and npm; its result is committed)
	@cd book/_runtime/editor && npm ci --ignore-scripts --no-audit --no-fund && npm run --silent build

# The same compiler gives the same bytes: tests/core/test_products.py says whether they are in step with their source.
WASM = clang-16 --target=wasm32-unknown-emscripten -std=c11 -O3 -Wall -Wextra -Werror -Wno-unused-parameter \
    -ffreestanding -fPIC -msimd128 -nostdlib -Wl,-shared,--experimental-pic,--strip-all products.c

products: ## compile the matrix products of the page anew (needs Debian's clang-16 and lld-16; its result is committed)
	@cd tinytorch/core/wasm && $(WASM) -o products.wasm && $(WASM) -mrelaxed-simd -DRELAXED -o products_relaxed.wasm

fonts: $(VENV)/.dev ## make the fonts of the pages anew (their results are committed)
	@$(BIN)/python book/_ext/pinned.py fonts
	@PYTHONHASHSEED=0 $(BIN)/python book/_runtime/subset_fonts.py

playground: $(VENV)/.book ## train the playground's model anew, and write its tokenizer and grammar (minutes; its results are committed)
	@$(BIN)/python book/_runtime/playground_files.py

cards: ## make the pictures that messages show beside a link anew, from the built site (their results are committed)
	@PYTHONPATH=book/_ext $(BIN)/python tests/browser/share_cards.py

serve: ## build the site and serve it on localhost (PORT=8000)
	@$(MAKE) --no-print-directory book
	@echo "==> Serving http://localhost:$(PORT) (stop with Ctrl-C)"
	@$(BIN)/python -m http.server $(PORT) --bind 127.0.0.1 --directory $(SITE)

notebooks: $(VENV)/.book ## write book/notebooks anew, with the outputs that the pages show
	@echo "==> Writing book/notebooks"
	@$(NOTEBOOKS)
	@# The prose is a text that chapters read: where it has changed, they run with the new one.
	@$(BIN)/python book/_ext/notebooks.py --prose || { $(NOTEBOOKS); }
	@$(BIN)/python book/_ext/notebooks.py

quick: $(VENV)/.test ## the tests to run at every change: the package and the book's tools, in a minute, without network
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(foreach part,book browser parity bench,--ignore=tests/$(part))

test: ## fetch what runs in the page, build the book, then test the package, the notebooks and the pages
	@$(MAKE) --no-print-directory live
	@$(MAKE) --no-print-directory book
	@$(NOTEBOOKS)
	@$(MAKE) --no-print-directory test-unit
	@$(MAKE) --no-print-directory test-notebooks
	@echo
	@echo "All tests passed. 'make parity' compares with PyTorch, 'make check' reads the style."

test-unit: $(VENV)/.test ## only the package's tests and those of the built pages
	@$(BIN)/python book/_ext/pinned.py axe
	@echo "==> Testing the package and the built pages"
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --ignore=tests/parity --ignore=tests/bench

test-notebooks: $(VENV)/.test ## only the notebooks: run each where little is installed, compare every output
	@echo "==> Running every notebook with NumPy, matplotlib and the wheel alone, and comparing what it prints"
	@$(BIN)/python tests/book/plain_python.py
	@JUPYTER_PATH=_build/plain_python/share/jupyter $(BIN)/python -m pytest --nbval --nbval-kernel-name=plain-python \
	    --nbval-cell-timeout=1800 --nbval-kernel-startup-timeout=600 --nbval-sanitize-with=tests/book/nbval_ignores.cfg \
	    -o addopts= -o doctest_optionflags= -p no:randomly -n $(JOBS) --dist loadfile book/notebooks

parity: $(VENV)/.parity ## compare every layer, forward and backward, with PyTorch
	@$(BIN)/python book/_ext/pinned.py gpt2
	@echo "==> Comparing with the reference frameworks"
	@$(BIN)/python -m pytest tests/parity

bench: $(VENV)/.parity ## measure speed beside PyTorch (installs the parity extra; BENCH=--store keeps the table)
	@echo "==> Measuring beside PyTorch, some ten minutes (keep the machine quiet)"
	@$(BIN)/python tests/bench/run.py $(BENCH)

story-gpt: $(VENV)/.book ## train the model that comes with the package anew (minutes; replaces the stored one)
	@echo "==> Training the story GPT"
	@$(BIN)/python -m tinytorch.training.story_gpt
	@echo "The notebooks print what it writes: say 'make notebooks' next."

scaling: $(VENV)/.book ## train the models of the scaling law that are not in its table yet (an hour or more; can be stopped)
	@echo "==> Training the models of the scaling law"
	@$(BIN)/python -m tinytorch.training.scaling_runs

links: $(VENV)/.book ## check the links that leave the book (needs the network)
	@echo "==> Following every external link"
	@$(BIN)/jupyter-book build . --builder linkcheck --path-output _build/links --keep-going

check: $(VENV)/.book $(VENV)/.dev ## formatting, lint, types, spelling
	@echo "==> ruff format";  $(BIN)/ruff format --check .
	@echo "==> ruff check";   $(BIN)/ruff check .
	@echo "==> mypy";         $(BIN)/mypy
	@echo "==> codespell";    $(BIN)/codespell
	@echo "==> oxlint";       $(BIN)/oxlint --quiet

pages: $(VENV)/.test ## how long the built chapters are, and which rules of a page each one breaks
	@$(BIN)/python tests/book/page_rules.py

size: $(VENV)/.python ## how many lines of code each file and room has
	@$(BIN)/python tests/house/size.py

format: $(VENV)/.dev ## format the code and mend what lint can mend
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .

# Universal pins hold for Python 3.11 and newer on every platform; hashes say exactly which files.
LOCK = $(BIN)/uv pip compile --quiet --upgrade --no-config --no-emit-index-url --no-emit-find-links \
    --custom-compile-command "make pins" pyproject.toml
UNIVERSAL = --universal --python-version 3.11 --generate-hashes

pins: $(VENV)/.dev ## compile the newest allowed requirements anew
	@echo "==> Compiling requirements"
	@$(LOCK) $(UNIVERSAL) --extra book --output-file requirements/book.txt
	@$(LOCK) $(UNIVERSAL) --extra test --constraint requirements/book.txt --output-file requirements/test.txt
	@$(LOCK) $(UNIVERSAL) --extra dev --constraint requirements/test.txt --output-file requirements/dev.txt
	@printf 'numpy\nmatplotlib\njupytext\nhatchling\n' | $(BIN)/uv pip compile --quiet --no-config --python-version 3.11 \
	    --python-platform linux --no-emit-index-url --no-emit-find-links --no-annotate \
	    --custom-compile-command "make pins" --constraint requirements/book.txt --output-file binder/requirements.txt -

clean: ## remove what was built (the site, caches); .venv stays, 'rm -r .venv' removes it
	rm -rf _build .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +

# The virtual environment, one stamp a set of requirements: installed again only when they change. ----------------

$(VENV)/.python:
	@$(MAKE) --no-print-directory check-python
	@echo "==> Making a virtual environment in $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv --clear $(VENV)
	@mkdir -p $(IPYTHONDIR)/profile_default # and kernels keep quiet about how they talk on one machine
	@echo 'c.IPKernelApp.log_level = "ERROR"' > $(IPYTHONDIR)/profile_default/ipython_kernel_config.py
	@touch $@

$(VENV)/.book: requirements/book.txt pyproject.toml | $(VENV)/.python
	@echo "==> Installing what the book needs, about 300 MB"
	@$(PIP) --require-hashes -r requirements/book.txt
	@$(PIP) --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.test: requirements/test.txt $(VENV)/.book
	@echo "==> Installing what the tests need (half a minute, silent)"
	@$(PIP) --quiet --require-hashes -r requirements/test.txt
	@touch $@

$(VENV)/.dev: requirements/dev.txt | $(VENV)/.python
	@echo "==> Installing what the style checks need (some seconds, silent)"
	@$(PIP) --quiet --require-hashes -r requirements/dev.txt
	@touch $@

$(VENV)/.parity: requirements/parity.txt $(VENV)/.test
	@echo "==> Installing the reference frameworks (PyTorch is large: this can take minutes)"
	@$(PIP) -r requirements/parity.txt
	@touch $@

check-python:
	@if [ -z "$(PYTHON)" ]; then \
	    found=$$(python3 --version 2>&1 || python --version 2>&1 || echo "no Python at all"); \
	    echo "This book needs Python 3.11 or newer; found: $$found." >&2; \
	    echo "Install one, or name one that is not on your PATH: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; fi
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	    is=$$($(PYTHON) --version 2>/dev/null || echo "not a Python that runs"); \
	    echo "PYTHON=$(PYTHON) is $$is; this book needs Python 3.11 or newer." >&2; \
	    echo "Name another: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	    echo "$(PYTHON) has no venv module (some systems ship it apart)." >&2; \
	    echo "On Debian and Ubuntu: sudo apt-get install python3-venv; elsewhere, install Python from python.org," >&2; \
	    echo "or name another: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
