# The one entry point. `make help` lists what there is; CI and the README call these targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
IMAGE := python/wcpod/guest/python-guest.bin
EXTRAS := podcast foundry openai devui otel mcp
SECONDS ?= 60
BASE_PYTHON ?= 3.12
IMAGE_EXTRAS ?= podcast,foundry,openai,otel
TAG ?= wcpod
export PATH := $(CURDIR)/$(BIN):$(PATH)
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: $(shell awk -F: '/^[a-z-]+:/{print $$1}' $(MAKEFILE_LIST))
.DEFAULT_GOAL := help

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: install ## Write today's podcast script (the main job; MODEL=rehearsal|foundry|openai, ARGS=...)
	$(BIN)/wcpod run $(if $(MODEL),--model $(MODEL)) $(ARGS)

test: install lint test-rust test-python ## All tests but those inside the nested hypervisor

test-rust: install ## Tests of the Rust crates, of the guest's file system and of what changes its component
	cargo test --workspace --locked --quiet
	cargo test --manifest-path guest/Cargo.toml -p wcpod-vfs --locked --quiet
	cargo test --manifest-path guest/aot/Cargo.toml --release --bin wcpod-aot --locked --quiet

hostile: $(VENV)/.ready guest # The guest image that tests of the host attack it with
	$(BIN)/python guest/build.py --packages "$(GUEST_PACKAGES)" --hostile

test-python: install hostile ## Tests of the Python package, on this machine's /dev/kvm
	$(BIN)/pytest guest/component/tests guest/shim/tests
	$(BIN)/pytest --require-microvm

# CPython's own tests are left out: they would take the emulator longer than all the others.
test-nested: install hostile ## The micro-VM tests under stock KVM inside QEMU's software processor
	tests/nested/run $(BIN)/python -m pytest -p no:cacheprovider tests/sandbox \
	  --ignore tests/sandbox/test_cpython_tests.py -m microvm --require-microvm --slowness 12 -o timeout=600 --color=no

guest: $(VENV)/.ready ## Build the guest image from source (GUEST_PACKAGES="beautifulsoup4==4.15.0" adds pure-Python packages)
	$(BIN)/python guest/build.py --packages "$(GUEST_PACKAGES)"

extension: $(VENV)/.ready papers ## Build the Rust extension and install the package into .venv
	@echo "extension: building (minutes the first time) ..."
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/maturin develop --release --locked
	@echo "extension: done"

install: $(VENV)/.ready guest extension

$(VENV)/.ready: pyproject.toml constraints.txt tools/extras.py
	@echo "venv: creating $(VENV) and installing what the project needs ..."
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/pip install --quiet --constraint constraints.txt --group build --group test --group lint
	$(BIN)/python tools/extras.py $(EXTRAS) > $(VENV)/extras.txt
	$(BIN)/pip install --quiet --constraint constraints.txt --requirement $(VENV)/extras.txt
	@touch $@
	@echo "venv: done"

papers: $(VENV)/.ready guest ## Write the licence texts and the bill of materials of the guest image
	$(BIN)/python tools/papers.py

wheel: $(VENV)/.ready guest papers ## Build the wheel into dist/
	rm -f dist/wcpod-*.whl dist/wcpod-*.tar.gz
	$(BIN)/maturin build --release --locked --out dist

image: wheel ## Build the container image (BASE=NAME@sha256:DIGEST, a Linux with the Python that BASE_PYTHON names)
	@echo "$(BASE)" | grep -Eq '@sha256:[0-9a-f]{64}$$' || { echo "image: pin the base by its digest: BASE=NAME@sha256:..."; exit 1; }
	rm -rf dist/wheelhouse
	$(BIN)/pip download --quiet --only-binary=:all: --python-version $(BASE_PYTHON) --constraint constraints.txt \
	  --dest dist/wheelhouse "$$(echo dist/wcpod-*.whl)[$(IMAGE_EXTRAS)]"
	podman build --network none --ignorefile .containerignore --file deploy/Containerfile \
	  --build-arg BASE=$(BASE) --build-arg EXTRAS=$(IMAGE_EXTRAS) --tag $(TAG) .

test-container: wheel ## Build the container image on a bare Debian and run it, and the pods of deploy/kubernetes (root, podman, runc)
	$(BIN)/pytest deploy/tests -o timeout=900

wheel-check: wheel ## Try the wheel in an empty environment of every CPython of this machine
	$(BIN)/python tools/wheel_check.py dist/wcpod-*.whl

# The source distribution is built as a user's pip would: in an environment with nothing in it, for minutes.
release-check: wheel-check ## Everything that a release does, but for publishing
	$(BIN)/python tools/release.py check
	$(BIN)/maturin sdist --out dist
	$(BIN)/pip install --quiet --constraint constraints.txt --group release
	$(BIN)/twine check --strict dist/wcpod-*.whl dist/wcpod-*.tar.gz
	$(BIN)/auditwheel show dist/wcpod-*.whl
	rm -rf dist/empty dist/from-sdist && $(PYTHON) -m venv dist/empty
	dist/empty/bin/pip wheel --quiet --no-deps --wheel-dir dist/from-sdist dist/wcpod-*.tar.gz
	$(BIN)/python tools/wheel_check.py dist/from-sdist/wcpod-*.whl

reproduce: $(VENV)/.ready guest ## Build the guest again from the last commit, in another folder, and compare
	$(BIN)/python tools/reproduce.py

audit: ## Licences, sources and duplicates of every crate, by cargo-deny (cargo install --locked cargo-deny)
	cargo deny --manifest-path Cargo.toml check licenses bans sources
	cargo deny --manifest-path guest/Cargo.toml check licenses bans sources

# The extension with runs that skip the clean restore; `make install` puts the real one back.
bench-extension: $(VENV)/.ready papers
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/maturin develop --release --locked --features python,bench

bench: bench-extension ## Measure everything, and write the figures into SPECIFICATION.md
	$(BIN)/pip install --quiet --constraint constraints.txt --group bench
	cargo build --release --locked --quiet --manifest-path guest/aot/Cargo.toml --bin in_process
	$(BIN)/pytest benches --benchmark-enable --benchmark-json=dist/bench.json
	$(BIN)/python benches/specification.py dist/bench.json
	cargo bench --locked --quiet -p egress --bench call > dist/fetch.txt
	$(BIN)/python benches/specification.py --fetch dist/fetch.txt
	$(BIN)/python benches/plots.py dist/bench.json

bench-nested: bench-extension ## Measure beside hyperlight-sandbox under stock KVM inside QEMU, and write the figures
	$(BIN)/pip install --quiet --constraint constraints.txt --upgrade --target dist/peer --group peer
	NESTED_SITE=dist/peer tests/nested/run $(BIN)/python benches/stock_kvm.py | tee dist/stock_kvm.txt
	$(BIN)/python benches/specification.py --stock-kvm dist/stock_kvm.txt

conversion: install ## Score the conversion beside OpenCC's (OPENCC=a checkout of OpenCC), and write the figures
	$(BIN)/python benches/conversion.py $(OPENCC)
extraction-score: install ## Score the readable text of the pages in FOLDER (laid out as tools/extraction_score.py says), beside trafilatura
	$(BIN)/pip install --quiet --constraint constraints.txt --group extraction
	$(BIN)/python tools/extraction_score.py "$(FOLDER)"

screenshots: install ## Make the pictures in docs/images
	$(BIN)/python docs/screenshots.py

soak: install ## 10,000 runs on one sandbox: memory must stay flat
	$(BIN)/pytest tests/sandbox/test_endurance.py --soak -o timeout=3600

sequences: install ## Random runs, stops, snapshots, forks and threads for SECONDS (60), each from a seed
	$(BIN)/python tests/sandbox/sequences.py --seconds $(SECONDS)

cpython-tests: install ## Run the whole selection of CPython's own tests, and write the figures into LIMITATIONS.md
	$(BIN)/python tests/cpython_suite.py

fuzz: ## Fuzz every target for SECONDS (60); needs a nightly toolchain and cargo-fuzz
	fuzz/run $(SECONDS)

lint: lint-rust lint-python lint-words ## Formatting, lints, types and spelling

# What is linked into the image does not matter to its lints.
UNLINKED := WCPOD_COMPONENT=/dev/null WCPOD_STDLIB=/dev/null

lint-rust: ## Formatting and lints of the Rust code
	cargo fmt --check
	cd guest && cargo fmt --check
	cargo fmt --check --manifest-path guest/aot/Cargo.toml
	cargo clippy --workspace --all-targets --features hyperlight_bridge/python --locked --quiet -- -D warnings
	cd guest && $(UNLINKED) cargo clippy -p wcpod-guest --bins --locked --quiet -- -D warnings
	cd guest && cargo clippy -p wcpod-wasi -p wcpod-vfs --all-targets --locked --quiet -- -D warnings

# Where the stub and the built extension differ, `stubtest` says so. Without the extension there is nothing to compare.
lint-python: $(VENV)/.ready ## Formatting, lints and types of the Python code
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/mypy --cache-dir .mypy_cache/benches benches guest/build.py
	$(BIN)/componentize-py --quiet --wit-path guest/component/wit --world guest bindings guest/build/bindings
	cd guest/component && $(CURDIR)/$(BIN)/mypy
	@if ls python/wcpod/_bridge*.so >/dev/null 2>&1; then \
	  echo "$(BIN)/stubtest wcpod._bridge"; $(BIN)/stubtest wcpod._bridge --mypy-config-file pyproject.toml; \
	else echo "lint: the extension is not built (make extension), so its stub is not checked"; fi

lint-words: $(VENV)/.ready ## Spelling
	git ls-files -z | xargs -0 $(BIN)/codespell --toml pyproject.toml

format: $(VENV)/.ready ## Format everything
	cargo fmt
	cd guest && cargo fmt
	cargo fmt --manifest-path guest/aot/Cargo.toml
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format

doctor: install ## Can this machine run a sandbox?
	$(BIN)/wcpod doctor

clean: ## Remove what was built
	rm -rf THIRD-PARTY-NOTICES.txt $(VENV) target guest/target guest/aot/target guest/build dist python/wcpod/_bridge*.so $(IMAGE)
