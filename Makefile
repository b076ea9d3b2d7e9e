# make demo, make test: all that is needed is python3 >= 3.11 and a package index.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
# Installed without, every start of Python would compile Beam again: 4 s.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help demo test test-all fuzz spark-test spark-cluster-test flink-cluster-test models retrieval-test nli-environment nli-test check bench docs golden site lock sbom clean

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO_VENV := .venv-demo
DEMO_STAMP := $(DEMO_VENV)/.installed
NLI_STAMP := $(VENV)/.installed-nli
DEMO_OUT := kbsource-demo
comma := ,
# Outside the checkout: a new checkout need not fetch 500 MB again.
SPARK_KIT ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kbsource/spark-kit
MODELS ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kbsource/models

help:
	@echo "make demo        build, verify and show the embedded mini-wiki, align datasets to it, make questions and passages"
	@echo "make test        the tests between two edits: every invariant, every job once; about six minutes on two cores"
	@echo "make test-all    those, and kills, clusters, browsers, buckets, installations, changed inputs, long properties"
	@echo "make fuzz        the property tests with new examples, twenty times as many"
	@echo "make spark-test  every job on real Spark and Flink clusters (Java 11 or 17, Maven; fetches 500 MB once)"
	@echo "make models      two sentence encoders for make retrieval-test (fetches 45 MB once)"
	@echo "make retrieval-test  search by vectors of real sentence encoders"
	@echo "make nli-test    NLI models and readers on PyTorch (fetches 2.6 GB once, 6 GB on disk)"
	@echo "make check       format, lint, types, import contracts, documentation, tests"
	@echo "make bench       the measurements of benchmarks/"
	@echo "make docs        write docs/tables.md, commands.md and operations.md from the code"
	@echo "make golden      renew the golden files of the demo's datasets, of its reports and of readers"
	@echo "make site        the documentation as a web site in site/, and the README's pictures, both from the demo if it"
	@echo "                 was made; with pictures of the inspector where Chromium is"
	@echo "make lock        renew locked.txt: the tested versions with the hashes of their files"
	@echo "make sbom        write what locked.txt installs to sbom.json (CycloneDX)"
	@echo "make clean       remove the environment and everything that was built"

# An environment is made anew when the dependencies change. uv installs it where there is one, as it is faster; where it
# cannot, pip does: it knows package indexes that only pip is told of.
define environment
	@python=$$(for name in python3.11 python3.12 python3.13 python3 python; do \
	    if command -v $$name > /dev/null && $$name -c \
	        'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2> /dev/null; \
	    then command -v $$name; break; fi; done); \
	if [ -z "$$python" ]; then \
	    echo "kbsource needs Python 3.11, 3.12 or 3.13 with its venv module, and none is on the PATH." >&2; \
	    echo "Install one (Debian and Ubuntu: apt install python3 python3-venv) and try again." >&2; exit 1; fi; \
	echo "making the environment in $(1)/ with $$python: $(3)"; \
	rm -rf $(1); "$$python" -m venv $(1)
	@began=$$SECONDS; \
	if uv --version > /dev/null 2>&1 && echo "installing with uv" && \
	    uv pip install $(if $(4),--link-mode copy) --python $(1)/bin/python -c constraints.txt -e '.[$(2)]'; then :; \
	else echo "installing with pip"; \
	    $(1)/bin/python -m pip install --disable-pip-version-check --no-compile -c constraints.txt -e '.[$(2)]'; fi; \
	$(4) \
	echo "$(1)/ holds $$(du -sk $(1) | awk '{print int($$1 * 1.024 / 1000)}') MB, installed in $$((SECONDS - began)) s"
	@touch $(1)/.installed
endef

# Debugging symbols, which nothing needs to run, are a quarter of what is installed. The files are copies (uv's link mode),
# so that no others are changed.
define without_symbols
if [ "$$(uname)" = Linux ] && command -v strip > /dev/null; then echo "removing debugging symbols"; \
	    { grep -rlaZF .debug_info --include '*.so' $(DEMO_VENV)/lib || true; } | xargs -0 -r strip --strip-debug \
	    || echo "strip could not change some files, which stay as they are"; fi;
endef

$(STAMP): pyproject.toml constraints.txt
	$(call environment,$(VENV),dev,2 GB,)

# What the demo needs, and no more.
$(DEMO_STAMP): pyproject.toml constraints.txt
	$(call environment,$(DEMO_VENV),search$(comma)inspect,600 MB,$(without_symbols))

# Its commands are on the PATH of the demo, which then prints lines that work once the environment is activated.
demo: $(DEMO_STAMP)
	rm -rf $(DEMO_OUT)
	@PATH="$(CURDIR)/$(DEMO_VENV)/bin:$$PATH" kbsource demo --output $(DEMO_OUT)
	@echo
	@echo "Lines that begin with kbsource work in this folder once you have typed this one:"
	@echo ". $(DEMO_VENV)/bin/activate"

test: $(STAMP)
	@echo "These tests take about six minutes on two cores that do nothing else."
	$(BIN)/python -m pytest -n auto --dist loadfile -m 'not slow'

# Tests of a file stay with one process, which makes what they share, until another has nothing left to do.
test-all: $(STAMP)
	$(BIN)/python -m pytest -n auto --dist worksteal

# A failure prints the blob that repeats it: @reproduce_failure(...) above the test.
fuzz: $(STAMP)
	$(BIN)/python -m pytest -n auto -m hypothesis --hypothesis-profile fuzz

spark-test: $(STAMP)
	$(BIN)/python -m tests.support.spark_kit "$(SPARK_KIT)"
	$(MAKE) --jobs=2 --output-sync=target spark-cluster-test flink-cluster-test

# Both at once, as either waits much: for Java, and for tasks to be tried again.
spark-cluster-test flink-cluster-test: %-cluster-test: $(STAMP)
	KBSOURCE_SPARK="$(SPARK_KIT)" $(BIN)/python -m pytest $(addprefix tests/test_pipelines/test_runners/,test_clusters.py test_every_job.py test_spark_tables.py) -k '$*'

models: $(STAMP)
	$(BIN)/python -m tests.support.encoder_kit "$(MODELS)"

retrieval-test: models
	KBSOURCE_MODELS="$(MODELS)" $(BIN)/python -m pytest tests/test_pipelines/test_commands/test_real_encoders.py

# The environment of the other tests does without PyTorch, which comes with CUDA.
$(NLI_STAMP): $(STAMP)
	$(BIN)/python -m pip install --disable-pip-version-check --no-compile -c constraints.txt -e '.[dev,read]'
	@touch $@

nli-environment: $(NLI_STAMP)

nli-test: $(NLI_STAMP)
	$(BIN)/python -m pytest tests/test_mapping/test_entail/test_model_torch.py \
	    tests/test_mapping/test_retrieval/test_encoder_torch.py tests/test_mapping/test_retrieval/test_generation_torch.py \
	    tests/test_mapping/test_retrieval/test_readers_torch.py tests/test_pipelines/test_commands/test_read_torch.py

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/generate.py --check
	$(BIN)/python -m pytest -n auto --dist worksteal

bench: $(STAMP)
	$(BIN)/python -m benchmarks

docs: $(STAMP)
	$(BIN)/python docs/generate.py

golden: $(STAMP)
	$(BIN)/python -m tests.support.demo_datasets
	$(BIN)/python -m tests.support.demo_releases
	$(BIN)/python -m tests.support.readings

site: $(STAMP)
	if [ -d $(DEMO_OUT)/release ]; then $(BIN)/python docs/picture.py $(DEMO_OUT) && $(BIN)/python docs/session.py $(DEMO_OUT); fi
	$(BIN)/python docs/build_site.py site --demo $(DEMO_OUT)

# What is installed with hashes: every extra but those that bring PyTorch, on every Python that is supported. The
# versions are those of constraints.txt; the address of the package index stays out of the file.
lock: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.9,<1'
	$(BIN)/uv pip compile pyproject.toml --quiet --extra hadoop --extra nli-onnx --extra serve \
	    --constraints constraints.txt --universal --python-version 3.11 --generate-hashes --no-annotate \
	    --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" --output-file locked.txt

sbom: $(STAMP)
	@$(BIN)/python .ci/sbom.py > sbom.json
	@echo "sbom.json: what pip install --require-hashes -r locked.txt installs"

clean:
	rm -rf $(VENV) $(DEMO_VENV) $(DEMO_OUT) site sbom.json .bench build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis \
	    .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
