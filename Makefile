# The verbs that a person, `.ci/run` and the GitHub workflow share. `make install` and `make test` need Python 3.11 or
# newer and nothing else; run again, they do nothing that is done already.

PYTHON ?= $(shell command -v python3.11 || command -v python3 || echo python3)
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

# On Linux, the torch that pip finds by default brings CUDA: several GB. For the CPU build, give the address of the
# CPU index that PyTorch's own installation page names: make install TORCH_INDEX=https://...
TORCH_INDEX ?=

# `make install EXTRAS=ui` is light: without torch. For FAISS on an NVIDIA GPU, see docs/gpu.md.
EXTRAS ?= all

.DEFAULT_GOAL := help
.PHONY: help install weights demo tools test test-long test-versions test-distributed check lint types suite docs bench soak wheel constraints

# For the recipes that start Python thousands of times: compiled modules are kept, also where the environment forbids it.
KEEP_COMPILED := PYTHONDONTWRITEBYTECODE=

help: ## list the verbs
	@sed -n 's/^\([a-z-]*\):.*## /make \1\t/p' $(MAKEFILE_LIST)

install: .venv/.installed ## make .venv with Sonde and everything but the test tools

weights: | .venv/bin/python ## put the default model into the tree, for the wheel (80 MB)
	@$(BIN)/python release/weights.py

demo: install ## index the standard library's docstrings and run three searches
	$(BIN)/sonde demo

# From outside Python, only Chromium is needed: tests/support/browser.py gets one where there is none. The types are
# checked beside the tests, and what that finds is printed in one piece.
test: lint build/types/sonde ## lint, format, types and all tests but the long ones
	@$(BIN)/python tests/support/browser.py
	@$(MAKE) --no-print-directory --jobs 2 types suite

tools: .venv/.tested ## make .venv with the tools for tests, lint and types

# Apart from `make test`, so that it stays short: what takes many seconds, and is mostly held by shorter tests too.
test-long: .venv/.compiled build/types/sonde ## long tests: tutorials, trainings, walks through the UI (6 minutes)
	@$(BIN)/python tests/support/browser.py
	$(KEEP_COMPILED) OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 3 -m long

# Apart from `make test`, since it downloads 450 MB.
test-versions: .venv/.versions ## the wheel: twine, its size, one job with the lowest and the newest versions (5 minutes)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m slow tests/test_packaging.py tests/test_versions.py

# Apart from `make test`, since it installs Ray (380 MB) and an S3 server, which nothing else needs.
test-distributed: .venv/.distributed build/types/sonde ## shards on Ray and in S3, also after kills (10 minutes at most)
	$(KEEP_COMPILED) OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m distributed tests/app/ray tests/indexer/sharded

check: lint types ## lint, format and types

lint: .venv/.tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/.tested build/types/sonde
	@$(BIN)/pyright >build/types.txt 2>&1; ended=$$?; cat build/types.txt; exit $$ended

# Workers with one thread each, since most tests use one core; a file stays with one worker, so that its fixtures are
# made once.
suite: .venv/.compiled build/types/sonde
	$(KEEP_COMPILED) OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

docs: .venv/.tested ## build the manual as a site in build/site, and check its links
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo build/site/index.html

bench: .venv/.bench ## run benchmarks/ and write build/benchmarks.md (two hours and a quarter)
	$(BIN)/python benchmarks/report.py

SOAKED := not slow and not gpu and not hub and not distributed
soak: .venv/.tested ## try histories of writes with kills, power cuts, failing disks, damaged files (hours)
	$(KEEP_COMPILED) SONDE_EXAMPLES=1000 SONDE_CASES=all OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m "$(SOAKED)"
	SONDE_HISTORIES=5000 OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/indexer/store/test_any_history.py
	$(BIN)/python benchmarks/odd_collections.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/kills.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/kills_beside.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/power_cuts.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/failing_disk.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/fuzz_collections.py --mutations 10000
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/fuzz_readers.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/fuzz_http.py

wheel: weights ## build dist/sonde-*.whl
	@rm -rf dist build/lib build/bdist*
	$(PIP) wheel --quiet --no-deps --wheel-dir dist .
	@ls dist/*.whl

# Start from a fresh .venv, so that nothing is pinned which nothing asks for.
constraints: .venv/.distributed ## write constraints.txt again from .venv
	@{ sed '/^[^#]/,$$d' constraints.txt; $(PIP) freeze --all --exclude pip --exclude-editable | sed 's/+[a-z0-9]*$$//'; } >build/constraints.txt
	@mv build/constraints.txt constraints.txt && touch .venv/.installed .venv/.tested

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'Sonde needs Python 3.11 or newer, and $(PYTHON) is not: make PYTHON=python3.11'; exit 1; }
# Debian's Python has no ensurepip without the package python3-venv; its pip can install into the environment all the same.
	@$(PYTHON) -m venv .venv >/dev/null || { $(PYTHON) -m venv --clear --without-pip .venv && $(PYTHON) -m pip --python .venv install --quiet pip; }

.venv/.installed: pyproject.toml constraints.txt | .venv/bin/python
	@$(BIN)/python release/weights.py
	$(PIP) install --quiet -c constraints.txt $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) --editable '.[$(EXTRAS)]'
	@touch $@

.venv/.tested: .venv/.installed
	$(PIP) install --quiet -c constraints.txt $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) --editable '.[$(EXTRAS),test]'
	@mkdir -p build && touch $@

# In `make test` this runs beside the types.
.venv/.compiled: .venv/.tested
	$(KEEP_COMPILED) OMP_NUM_THREADS=1 $(BIN)/python tests/support/compiled.py
	@touch $@

.venv/.versions: .venv/.tested
	$(PIP) install --quiet uv
	@touch $@

.venv/.distributed: .venv/.tested
	$(PIP) install --quiet -c constraints.txt --editable '.[$(EXTRAS),test,distributed]' 'moto[s3]>=5' flask flask-cors
	@touch $@

.venv/.bench: .venv/.tested
	$(PIP) install --quiet -c constraints.txt txtai
	@touch $@

# Pyright does not see through the mapping of an editable install; this is the package as a wheel lays it out.
build/types/sonde: $(wildcard src/sonde/*)
	@rm -rf $@ && mkdir -p $@
	@ln -s $(addprefix ../../../,app indexer pipelines src/sonde/__init__.py src/sonde/py.typed) $@/
