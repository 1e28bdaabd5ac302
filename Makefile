# The two commands a user needs: `make demo` and `make test`. Each sets up all it needs in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check
# Exactly this release: a range would pull in gigabytes of CUDA packages.
TORCH := torch==2.13.0
# The tests start thousands of interpreters. Where this is set, each would compile every module of ours anew.
unexport PYTHONDONTWRITEBYTECODE
# What was not as it must be is run once more, alone: PyTorch 2.13 on Gloo now and then aborts at the very end of a good job.
QUICK := $(BIN)/phalanx faults run --quick --no-note --venv $(VENV)
# Root installs what the tests need, and then none may be skipped for want of it.
WHOLE := $(if $(filter 0,$(shell id -u)),PHALANX_TESTS=whole)

.PHONY: audit check demo test site ready packages frameworks score zoo zoo-page bench bench-traces clean debian debian-zoo

demo: $(VENV)/.torch $(VENV)/.core
	@PATH="$(CURDIR)/$(BIN):$$PATH" bash demo/run.sh

# Set-up is downloading, unpacking and compiling in turns: side by side it takes two thirds of the time.
test:
	@$(MAKE) --no-print-directory -j 4 ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/phalanx rules test
	@rm -rf .pytest_cache/v/cache/lastfailed
	$(WHOLE) $(BIN)/pytest -n 3 --dist worksteal --durations 40 || $(WHOLE) $(BIN)/python tests/alone.py $$?
	$(QUICK) || { [ $$? = 1 ] && $(QUICK) --resume --jobs 1; }
	$(QUICK) --cured || { [ $$? = 1 ] && $(QUICK) --cured --resume --jobs 1; }
	$(BIN)/phalanx faults score

# What to run while you work: style, types, rules, and the tests that start no job. `make test` runs everything.
UNITS := api blame diagnosis frameworks knowledge lint mcp model notify report sources verification
SLOW := sources/test_abuse.py diagnosis/collective_analysis/test_gloo_jobs.py diagnosis/test_afar.py knowledge/test_pack.py
check: packages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/phalanx rules test
	$(BIN)/pytest -n 2 -m 'not job' $(SLOW:%=--ignore=tests/%) $(UNITS:%=tests/%) tests/test_imports.py tests/test_repository.py

ready: debian packages frameworks

# One after the other: two pips in one environment would get into each other's way.
packages: $(VENV)/.core
	@$(MAKE) --no-print-directory $(VENV)/.torch
	@$(MAKE) --no-print-directory $(VENV)/.dev

# TensorFlow, JAX, Horovod (compiled from source, about 7 minutes of processor time, once) and Keras on PyTorch (which Horovod's environment
# lends), each in an environment of its own below .zoo: the tests run real jobs of them.
frameworks: framework-horovod framework-tensorflow framework-jax framework-keras-torch
framework-horovod: debian-zoo
framework-keras-torch: framework-horovod
framework-%: $(VENV)/.core
	PYTHONPATH=src $(BIN)/python -m phalanx faults environments $*

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

# The documentation as a site in build/site; look at it with `python3 -m http.server -d build/site`.
site: $(VENV)/.dev
	$(BIN)/python site/pages.py
	cd build && ../$(BIN)/python -m zensical build -s -f mkdocs.yml

# Known holes in the locked packages; asks a database on the network.
audit: $(VENV)/bin/pip
	$(PIP) install -q pip-audit
	$(BIN)/pip-audit --require-hashes -r requirements.lock

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

# Debian packages whose program is not there, named as package:program, all at once; two targets that do so wait for each other.
define install
	@missing=; for need in $(1); do \
	  PATH="$$PATH:/usr/sbin" command -v $${need##*:} >/dev/null || [ -f $${need##*:} ] || missing="$$missing $${need%%:*}"; \
	done; \
	[ -z "$$missing" ] && exit 0; \
	if [ "$$(id -u)" = 0 ]; then \
	  echo "installing$$missing"; \
	  flock /run/lock/phalanx.apt sh -c "apt-get update -q >/dev/null; \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $$missing >/dev/null"; \
	else echo "not root: install$$missing first, or $(2)"; fi
endef

# What the tests use: a browser for the pages, ripgrep for the benchmark, namespaces with a firewall for broken networks,
# an SSH server and engines for calls.
debian:
	$(call install,chromium:chromium ripgrep:rg nftables:nft iproute2:ip util-linux:nsenter openssh-client:ssh openssh-server:sshd slurm-wlm:slurmctld munge:munged mpich:mpiexec.hydra,tests that need them are skipped)

# What the zoo's jobs need beside Python packages: compilers for the builds (Horovod is compiled nine times, ccache does most of it once), ssh for horovodrun, namespaces and mounts.
debian-zoo:
	$(call install,cmake:cmake g++:g++ ccache:ccache ninja-build:ninja openssh-client:ssh util-linux:unshare python3-dev:/usr/include/python3.11/Python.h,faults that need them will fail)

clean:
	rm -rf $(VENV) .zoo .mypy_cache .ruff_cache .pytest_cache bench/data
