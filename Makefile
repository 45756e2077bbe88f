# Everything happens inside this checkout; the environment is .venv.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
BENCH ?=
SEEDS ?= 20000
CASES ?= 200000
N ?= 4
SOAK ?=

# What tests and people need beside Python: real sshd hosts in namespaces, the programs to look into them, and a
# browser for the reports.
PACKAGES := openssh-server openssh-client iproute2 util-linux procps sudo chromium fonts-dejavu-core
PROGRAMS := /usr/sbin/sshd ssh ip unshare nsenter setpriv ps sudo chromium
JAVA := openjdk-17-jre-headless

BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: help setup packages java demo test testbed lint typecheck format bench bench-matching bench-broker bench-deploy bench-console bench-spark screenshots soak soak-spark sim mutants fuzz clean

help: ## show this list
	@echo 'usage: make <target>'
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(INSTALLED) ## make .venv and install everything into it (about a minute the first time)

packages: # Debian packages of which a program is missing; only tests need them
	@for program in $(PROGRAMS); do \
	    command -v $$program >/dev/null && continue; \
	    echo "setup: $$program is missing, installing $(PACKAGES)"; \
	    test "$$(id -u)" = 0 || { echo 'setup: please run: apt-get install $(PACKAGES)' >&2; exit 1; }; \
	    export DEBIAN_FRONTEND=noninteractive; \
	    apt-get install -y -q $(PACKAGES) || { apt-get update -q && apt-get install -y -q $(PACKAGES); }; \
	    break; \
	done

java: # for Spark: the analysis
	@if ! command -v java >/dev/null; then \
	    echo 'setup: Java is missing, installing $(JAVA)'; \
	    test "$$(id -u)" = 0 || { echo 'setup: please run: apt-get install $(JAVA)' >&2; exit 1; }; \
	    export DEBIAN_FRONTEND=noninteractive; \
	    apt-get install -y -q $(JAVA) || { apt-get update -q && apt-get install -y -q $(JAVA); }; \
	fi

# pyspark is built from its source archive and is most of that minute.
$(INSTALLED): pyproject.toml
	@if ! $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null; then \
	    echo 'setup: python3-venv is missing, installing it'; \
	    test "$$(id -u)" = 0 || { echo 'setup: please run: apt-get install python3-venv' >&2; exit 1; }; \
	    export DEBIAN_FRONTEND=noninteractive; \
	    apt-get install -y -q python3-venv || { apt-get update -q && apt-get install -y -q python3-venv; }; \
	fi
	@echo 'setup: installing into .venv'
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --no-cache-dir --disable-pip-version-check --no-input --progress-bar off \
	    -e '.[dev]' | { grep -v '^Requirement already satisfied' || true; }
	@touch $@
	@echo 'setup: done'

demo: setup java ## deploy a topology on this machine, break a link, and see what was delivered
	$(BIN)/panda run topologies/stock-quotes.txt --local

test: packages java lint typecheck ## everything that continuous integration runs
	$(BIN)/pytest -n 2

testbed: setup packages ## N real hosts to try panda on, until ^C (default 4)
	@$(BIN)/python -m tests.testbed up --hosts $(N)

lint: setup ## style, formatting and import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache --no-logo

typecheck: setup ## mypy, strict
	$(BIN)/mypy

format: setup ## rewrite the code in the house's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup ## all benchmarks, or one: make bench BENCH=matching
	$(BIN)/python -m benchmarks $(BENCH)

bench-matching: setup ## the matching engines against each other
	$(BIN)/python -m benchmarks matching

bench-broker: setup ## brokers on loopback
	$(BIN)/python -m benchmarks broker

bench-deploy: setup packages ## deploying 100 brokers against a playbook that does the same
	$(BIN)/python -m benchmarks deploy

bench-console: setup ## the console's overlay with 100 brokers: from a key to the screen, processor, memory
	$(BIN)/python -m benchmarks console

bench-spark: setup java ## the analysis of 100,000 to 10 million events against a plain Python program
	$(BIN)/python -m benchmarks spark

screenshots: setup ## pictures of the console for docs/, made of a real run on this machine
	$(BIN)/python -m tests.screenshots

soak: setup packages ## the long runs of deployments on real hosts, or one: make soak SOAK=gate
	$(BIN)/python -m tests.soak $(SOAK)

soak-spark: setup java ## the long tests of the analysis: tables that grow and break, odd runs
	$(BIN)/pytest tests/spark/long_lake.py tests/spark/long_edges.py

sim: setup ## simulate SEEDS executions under faults (default 20000)
	$(BIN)/python -m broker_runtime.sim run --seeds $(SEEDS)

mutants: setup ## plant known bugs and see the simulator find each
	$(BIN)/python -m broker_runtime.sim mutants

fuzz: setup ## throw CASES broken inputs at the parser and the wire (default 200000)
	$(BIN)/python -m broker_runtime.sim fuzz --cases $(CASES)

clean: ## remove .venv, build output, caches and runs/
	rm -rf ./.venv ./build ./dist ./runs ./.hypothesis ./.mypy_cache ./.pytest_cache ./.ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
