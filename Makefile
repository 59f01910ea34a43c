# Every target works on a fresh clone with python3 (3.11 or newer), make and git; CI calls `make test`, and `make test-all` at night.
#
#   make test T=tests/unit/analysis          only these files (ruff and mypy are left out)
#   make test TESTS='suffix or percent'      only the tests that match, stopping at the first failure
#   make test JOBS=8                         more workers than three

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Hundreds of tests start the program; without byte code files each start would compile all of it.
unexport PYTHONDONTWRITEBYTECODE

VENV ?= .venv
JOBS ?= 3
T =
TESTS =
PYTHON ?=
SIZE ?= 1GiB
ROUNDS ?= 5
INPUT =
DEMO_LOG ?= fixtures/logs/hf-trainer/crash-callback-v5.log

BIN := $(VENV)/bin
PY := $(BIN)/python
# Stamp files: an environment is created once, and updated only after pyproject.toml changes.
MADE := $(VENV)/.made
CORE := $(VENV)/.installed-core
DEV := $(VENV)/.installed-dev
COMPILED := receipt_cli/_compiled/definitions.jsonl
KERNEL := $(VENV)/.kernel
PYTEST := $(PY) -m pytest -n $(JOBS) --dist worksteal
SELECTED := $(strip $(T)$(TESTS))
CORE_TESTS := tests/unit tests/cli tests/golden tests/contract/test_schemas.py tests/contract/test_trust.py
# A fresh environment in build/FOLDER with the given dependency resolution: $(call fresh,FOLDER,RESOLUTION).
define fresh
	rm -rf build/$(1)
	$(PY) -m venv build/$(1)
	build/$(1)/bin/python -m pip install --quiet --disable-pip-version-check uv
	build/$(1)/bin/uv pip install --quiet --python build/$(1)/bin/python --resolution $(2) --editable '.[test]'
endef

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: demo
demo: $(CORE) ## install into .venv, parse the log of a failed run, show its card
	@test -f '$(DEMO_LOG)' || { echo "make: $(DEMO_LOG) is missing; set DEMO_LOG=path/to/a.log" >&2; exit 1; }
	@printf '\n$$ %s\n' '$(BIN)/receipt parse $(DEMO_LOG)'
	@$(BIN)/receipt parse '$(DEMO_LOG)'
	@printf '\n%s\n' 'The command is $(BIN)/receipt; try it with a log of yours.'

.PHONY: test
test: $(DEV) $(COMPILED) $(KERNEL) ## ruff, mypy --strict and the tests but the slow ones, side by side
ifeq ($(SELECTED),)
	@mkdir -p build
	$(BIN)/ruff check .
	@$(BIN)/mypy > build/mypy.txt 2>&1 & types=$$!; \
	$(PYTEST) -m 'not slow'; code=$$?; \
	wait $$types || code=1; cat build/mypy.txt; exit $$code
else
	$(PYTEST) $(T) $(if $(TESTS),-x -k '$(TESTS)')
endif

.PHONY: explore
explore: $(DEV) ## property tests on inputs never tried before (make test repeats the same ones)
	HYPOTHESIS_PROFILE=explore $(PYTEST) tests/property tests/unit

.PHONY: setup
setup: $(DEV) $(COMPILED) $(KERNEL) ## make .venv with all tools for a change

.PHONY: compile
compile: $(COMPILED) ## compile grammars/ and schemas/; files changed later are read as YAML

.PHONY: kernel
kernel: $(DEV) ## compile native/kernel.c into the package, if there is a C compiler; RECEIPT_KERNEL=0 removes it
	$(PY) hatch_build.py kernel

.PHONY: fuzz-kernel
fuzz-kernel: $(DEV) ## the fuzz targets of the kernel with one that is compiled under sanitizers; TIME= seconds, SEED=
	$(PY) -m tests.fuzz.kernel --seconds $(or $(TIME),60) --seed $(or $(SEED),1)

.PHONY: lint
lint: $(DEV) ## ruff check
	$(BIN)/ruff check .

.PHONY: type
type: $(DEV) ## mypy --strict
	$(BIN)/mypy

.PHONY: docs
docs: $(DEV) ## build the site of docs/ into build/site; a broken link or an unlisted page is an error
	test -x build/docs/bin/mkdocs || $(PY) -m venv build/docs
	build/docs/bin/python -m pip install --quiet --disable-pip-version-check 'mkdocs-material>=9.5'
	build/docs/bin/mkdocs build --strict --quiet
	@echo "build/site/index.html"

.PHONY: goldens
goldens: $(DEV) ## rewrite golden files, the help and features in docs, the manual page and the types of receipts; review the diff
	$(PYTEST) tests/golden tests/contract/test_matrix.py tests/contract/test_readme.py tests/contract/test_manual.py tests/contract/test_coverage.py tests/api/test_typing.py --rewrite-goldens

.PHONY: lint-grammars
lint-grammars: $(DEV) ## lint every shipped grammar
	$(BIN)/receipt grammar lint

.PHONY: freeze
freeze: $(DEV) ## write the digests of draft grammars and schemas into their index.yaml
	$(PY) tests/tools/freeze.py grammars/index.yaml schemas/index.yaml

.PHONY: version
version: $(DEV) ## set the version everywhere: VERSION=1.0.0rc1, a release with its date, or VERSION=1.0.0rc2.dev0, the next one
	$(PY) tests/tools/release.py set $(VERSION)
	$(PY) hatch_build.py

.PHONY: release-grammars
release-grammars: $(DEV) ## turn every draft of grammars and schemas into a released file, which never changes again; review the diff
	$(PY) tests/tools/freeze.py --release all
	$(PY) hatch_build.py
	$(PY) tests/tools/release.py keep

.PHONY: draft
draft: $(DEV) ## draft the next version of a released definition: OF=nanogpt, a grammar; OF=receipt, a schema; OF=metrics, markers, rules
	$(PY) tests/tools/release.py draft $(OF)
	$(PY) tests/tools/freeze.py
	$(PY) hatch_build.py

.PHONY: wheel-check
wheel-check: $(DEV) ## build the wheel with the kernel and the pure one, install each, use both outside the checkout
	rm -rf build/wheel-check
	@set -e; for kernel in 1 0; do \
	  folder=build/wheel-check/$$kernel; \
	  RECEIPT_KERNEL=$$kernel $(PY) -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir $$folder .; \
	  $(PY) -m venv $$folder/venv; \
	  $$folder/venv/bin/python -m pip install --quiet --disable-pip-version-check $$folder/*.whl; \
	  (checkout=$$PWD; receipt=$$PWD/$$folder/venv/bin/receipt; cd /; set -x; \
	    $$receipt --version; $$receipt grammar list > /dev/null; \
	    $$receipt parse "$$checkout/$(DEMO_LOG)" --json > "$$checkout/$$folder/receipt.json"); \
	done; ls build/wheel-check/*/*.whl; cmp build/wheel-check/0/receipt.json build/wheel-check/1/receipt.json
	$(PY) hatch_build.py kernel  # each build leaves its own in the checkout

.PHONY: newcomer
newcomer: $(DEV) $(COMPILED) ## install the wheel into a fresh environment; follow README, tutorial, completion and man there, offline
	rm -rf build/newcomer
	$(PY) -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir build/newcomer .
	$(PY) -m venv build/newcomer/venv
	build/newcomer/venv/bin/python -m pip install --quiet --disable-pip-version-check "$$(ls build/newcomer/*.whl)[store]"
	$(PY) -m tests.tools.newcomer build/newcomer/venv
	$(PY) hatch_build.py kernel  # the build leaves its own in the checkout

.PHONY: release-check
release-check: $(DEV) ## the release without the upload: sdist, both wheels, twine check, each installed Python; PYTHONS=
	rm -rf build/release && mkdir -p build/release
	$(PY) -m venv build/release/tools
	build/release/tools/bin/python -m pip install --quiet --disable-pip-version-check build twine
	build/release/tools/bin/python -m build --sdist --outdir build/release/dist . > build/release/sdist.txt
	@set -e; for kernel in 1 0; do \
	  RECEIPT_KERNEL=$$kernel build/release/tools/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps \
	    --wheel-dir build/release/dist build/release/dist/*.tar.gz; \
	done
	build/release/tools/bin/twine check --strict build/release/dist/*
	@set -e; for python in $(or $(PYTHONS),python3.11 python3.12 python3.13 python3.14); do \
	  if ! "$$python" -c 'import venv, ensurepip' 2> /dev/null; then echo "$$python: not here"; continue; fi; \
	  for wheel in $$(ls build/release/dist/*.whl); do \
	    rm -rf build/release/venv; "$$python" -m venv build/release/venv; \
	    build/release/venv/bin/python -m pip install --quiet --disable-pip-version-check "$$wheel"; \
	    (cd /; "$$OLDPWD/build/release/venv/bin/receipt" parse "$$OLDPWD/$(DEMO_LOG)" --json) > build/release/receipt.json; \
	    test -f build/release/first.json || cp build/release/receipt.json build/release/first.json; \
	    cmp build/release/first.json build/release/receipt.json; \
	    echo "$$python $$(basename $$wheel): $$(build/release/venv/bin/receipt --version)"; \
	  done; \
	done

.PHONY: sbom
sbom: ## write build/sbom.cdx.json, a CycloneDX bill of an installation's packages
	rm -rf build/sbom && $(firstword $(PYTHON) python3) -m venv build/sbom
	build/sbom/bin/python -m pip install --quiet --disable-pip-version-check .
	$(firstword $(PYTHON) python3) -m venv build/cyclonedx
	build/cyclonedx/bin/python -m pip install --quiet --disable-pip-version-check 'cyclonedx-bom>=5'
	build/cyclonedx/bin/cyclonedx-py environment --pyproject pyproject.toml --mc-type application --output-reproducible \
	  --output-file build/sbom.cdx.json build/sbom/bin/python
	@echo "build/sbom.cdx.json"

.PHONY: bench
bench: $(DEV) ## compare this program with others on generated logs: one table; SIZE=1GiB ROUNDS=5
	$(PY) -m benchmarks.compare --size $(SIZE) --rounds $(ROUNDS)
	$(MAKE) bench-real SIZE=12MB

.PHONY: goals
goals: $(DEV) ## the goals of speed and memory in one interleaved run, into benchmarks/results/goals.md; SIZE= ROUNDS=3 FOLDER=
	$(PY) -m benchmarks.goals --size $(if $(filter command line,$(origin SIZE)),$(SIZE),256MiB) --memory 1GiB \
	  --rounds $(if $(filter command line,$(origin ROUNDS)),$(ROUNDS),3) \
	  $(if $(wildcard $(or $(FOLDER),../shared/corpus)),--folder $(or $(FOLDER),../shared/corpus)) --results benchmarks/results/goals.md

.PHONY: bench-real
bench-real: $(DEV) ## MB/s of the scan on real logs, a folder a row, into benchmarks/results/real_logs.md; FOLDER= SIZE=12MB
	$(PY) -m benchmarks.real_logs $(or $(FOLDER),../shared/corpus) \
	  --size $(if $(filter command line,$(origin SIZE)),$(SIZE),12MB) --results benchmarks/results/real_logs.md

.PHONY: bench-lines
bench-lines: $(DEV) ## the cost of a line in a long log of each fixture, and its growth, into benchmarks/results/lines.md; FOLDER=
	$(PY) -m benchmarks.stretched $(or $(FOLDER),fixtures/logs) --results benchmarks/results/lines.md

.PHONY: bench-quick
bench-quick: $(DEV) ## bench on 64 MiB, without memory and growth; SIZE= ROUNDS= INPUT=dense
	$(PY) -m benchmarks.compare --size $(if $(filter command line,$(origin SIZE)),$(SIZE),64MiB) \
	  --rounds $(if $(filter command line,$(origin ROUNDS)),$(ROUNDS),3) \
	  $(addprefix --input ,$(INPUT)) --no-growth --results build/bench/results

.PHONY: bench-peers
bench-peers: $(DEV) ## install the Python programs of the comparison under build/
	$(PY) -m pip install --quiet --disable-pip-version-check --upgrade --target build/bench/peers pygrok drain3
	$(PY) -m pip install --quiet --disable-pip-version-check --upgrade --target build/bench/peers --no-deps mlperf-logging

.PHONY: bench-start
bench-start: $(DEV) ## the cold start of commands
	$(PY) -m benchmarks.cold_start

.PHONY: bench-emit
bench-emit: $(DEV) ## the cost of receipt_cli.emit in a training loop
	$(PY) -m benchmarks.emit

.PHONY: bench-run
bench-run: $(DEV) ## the cost of receipt run for a job that prints ten thousand lines a second
	$(PY) -m benchmarks.run_overhead

.PHONY: bench-stages
bench-stages: $(DEV) ## the time of one parse by stage; SIZE= INPUT=sparse
	$(PY) -m benchmarks.stages --size $(if $(filter command line,$(origin SIZE)),$(SIZE),64MiB) $(addprefix --input ,$(INPUT))

.PHONY: bench-scaling
bench-scaling: $(DEV) ## time and memory over size (to 10 GB), over grammars and over patterns
	$(PY) -m benchmarks.scaling

.PHONY: soak
soak: $(DEV) ## reading by layout against the patterns on a folder of logs and mutated copies; FOLDER= COPIES=1000
	$(PY) -m benchmarks.identity $(or $(FOLDER),fixtures/logs) --copies $(or $(COPIES),1000)

.PHONY: soak-receipts
soak-receipts: $(DEV) ## the receipts of a folder's logs with the kernel and without it, as bytes; FOLDER=
	$(PY) -m benchmarks.identity $(or $(FOLDER),fixtures/logs) --receipts

.PHONY: test-cuts
test-cuts: $(DEV) ## every fixture cut at 50 places: no figure that the whole log does not print; CUTS=50
	CUTS=$(or $(CUTS),50) $(PY) -m pytest -q tests/property/test_segmentation.py -k cut_log

.PHONY: metamorphic
metamorphic: $(DEV) ## logs appended, interleaved, concatenated: how many give other figures; endings after heads; FOLDER= JOBS= ARGS=--details
	$(PY) -m benchmarks.metamorphic $(FOLDER) $(ARGS)
	$(PY) -m benchmarks.metamorphic.heads --write
	$(PY) -m benchmarks.metamorphic.table $(FOLDER) --jobs $(or $(JOBS),1) $(if $(FOLDER),,--write benchmarks/results/metamorphic.md)

.PHONY: fuzz
fuzz: $(DEV) ## fuzz every boundary, coverage-guided if atheris can be installed; TIME= seconds a process, TARGET=, SEED=, JOBS=, RESULTS=
	-$(PY) -m pip install --quiet --disable-pip-version-check 'atheris>=2.3'
	$(PY) -m tests.fuzz $(TARGET) --seconds $(or $(TIME),60) --seed $(or $(SEED),1) --jobs $(or $(JOBS),1) \
	  $(addprefix --results ,$(RESULTS))

.PHONY: fit-reading
fit-reading: $(DEV) ## weights of the evidence by which unknown logs are read, from benchmarks/data/reading.txt; COLLECT=1 reads the logs again
	$(PY) -m benchmarks.fit_reading --write $(if $(COLLECT),--collect)

.PHONY: calibrate
calibrate: $(DEV) ## how often compare calls equal runs different, simulated and real, into benchmarks/results; TRIALS=400 FOLDER=
	$(PY) -m benchmarks.calibration --trials $(or $(TRIALS),400) --folder $(or $(FOLDER),../shared/corpus) \
	  --results benchmarks/results/calibration.json

.PHONY: same-run
same-run: $(DEV) ## the verdicts of compare on 200 simulated pairs of runs and 20 made of real logs, into benchmarks/results; FOLDER=
	$(PY) -m benchmarks.same_run $(wildcard $(or $(FOLDER),../shared/corpus)) --results benchmarks/results/same-run.md

.PHONY: cards
cards: $(DEV) ## the cards of a folder's logs; fails if one has more than eight lines or 80 columns; FOLDER=
	$(PY) -m benchmarks.cards $(or $(FOLDER),fixtures/logs)

.PHONY: answers
answers: $(DEV) ## check that the card of a failed log names the line with the cause, and the last step; CORPUS= a folder with truth.jsonl
	$(PY) -m benchmarks.answers $(or $(CORPUS),../shared/corpus) --details

.PHONY: ledger-report
ledger-report: $(DEV) ## every labelled number and every second of the fixtures and a folder's logs, into benchmarks/results; FOLDER=
	$(PY) -m benchmarks.ledger fixtures/logs $(or $(FOLDER),../shared/corpus) --write

.PHONY: patterns
patterns: $(DEV) ## the time of every pattern on its slowest records: one table
	$(PY) -m benchmarks.patterns --whole

.PHONY: torture
torture: $(DEV) ## hostile and huge logs, failing calls and signals, into benchmarks/results/torture.json; SCALE=1 EACH=40 TIMES=200
	$(PY) -m benchmarks.torture --scale $(or $(SCALE),1) --results benchmarks/results/torture.json
	$(PY) -m benchmarks.torture.injected --each $(or $(EACH),1000) --results benchmarks/results/torture.json
	$(PY) -m benchmarks.torture.faults --each $(or $(EACH),40) --results benchmarks/results/torture.json
	$(PY) -m benchmarks.torture.signals --times $(or $(TIMES),200) --results benchmarks/results/torture.json

.PHONY: archive
archive: $(DEV) ## derive an archive of many logs made of a folder's, twice; FOLDER= LOGS=10000
	$(PY) -m benchmarks.archive $(or $(FOLDER),fixtures/logs) --logs $(or $(LOGS),10000)

.PHONY: archive-edited
archive-edited: $(DEV) ## derive edited copies of real logs: every run must have path, name and time, every path its line; FOLDER= LOGS=2000
	$(PY) -m benchmarks.edited $(or $(FOLDER),../shared/corpus) --logs $(or $(LOGS),2000)

.PHONY: archive-kill
archive-kill: $(DEV) ## kill batches at random moments and resume them: the store must be the same; FOLDER= KILLS=50
	$(PY) -m benchmarks.kill $(or $(FOLDER),fixtures/logs) --kills $(or $(KILLS),50)

.PHONY: test-all
test-all: $(DEV) $(COMPILED) $(KERNEL) trainers ## every test, with TensorBoard, W&B, MLflow, Ray and trainers installed; into benchmarks/results/test-all.md; T=
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev,readers,ray]'
	TRAINER_PYTHON=$(abspath build/trainers/bin/python) $(PY) -m benchmarks.test_all --jobs $(JOBS) \
	  $(if $(T),$(T),--results benchmarks/results/test-all.md)

.PHONY: test-lines
test-lines: $(DEV) $(COMPILED) $(KERNEL) trainers ## the lines that make test runs, of those that make test-all runs; into benchmarks/results/test-all.md
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev,readers,ray]'
	TRAINER_PYTHON=$(abspath build/trainers/bin/python) $(PY) -m benchmarks.test_lines --jobs $(JOBS) --results benchmarks/results/test-all.md

.PHONY: trainers
trainers: $(MADE) ## install torch, Transformers, Accelerate, Lightning and Keras under build/; TORCH=torch==2.13.0
	test -x build/trainers/bin/python || $(PY) -m venv build/trainers
	build/trainers/bin/python -m pip install --quiet --disable-pip-version-check '$(or $(TORCH),torch)' accelerate transformers lightning keras numpy

.PHONY: test-trainers
test-trainers: $(DEV) trainers ## how jobs of these trainers end, and what their callbacks print
	TRAINER_PYTHON=$(abspath build/trainers/bin/python) $(PY) -m pytest -s tests/trainers

.PHONY: test-lowest
test-lowest: $(MADE) ## the core's tests with the lowest version of each dependency that pyproject.toml allows; T=
	$(call fresh,lowest,lowest-direct)
	build/lowest/bin/python -m pytest -n $(JOBS) $(or $(T),$(CORE_TESTS))

.PHONY: test-newest
test-newest: $(MADE) ## the core's tests with the newest available version of each dependency
	$(call fresh,newest,highest)
	build/newest/bin/python -m pytest -n $(JOBS) $(or $(T),$(CORE_TESTS))

.PHONY: audit
audit: $(MADE) ## ask the Python advisory database about our dependencies: the lowest allowed versions, and the newest
	rm -rf build/audit
	$(PY) -m venv build/audit
	build/audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit uv
	@set -e; for versions in highest lowest-direct; do \
	  echo "auditing $$versions"; \
	  build/audit/bin/uv pip compile --quiet --extra store --extra remote --extra nvml --resolution $$versions \
	    --output-file build/audit/$$versions.txt pyproject.toml; \
	  build/audit/bin/pip-audit --strict --disable-pip --no-deps --progress-spinner off --requirement build/audit/$$versions.txt; \
	done

.PHONY: bench-guard
bench-guard: $(DEV) ## counted work against the bounds in benchmarks/guard.json
	$(PY) -m benchmarks.guard

.PHONY: coverage
coverage: $(DEV) ## tests with branch coverage
	$(PYTEST) --cov --cov-report=term-missing

.PHONY: clean
clean: ## remove .venv, builds and caches
	rm -rf '$(VENV)' build dist receipt_cli/_compiled receipt_cli/scan/kernel/_native*.so .coverage .coverage.* htmlcov .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name .git -prune -o -type d -name __pycache__ -prune -exec rm -rf {} +

$(MADE):
	@set -e; \
	found=; fits='import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))'; \
	for candidate in $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11); do \
	  if "$$candidate" -c "$$fits" 2> /dev/null; then found=$$candidate; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo 'make: Python 3.11 or newer with the venv module is needed, and none was found.' >&2; \
	  echo '  found: '"$$($(or $(PYTHON),python3) --version 2>&1)" >&2; \
	  echo '  try:   make PYTHON=/path/to/python3.11 (on Debian and Ubuntu venv is the package python3-venv)' >&2; \
	  exit 1; \
	fi; \
	echo "making $(VENV) with $$("$$found" --version)"; \
	rm -rf '$(VENV)'; "$$found" -m venv '$(VENV)'; touch $@

$(CORE): pyproject.toml | $(MADE)
	$(PY) -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(COMPILED): hatch_build.py $(wildcard grammars/*.yaml grammars/*/*.yaml schemas/*.yaml schemas/*/*) \
    $(wildcard receipt_cli/*.py $(foreach room,definitions documents grammar learn,receipt_cli/$(room)/*.py)) | $(DEV)
	$(PY) hatch_build.py

$(KERNEL): native/kernel.c hatch_build.py | $(DEV)
	$(PY) hatch_build.py kernel
	@touch $@

$(DEV): pyproject.toml | $(MADE)
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(CORE) $@
