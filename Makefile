# The two commands a user needs: `make demo` and `make test`. Each sets up all it needs in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check
# Exactly this release: a range would pull in gigabytes of CUDA packages.
TORCH := torch==2.13.0

.PHONY: demo test lint score bench bench-traces rules clean debian

demo: $(VENV)/.torch $(VENV)/.core
	@PATH="$(CURDIR)/$(BIN):$$PATH" bash demo/run.sh

test: debian $(VENV)/.torch $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/phalanx rules test
	$(BIN)/pytest -n 2
	$(BIN)/phalanx faults score

# The score on the recorded logs of real broken jobs.
score: $(VENV)/.core
	$(BIN)/phalanx faults score

# Speed against ripgrep on generated logs; see bench/README.md.
bench: debian $(VENV)/.dev
	$(BIN)/python bench/diagnose_vs_ripgrep.py

# Verdicts from collective traces against PyTorch's own analyzer.
bench-traces: $(VENV)/.torch $(VENV)/.dev
	$(BIN)/python bench/traces_vs_fr_trace.py --flat

$(VENV)/bin/pip:
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { [ "$$(id -u)" = 0 ] && apt-get update -q && apt-get install -y -q python3-venv; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.torch: | $(VENV)/bin/pip
	$(PIP) install -q $(TORCH) numpy
	@touch $@

$(VENV)/.core: pyproject.toml | $(VENV)/bin/pip
	$(PIP) install -q -e .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/pip
	$(PIP) install -q -e '.[dev]'
	@touch $@ $(VENV)/.core

# Debian packages the tests use: a browser for the HTML report, ripgrep for the benchmark. Without root they are
# left out and the tests that need them say so.
debian:
	@for need in chromium:chromium ripgrep:rg; do \
	  package=$${need%%:*}; program=$${need##*:}; \
	  command -v $$program >/dev/null && continue; \
	  if [ "$$(id -u)" = 0 ]; then \
	    [ -n "$$updated" ] || apt-get update -q >/dev/null; updated=yes; \
	    echo "installing $$package"; DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $$package >/dev/null; \
	  else echo "not root: $$package is not installed, tests that need it will be skipped"; fi; \
	done

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache bench/data
