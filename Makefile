# The two commands a user needs: `make demo` and `make test`. Each sets up all it needs in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check
# Exactly this release: a range would pull in gigabytes of CUDA packages.
TORCH := torch==2.13.0

.PHONY: demo test frameworks lint score zoo zoo-page bench bench-traces rules clean debian debian-zoo

demo: $(VENV)/.torch $(VENV)/.core
	@PATH="$(CURDIR)/$(BIN):$$PATH" bash demo/run.sh

test: debian $(VENV)/.torch $(VENV)/.dev frameworks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/phalanx rules test
	$(BIN)/pytest -n 2
	$(BIN)/phalanx faults run --quick --no-note --venv $(VENV)
	$(BIN)/phalanx faults run --quick --cured --no-note --venv $(VENV)
	$(BIN)/phalanx faults score

# TensorFlow, JAX, Horovod (compiled from source, about 7 minutes of processor time, once) and Keras on PyTorch (which Horovod's environment
# lends), each in an environment of its own below .zoo: the tests run real jobs of them.
frameworks: debian-zoo $(VENV)/.core
	$(BIN)/phalanx faults environments tensorflow jax horovod keras-torch

# The score on the recorded logs of real broken jobs.
score: $(VENV)/.core
	$(BIN)/phalanx faults score

# The whole zoo for real: makes the environments it needs (Horovod is compiled), runs all faults, healthy jobs and cures.
# It goes on where it was stopped; `make zoo FRESH=1` begins anew, `make zoo JOBS=6` runs six at one time.
zoo: debian-zoo $(VENV)/.core
	$(if $(FRESH),rm -rf .zoo/runs)
	$(BIN)/phalanx faults run --all --resume $(if $(JOBS),--jobs $(JOBS)) || { [ $$? = 130 ] && exit 130; failed=1; }; \
	$(BIN)/phalanx faults run --all --cured --resume $(if $(JOBS),--jobs $(JOBS)) || { [ $$? = 130 ] && exit 130; failed=1; }; \
	$(BIN)/phalanx faults score --logs .zoo/runs/faulty; exit $${failed:-0}

# The tables and the picture of docs/zoo.md, and docs/zoo-coverage.md.
zoo-page: $(VENV)/.core
	$(BIN)/phalanx faults score --write docs/zoo.md --svg docs/zoo.svg
	$(BIN)/phalanx faults list --coverage --write docs/zoo-coverage.md

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

# Debian packages the tests use: a browser for the pages, ripgrep for the benchmark, namespaces with a firewall for broken networks,
# an SSH server and engines for calls. Without root they are left out and the tests that need them say so.
debian:
	@for need in chromium:chromium ripgrep:rg nftables:nft iproute2:ip util-linux:nsenter openssh-client:ssh openssh-server:sshd slurm-wlm:slurmctld munge:munged mpich:mpiexec.hydra; do \
	  package=$${need%%:*}; program=$${need##*:}; \
	  PATH="$$PATH:/usr/sbin" command -v $$program >/dev/null && continue; \
	  if [ "$$(id -u)" = 0 ]; then \
	    [ -n "$$updated" ] || apt-get update -q >/dev/null; updated=yes; \
	    echo "installing $$package"; DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $$package >/dev/null; \
	  else echo "not root: $$package is not installed, tests that need it will be skipped"; fi; \
	done

# What the zoo's jobs need beside Python packages: compilers for the builds (Horovod is compiled nine times, ccache does most of it once), ssh for horovodrun, namespaces and mounts.
debian-zoo:
	@missing=; for need in cmake:cmake g++:g++ ccache:ccache ninja-build:ninja openssh-client:ssh util-linux:unshare; do \
	  command -v $${need##*:} >/dev/null || missing="$$missing $${need%%:*}"; \
	done; \
	[ -f /usr/include/python3.11/Python.h ] || missing="$$missing python3-dev"; \
	[ -z "$$missing" ] && exit 0; \
	if [ "$$(id -u)" = 0 ]; then \
	  echo "installing$$missing"; apt-get update -q >/dev/null; \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $$missing >/dev/null; \
	else echo "not root: install$$missing first, or faults that need them will fail"; fi

clean:
	rm -rf $(VENV) .zoo .mypy_cache .ruff_cache .pytest_cache bench/data
