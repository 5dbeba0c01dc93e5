# `make run` and `make test` need python3 (3.11 or newer) with its venv module, and nothing else.
SHELL := /bin/sh
PYTHON ?= python3
export PORT ?= 8000
venv := .venv
python := $(venv)/bin/python

.PHONY: run test lint bench vendor lock runtime dev cluster-up cluster-down test-cluster

run:
	@sh deploy/bootstrap.sh "$(PYTHON)" $(venv) requirements/runtime.txt "$$PORT"
ifneq ($(LDAP)$(LDAP_URL),)
	@sh deploy/bootstrap.sh "$(PYTHON)" $(venv) requirements/ldap.txt
endif
ifneq ($(OIDC_ISSUER),)
	@sh deploy/bootstrap.sh "$(PYTHON)" $(venv) requirements/oidc.txt
endif
ifeq ($(CLUSTER),dev)
	@$(python) -m deploy.devcluster up
	@clusters=$$($(python) -m deploy.devcluster connect) && \
	  TRAINHALL_CLUSTERS="$$clusters" TRAINHALL_DEMO_IMAGE=localhost/python:1 exec $(python) manage.py up
else
	@exec $(python) manage.py up
endif

test: dev
	@exec $(python) tests/run.py

lint: dev
	$(python) -m ruff check .
	$(python) -m ruff format --check .
	$(python) -m mypy
	$(venv)/bin/lint-imports
	$(python) manage.py makemigrations --check --dry-run
	$(python) manage.py spectacular --fail-on-warn --file /dev/null
	@! grep -n '://' requirements/*.txt || { echo 'A lock names a host.'; exit 1; }

bench: dev
	@exec $(python) tests/bench/run.py

# a real Kubernetes on this machine: deploy/devcluster/README.md
cluster-up: runtime
	@exec $(python) -m deploy.devcluster up

cluster-down: runtime
	@exec $(python) -m deploy.devcluster down

# against any other cluster with TRAINHALL_TEST_KUBECONFIG
test-cluster: dev
	@$(python) -m pytest -q -m cluster -n 2 --dist loadscope --ignore=tests/cluster/browser tests/cluster; \
	  one=$$?; $(python) -m pytest -q -m cluster tests/cluster/browser && exit $$one

vendor:
	sh deploy/vendor.sh

# needs uv
lock:
	for name in runtime dev export ldap oidc; do uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -q \
	  requirements/$$name.in -o requirements/$$name.txt; done

runtime:
	@sh deploy/bootstrap.sh "$(PYTHON)" $(venv) requirements/runtime.txt

dev:
	@sh deploy/bootstrap.sh "$(PYTHON)" $(venv) requirements/dev.txt
