# Every task has one name, written once, in tasks.py: `make` alone lists them. Where there is no make,
# `python tasks.py NAME` does the same.

.DEFAULT_GOAL := help
.NOTPARALLEL:

# The first of these that is new enough is used; PYTHON=... chooses another.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
    $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; exit; }; done; \
    command -v python3 || command -v python)

TASKS := $(shell $(PYTHON) tasks.py --names 2>/dev/null)
ifeq ($(TASKS),)
    $(error This book needs Python 3.11 or newer; found: $(or $(PYTHON),no Python at all), which is none or does not run. \
        Install one, or name one that is not on your PATH: make PYTHON=/path/to/python3.11 ...)
endif

.PHONY: $(TASKS)
$(TASKS):
	@$(PYTHON) tasks.py $@
