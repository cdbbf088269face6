# A bare `make` explains the targets. Everything lives in this folder: .venv (the packages),
# .quotagate (the running stack and its data) and build. `make down` and `make clean` remove them.

PYTHON ?= python3
ADMISSION ?= 1
EDGE_PROXY ?= 1
TIER_CACHE ?= 1
SETTLEMENT ?= 1
WORKERS ?= 3

VENV := .venv
READY := $(VENV)/.ready
PEERS := build/peers
BIN := $(VENV)/bin
PACKAGES := shared lua infra infra/fake-provider $(sort $(wildcard services/*))
PROJECTS := pyproject.toml $(addsuffix /pyproject.toml,$(PACKAGES))
SOURCES := shared/src lua/redis_scripts infra/src infra/fake-provider/src infra/migrations \
	$(sort $(wildcard services/*/src))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup up stop down ps logs test faults faults-short faults-bugs bench bench-short \
	bench-peers check format docs lock clean

help: ## this text
	@echo 'Quotagate: admission control for LLM traffic.'
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo 'Python 3.11 or newer: make PYTHON=/path/to/python3 ...  (now: $(PYTHON))'

# The packages are named by absolute paths in the venv: a folder that was moved needs a new one.
ifneq ($(shell cat $(VENV)/.where 2>/dev/null),$(shell pwd))
.PHONY: $(READY)
CLEAR := --clear
endif

$(READY): requirements.lock $(PROJECTS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo 'Quotagate needs Python 3.11 or newer, and $(PYTHON) is not:' >&2; \
		$(PYTHON) --version >&2; \
		echo 'Name one: make PYTHON=/path/to/python3 ...' >&2; \
		exit 1; }
	@echo 'Setting up $(VENV) with the packages of requirements.lock ...'
	@$(PYTHON) -m venv $(CLEAR) $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes \
		--requirement requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps \
		--no-build-isolation $(addprefix --editable ./,$(PACKAGES))
	@pwd > $(VENV)/.where
	@touch $@

setup: $(READY) ## install the packages that the lock names into .venv

up: $(READY) ## start everything; more processes with: make up ADMISSION=2 EDGE_PROXY=2
	@$(BIN)/python -m quotagate up --scale admission=$(ADMISSION) --scale edge-proxy=$(EDGE_PROXY) \
		--scale tier-cache=$(TIER_CACHE) --scale settlement=$(SETTLEMENT)

stop: $(READY) ## stop everything and keep its data
	@$(BIN)/python -m quotagate stop

down: ## stop everything and remove all it made, data included
	@if [ -d .quotagate ] || [ -n "$$QUOTAGATE_STACK_DIR" ]; then \
		$(MAKE) --silent --no-print-directory $(READY) && $(BIN)/python -m quotagate down; \
	else echo 'Nothing is there.'; fi

ps: $(READY) ## show each process: state, health, port
	@$(BIN)/python -m quotagate ps

logs: $(READY) ## show the logs' last lines; NAME=admission for one, F=-f to follow
	@$(BIN)/python -m quotagate logs $(NAME) $(F)

test: $(READY) ## run all tests, on real servers on free ports; some: ARGS=tests/unit WORKERS=0
	@$(BIN)/python -m pytest --numprocesses=$(WORKERS) --dist=loadfile $(ARGS)

faults: $(READY) ## the long fault suite: 220 faults, and no promise broken; repeat with: SEED=1
	@PYTHONPATH=tests $(BIN)/python -m faults storm $(if $(SEED),--seed $(SEED))

faults-short: $(READY) ## the short one, under three minutes
	@PYTHONPATH=tests $(BIN)/python -m faults tour $(if $(SEED),--seed $(SEED))

faults-bugs: $(READY) ## sow each bug of the fault suite into a copy of the code; each must be caught
	@PYTHONPATH=tests $(BIN)/python -m faults bugs $(if $(NAME),--name "$(NAME)")

bench: $(READY) ## measure speed, some minutes; build/bench.json; watch memory longer with: SOAK=600
	@PYTHONPATH=tests $(BIN)/python -m bench long $(if $(SOAK),--soak $(SOAK))

bench-peers: $(READY) ## the same load on two other gateways, which it installs into build/peers
	@test -x $(PEERS)/litellm/bin/litellm || { \
		$(PYTHON) -m venv $(PEERS)/litellm; \
		$(PEERS)/litellm/bin/python -m pip install --quiet --disable-pip-version-check \
			'litellm[proxy]'; }
	@test -d $(PEERS)/portkey/node_modules || { \
		mkdir -p $(PEERS)/portkey; \
		npm install --silent --no-audit --no-fund --prefix $(PEERS)/portkey @portkey-ai/gateway; }
	@PYTHONPATH=tests $(BIN)/python -m bench.peers

bench-short: $(READY) ## the short form, about a minute on a quiet machine
	@PYTHONPATH=tests $(BIN)/python -m bench short

check: $(READY) ## check format, lint, types, and that generated documents are up to date
	@$(BIN)/python -m ruff format --check .
	@$(BIN)/python -m ruff check .
	@$(BIN)/python -m mypy $(SOURCES) tests
	@$(BIN)/python -m contracts.asyncapi | cmp - docs/asyncapi.json || { \
		echo 'docs/asyncapi.json is out of date: make docs' >&2; exit 1; }
	@$(BIN)/python -m quotagate.settings_page | cmp - docs/settings.md || { \
		echo 'docs/settings.md is out of date: make docs' >&2; exit 1; }

format: $(READY) ## format the code and sort its imports
	@$(BIN)/python -m ruff format .
	@$(BIN)/python -m ruff check --fix .

docs: $(READY) ## generate the documents that come from the code
	@$(BIN)/python -m contracts.asyncapi > docs/asyncapi.json
	@$(BIN)/python -m quotagate.settings_page > docs/settings.md

lock: ## write requirements.lock; newer versions with: UPGRADE=--upgrade
	@$(PYTHON) -m venv build/lock
	@build/lock/bin/python -m pip install --quiet --disable-pip-version-check uv
	@build/lock/bin/python -m uv pip compile --quiet $(UPGRADE) --universal --generate-hashes \
		--no-emit-index-url --python-version 3.11 --no-annotate --all-extras \
		--no-emit-package quotagate-shared --no-emit-package quotagate-redis-scripts \
		--custom-compile-command 'make lock' --output-file requirements.lock $(PROJECTS)

clean: down ## remove .venv, build and the caches too
	@rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
