# make race       set everything up and run the first race (about 5 minutes after set-up)
# make test       set everything up and run the tests
# make ward       the doctor on every app of the ward, on every stack where it can be; goes on where it was stopped
# make test-all   the slow, exhaustive ones as well
# make lint       format and type checks, warnings denied
# make lock       renew the hashed requirement files (host and every stack)
# make bench      the engine beside its peers
# make dev        only the set-up: .venv with velodrome in it, engine built
# make unit       the tests that start no process
# make wheel      one wheel for this machine's system, in dist/
# make installed-test   the wheel, installed where no compiler is found

# The first interpreter that is new enough; name another with PYTHON=...
PYTHON ?= $(firstword $(foreach p,python3 python3.14 python3.13 python3.12 python3.11,$(shell $(p) -c 'import sys; sys.version_info >= (3, 11) and print(sys.executable)' 2>/dev/null)))
VENV := .venv
BIN := $(VENV)/bin
# uv from the machine, else one of our own, installed from a hashed lock.
UV := $(or $(shell command -v uv 2>/dev/null),.tools/bin/uv)
RUST := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
PYTEST := $(BIN)/python -m pytest

.DEFAULT_GOAL := help
# With -j, cargo and the programs under test would look for a job server that is not theirs.
unexport MAKEFLAGS MFLAGS
# Tests start thousands of interpreters. Each would compile all it imports, where a machine says that none of them keeps the result.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help dev race unit test ward test-all wheel installed-test rust-tests lint checks lock bench

help:
	@sed -n 's/^# //p' Makefile | head -n 11

dev: $(VENV)/.built

.tools/bin/uv: requirements/uv.txt
	@test -n "$(PYTHON)" || { echo "velodrome needs Python 3.11 or newer; none of python3, python3.11 … is. Install one, or name it: make PYTHON=/path/to/python"; exit 3; }
	$(PYTHON) -m venv .tools
	.tools/bin/python -m pip install --quiet --require-hashes -r requirements/uv.txt

$(VENV)/.synced: requirements/dev.txt | $(UV)
	@test -n "$(PYTHON)" || { echo "velodrome needs Python 3.11 or newer; name one: make PYTHON=/path/to/python"; exit 3; }
	test -x $(BIN)/python || $(UV) venv --quiet --python $(PYTHON) $(VENV)
	$(UV) pip sync --quiet --python $(BIN)/python --require-hashes --compile-bytecode requirements/dev.txt
	touch $@

$(VENV)/.built: $(VENV)/.synced pyproject.toml $(RUST)
	@command -v cargo >/dev/null || { echo "velodrome's engine needs Rust: install cargo (rustup.rs), then run make again"; exit 3; }
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --reinstall-package velodrome --editable .
	touch $@

race: dev
	$(BIN)/velodrome run first-lap

# Four at a time on two CPUs: most tests boot servers and wait for them. Those that measure come last, one at a time, after everything
# that leaves the machine warm. In their order: files of few, long tests would come last, and the others wait for them.
AT_ONCE := -n 4 --dist loadfile --no-loadscope-reorder
BEFORE_TESTS := rust-tests wheel $(filter lint,$(MAKECMDGOALS))
# The wheel, or the one that is named, is installed where no compiler is found, as a stranger does it.
WITH_WHEEL = VELODROME_WHEEL=$(if $(WHEEL),$(abspath $(WHEEL)),$$(ls $(CURDIR)/dist/*.whl)) $(PYTEST)
test: $(BEFORE_TESTS)
	@# Most tests in Rust wait, too. Meanwhile pytest compiles its tests, which four workers would do each for itself.
	nice -n 19 $(PYTEST) --collect-only -qq >/dev/null & \
	  RUST_TEST_THREADS=4 cargo test --quiet --workspace; failed=$$?; wait; exit $$failed
	$(WITH_WHEEL) $(AT_ONCE) -m "not measured and not exhaustive"
	$(PYTEST) -m "measured and not exhaustive"

# Nothing waits here: as many workers as CPUs, since each imports and collects everything for itself.
unit: dev
	$(PYTEST) -n auto --dist loadfile --no-loadscope-reorder -m "unit and not exhaustive"

test-all: $(BEFORE_TESTS)
	VELODROME_FUZZ_S=20 cargo test --quiet --workspace -- --include-ignored
	$(WITH_WHEEL) $(AT_ONCE) -m "not measured" --hypothesis-profile drawn
	$(PYTEST) -m measured

# A day: each app is served some sixty times, on up to seven stacks. `ward.jsonl` keeps what is done.
ward: dev
	$(BIN)/python -m tests.ward.run ward.jsonl --every-stack

# The engine is compiled once for `dev` and for this: same profile, same features.
wheel: dev
	rm -rf dist
	$(BIN)/maturin build --quiet --release --locked --out dist

installed-test: $(if $(WHEEL),dev,wheel)
	$(WITH_WHEEL) tests/test_installed.py

# Built, not run: `make -j3 lint test` builds the engine beside this, and tests when nothing else is done.
rust-tests:
	cargo test --quiet --workspace --no-run

# Reads what is installed and does not need the engine, so that it is built meanwhile; to install takes velodrome out, hence dev.
lint: checks dev
checks: $(VENV)/.synced
	cargo fmt --all --check
	cargo clippy --quiet --workspace --all-targets -- -D warnings
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

COMPILE := pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --upgrade

lock: dev
	$(UV) $(COMPILE) requirements/uv.in --output-file requirements/uv.txt
	$(UV) $(COMPILE) pyproject.toml --output-file requirements/host.txt
	$(UV) $(COMPILE) pyproject.toml --extra cluster --group dev --output-file requirements/dev.txt
	$(BIN)/python tools/locks.py
	cargo update

bench: dev
	$(BIN)/python benchmarks/run_all.py
