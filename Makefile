# `make run` and `make test` need python3 (3.11 or newer) with its venv module, and nothing else.
SHELL := /bin/sh
PYTHON ?= python3
export PORT ?= 8000
venv := .venv
python := $(venv)/bin/python

.PHONY: run test lint bench vendor lock types

run: $(venv)/.runtime
	@exec $(python) manage.py up

test: $(venv)/.dev
	@exec $(python) tests/run.py

lint: $(venv)/.dev
	$(venv)/bin/ruff check .
	$(venv)/bin/ruff format --check .
	$(venv)/bin/mypy
	$(venv)/bin/lint-imports
	$(python) manage.py makemigrations --check --dry-run
	$(python) manage.py spectacular --fail-on-warn --file /dev/null
	@! grep -n '://' requirements/*.txt || { echo 'A lock names a host.'; exit 1; }

bench: $(venv)/.dev
	@$(python) tests/bench/run.py

vendor:
	sh deploy/vendor.sh

# needs uv
lock:
	for name in runtime dev; do uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -q \
	  requirements/$$name.in -o requirements/$$name.txt; done

# a stamp names the lock it was made from: a changed lock installs anew
$(venv)/.runtime: requirements/runtime.txt deploy/bootstrap.sh
	@sh deploy/bootstrap.sh "$(PYTHON)" $(venv) requirements/runtime.txt
	@touch $@

$(venv)/.dev: requirements/dev.txt deploy/bootstrap.sh
	@sh deploy/bootstrap.sh "$(PYTHON)" $(venv) requirements/dev.txt
	@touch $@ $(venv)/.runtime
