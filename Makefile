# Each target does its own set-up; `make help` lists them.
PYTHON ?= python3
BIN := .venv/bin
PACKAGES := firsttoken slo sidecar collector alerts dashboards capacity demo_server
DEMO_ARGS ?=
PYTEST_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo test tools test-engines check generate check-dashboards draw-dashboards bench corpus attribution paging queues engine kernels soak torture audit victoria clickhouse release-check check-deploy docs clean prerequisites

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(BIN)/.dev ## make .venv with everything that development needs
	@echo "ready: $(BIN)/firsttoken --help"

demo: $(BIN)/.demo ## run the whole story on this machine: load, an incident, a page, recovery
	@$(BIN)/firsttoken demo $(DEMO_ARGS)

test: tools check ## run the checks, then every test against the real tools
	@$(BIN)/python -m pytest --numprocesses auto --maxprocesses 8 --dist loadfile $(PYTEST_ARGS)

# Before the checks: one of them needs npm.
tools:
	@tests/install_tools.sh

test-engines: $(BIN)/.dev ## measure beside a real llama.cpp; with PYTEST_ARGS="-m vllm" beside a real vLLM
	@$(BIN)/python -m pytest tests/engines $(PYTEST_ARGS)

check: $(BIN)/.dev ## format, lint, types, import contracts; the dashboards by Grafana's own types (npm)
	@$(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache >/dev/null || $(BIN)/lint-imports --no-cache
	@$(BIN)/python -m tests.dashboards.types.check

generate: $(BIN)/.dev ## write alerts/generated, dashboards/generated, Grafana's alert rules and the generated docs anew
	@$(BIN)/firsttoken alerts build --slo slo.yaml --out alerts/generated
	@for kind in prometheus postgres sqlite; do \
		$(BIN)/firsttoken dashboards build --slo slo.yaml --datasource $$kind --out dashboards/generated/$$kind || exit 1; done
	@made=$$(mktemp -d) && $(BIN)/firsttoken alerts build --slo slo.yaml --out $$made --grafana-datasource prometheus >/dev/null && \
		install -m 644 $$made/*.grafana.yaml deploy/grafana/alerting/ && rm -r $$made
	@$(BIN)/python -m tests.generate_docs
	@install -m 644 slo.yaml deploy/kubernetes/base/slo.yaml

check-dashboards: $(BIN)/.dev ## every panel of every dashboard asked on a real demo, 3 minutes
	@$(BIN)/python -m tests.dashboards.demo_panels

draw-dashboards: $(BIN)/.dev ## every dashboard drawn by Grafana's own libraries (npm, 500 MB) in Chromium, over a real demo, 5 minutes
	@tests/install_tools.sh
	@cd tests/dashboards/drawn && npm ci --silent && npm run --silent build
	@$(BIN)/python -m tests.dashboards.drawn.draw

check-deploy: $(BIN)/.dev ## deploy/ by helm, kustomize, hadolint and the schemas of Kubernetes, and each image's install, 4 minutes
	@$(BIN)/python -m tests.deploy.check

docs: $(BIN)/.dev ## the documentation as a site in ./site, every link checked
	@$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	@$(BIN)/mkdocs build --strict --quiet && echo "site/index.html"

bench: $(BIN)/.dev ## measure every promise of speed, about 15 minutes
	@for script in bench/middleware.py bench/proxy.py bench/collector.py bench/page.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

corpus: $(BIN)/.dev ## judge 850 months of incidents by our burn tiers and by the classic set, about 3 minutes
	@$(BIN)/python bench/alerts.py

attribution: $(BIN)/.dev ## put faults into a live server and look at the causes that alerts give, about 25 minutes
	@$(BIN)/python bench/attribution.py --check

paging: $(BIN)/.dev ## incidents and quiet hours of live services: one page each or none, by Prometheus and by the collector, about 13 minutes
	@tests/install_tools.sh
	@$(BIN)/python bench/paging.py

queues: $(BIN)/.dev ## let capacity certify and batch loose on simulated servers whose answers are known, about 2 minutes
	@$(BIN)/python bench/capacity.py --check

engine: $(BIN)/.demo ## measure the demo engine's decode steps by batch, half a minute
	@$(BIN)/python bench/engine.py --check

kernels: $(BIN)/.dev ## the demo engine's Triton kernels without a GPU, interpreted and compiled: 200 MB to fetch, 2 minutes
	@test -d .venv-triton || $(BIN)/pip install --quiet --disable-pip-version-check --no-deps --target .venv-triton triton==3.7.1
	@PYTHONPATH=.venv-triton $(BIN)/python -m pytest tests/demo_server/test_kernels.py -m triton $(PYTEST_ARGS)

soak: $(BIN)/.dev ## 10 minutes of 200 streams with everything going wrong: nothing lost, nothing leaked
	@$(BIN)/python bench/soak.py --check

torture: $(BIN)/.dev ## 17 minutes of kill -9, full disks and databases that are away: counted once, all of it
	@TORTURE=long $(BIN)/python -m pytest tests/collector/torture $(PYTEST_ARGS)

victoria: $(BIN)/.dev ## the generated rules in VictoriaMetrics and vmalert (Debian's victoria-metrics), 2 minutes
	@$(BIN)/python -m pytest tests/alerts/test_victoriametrics.py -m victoria $(PYTEST_ARGS)

clickhouse: $(BIN)/.dev ## the tests of ClickHouse against its engine, in process: 181 MB to fetch, 5 minutes
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --constraint constraints.txt chdb-core
	@$(BIN)/python -m pytest tests/collector/clickhouse -m clickhouse $(PYTEST_ARGS)

release-check: $(BIN)/.dev ## build the archive and the wheel, and try each extra in an empty environment, about 9 minutes
	@$(BIN)/python -m pytest tests/test_release.py -m release $(PYTEST_ARGS)

audit: $(BIN)/.dev ## known vulnerabilities of all that constraints.txt pins, by the data of the Python index, and licences
	@test -x .venv-audit/bin/pip-audit || { $(PYTHON) -m venv .venv-audit && .venv-audit/bin/pip install --quiet pip-audit==2.10.1; }
	@$(BIN)/python -m pytest --quiet tests/test_licences.py
	@.venv-audit/bin/pip-audit --strict --no-deps --disable-pip --requirement constraints.txt

clean: ## remove what the targets made
	rm -rf .venv .venv-vllm .venv-rotel .venv-deploy .venv-audit .venv-triton .demo build dist site artifacts *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage \
		tests/dashboards/types/node_modules tests/dashboards/drawn/node_modules tests/dashboards/drawn/dist tests/collector/pages/axe/node_modules

prerequisites:
	@command -v git >/dev/null || { echo "git is missing: apt-get install git"; exit 1; }
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is missing: apt-get install python3 python3-venv"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$$($(PYTHON) --version) is too old, 3.11 or newer is needed: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "python3-venv is missing: apt-get install python3-venv"; exit 1; }

# A stamp says which extra is installed; [dev] holds all of [demo].
$(BIN)/.demo: pyproject.toml constraints.txt | prerequisites
	@test -x $(BIN)/pip || { echo "making .venv"; $(PYTHON) -m venv .venv; }
	@echo "installing firsttoken[demo] into .venv (minutes the first time; torch is the large part)"
	@$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[demo]'
	@touch $@

$(BIN)/.dev: $(BIN)/.demo
	@echo "installing firsttoken[dev] into .venv"
	@$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@
