# make demo, make test: all that is needed is python3 >= 3.11 and a package index.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo test fuzz spark-test nli-environment nli-test check bench docs clean

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
NLI_STAMP := $(VENV)/.installed-nli
DEMO := kbsource/demo/miniwiki-20260101
DEMO_WIKIDATA := kbsource/demo/miniwikidata-20260101-all.json.bz2
DEMO_OUT := demo-out
# Outside the checkout: a new checkout need not fetch 500 MB again.
SPARK_KIT ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kbsource/spark-kit

help:
	@echo "make demo        build, verify and show the embedded mini-wiki, align datasets to it, make questions and passages"
	@echo "make test        the whole test suite"
	@echo "make fuzz        the property tests with new examples, twenty times as many"
	@echo "make spark-test  build and map on real Spark and Flink clusters (Java 11 or 17, Maven; fetches 500 MB once)"
	@echo "make nli-test    NLI models on PyTorch (fetches 2.6 GB once, 6 GB on disk)"
	@echo "make check       format, lint, types, import contracts, documentation, tests"
	@echo "make bench       the measurements of benchmarks/"
	@echo "make docs        write docs/tables.md and docs/commands.md from the code"
	@echo "make clean       remove the environment and everything that was built"

# The environment is made anew when the dependencies change.
$(STAMP): pyproject.toml constraints.txt
	@python=$$(for name in python3.11 python3.12 python3.13 python3 python; do \
	    if command -v $$name > /dev/null && $$name -c \
	        'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2> /dev/null; \
	    then command -v $$name; break; fi; done); \
	if [ -z "$$python" ]; then \
	    echo "kbsource needs Python 3.11, 3.12 or 3.13 with its venv module, and none is on the PATH." >&2; \
	    echo "Install one (Debian and Ubuntu: apt install python3 python3-venv) and try again." >&2; exit 1; fi; \
	echo "making the environment in $(VENV)/ with $$python"; \
	rm -rf $(VENV); "$$python" -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(STAMP)
	rm -rf $(DEMO_OUT)
	$(BIN)/kbsource wikidata --dump $(DEMO_WIKIDATA) --output $(DEMO_OUT)/wikidata --max-rejects 0.01
	$(BIN)/kbsource verify $(DEMO_OUT)/wikidata
	$(BIN)/kbsource build --dump $(DEMO)-pages-articles-multistream.xml.bz2 \
	    --page-props $(DEMO)-page_props.sql.gz --wikidata $(DEMO_OUT)/wikidata \
	    --output $(DEMO_OUT)/release --max-rejects 0.05
	$(BIN)/kbsource verify $(DEMO_OUT)/release
	$(BIN)/kbsource show $(DEMO_OUT)/release "Halvane Isles"
	$(BIN)/kbsource pageviews --input kbsource/demo/miniviews-202512-user --site miniwiki --output $(DEMO_OUT)/views
	$(BIN)/kbsource verify $(DEMO_OUT)/views
	$(BIN)/kbsource show $(DEMO_OUT)/views "Halvane Isles"
	$(BIN)/kbsource export-kilt $(DEMO_OUT)/release --output $(DEMO_OUT)/kilt.jsonl
	$(BIN)/kbsource map --all --config kbsource/demo/datasets.yaml --kb $(DEMO_OUT)/release \
	    --output $(DEMO_OUT)/aligned
	$(BIN)/kbsource amber --kb $(DEMO_OUT)/release --wikidata $(DEMO_OUT)/wikidata --pageviews $(DEMO_OUT)/views \
	    --types kbsource/demo/amber_types.json --false-objects wikidata --output $(DEMO_OUT)/amber
	$(BIN)/kbsource verify $(DEMO_OUT)/amber --kb $(DEMO_OUT)/release
	$(BIN)/kbsource show $(DEMO_OUT)/amber Lantern
	$(BIN)/kbsource qampari --kb $(DEMO_OUT)/release --wikidata $(DEMO_OUT)/wikidata --model none \
	    --output $(DEMO_OUT)/qampari
	$(BIN)/kbsource verify $(DEMO_OUT)/qampari --kb $(DEMO_OUT)/release
	$(BIN)/kbsource passages --kb $(DEMO_OUT)/release --output $(DEMO_OUT)/passages --format pyserini
	$(BIN)/kbsource entity-linking --kb $(DEMO_OUT)/release --output $(DEMO_OUT)/linking --train 100 --dev 10
	$(BIN)/kbsource link $(DEMO_OUT)/linking "The Halvane Isles lie in the sea."
	$(BIN)/kbsource qampari-contexts $(DEMO_OUT)/qampari --passages $(DEMO_OUT)/passages \
	    --output $(DEMO_OUT)/contexts

test: $(STAMP)
	$(BIN)/python -m pytest -n auto

# A failure prints the blob that repeats it: @reproduce_failure(...) above the test.
fuzz: $(STAMP)
	$(BIN)/python -m pytest -n auto -m hypothesis --hypothesis-profile fuzz

spark-test: $(STAMP)
	$(BIN)/python -m tests.support.spark_kit "$(SPARK_KIT)"
	KBSOURCE_SPARK="$(SPARK_KIT)" $(BIN)/python -m pytest tests/test_pipelines/test_runners/test_spark.py tests/test_pipelines/test_runners/test_spark_tables.py tests/test_pipelines/test_runners/test_flink.py

# The environment of the other tests does without PyTorch, which comes with CUDA.
$(NLI_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,nli]'
	@touch $@

nli-environment: $(NLI_STAMP)

nli-test: $(NLI_STAMP)
	$(BIN)/python -m pytest tests/test_mapping/test_entail/test_model_torch.py

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/generate.py --check
	$(BIN)/python -m pytest -n auto

bench: $(STAMP)
	$(BIN)/python -m benchmarks

docs: $(STAMP)
	$(BIN)/python docs/generate.py

clean:
	rm -rf $(VENV) $(DEMO_OUT) .bench build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis \
	    .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
