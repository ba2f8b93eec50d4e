# `make` alone prints what there is.  Every command sets up what it needs; the second time that takes no time.
# Recipes use `exec`: no shell is left between make and the program, so it notices when make is gone, however it went.

PYTHON ?= python3
VENV ?= .venv
REQUIREMENTS ?= requirements.txt
TESTS ?=
BENCH ?=

BIN = $(VENV)/bin
SERVERS = $(BIN)/python -m project.dev.servers

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help demo docs test test-browser up agents chaos sabotage lint format bench designs replays growth inbox liveness measures screens resume storm webhooks lock clean setup recovery adopt

help: ## What there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /  make \1	/' | expand -t 20

setup:
	@exec $(PYTHON) project/dev/bootstrap.py --venv $(VENV) --requirements $(REQUIREMENTS)

demo: setup ## Runs the coding agent on a real git repository and kills its worker half-way (INTERACTIVE=1: you approve)
	@exec $(SERVERS) run --purpose demo -- $(BIN)/python -m project.dev.demo

test: setup ## Runs every test but those in a browser (TESTS="-k name" or a path: only those)
	@exec $(SERVERS) run --purpose test --fresh -- $(BIN)/python -m project.dev.test $(TESTS)

test-browser: setup ## The pages in a real Chromium, with pictures of them in .outlast/screenshots (THEMES=1: under Unfold and Jazzmin)
	@exec $(SERVERS) run --purpose test --fresh -- $(BIN)/python -m $(if $(THEMES),project.dev.themes,project.dev.test --browser) $(TESTS)

agents: setup ## The adapters of agent libraries with the lowest and the newest release of each (needs a package index)
	@exec $(SERVERS) run --purpose test --fresh -- $(BIN)/python -m project.dev.agents

chaos: setup ## Deployments against a faulty cloud while workers are killed: five minutes (N=100 DURATION=60 SEED=7)
	@exec env $(if $(N),N=$(N)) $(if $(DURATION),DURATION=$(DURATION)) $(if $(SEED),SEED=$(SEED)) \
	  $(SERVERS) run --purpose chaosrun --fresh -- $(BIN)/python -m project.dev.chaos

sabotage: setup ## Each kind of orphan is made and found; then none under full load: five minutes (N=500 DURATION=60 SEED=7)
	@exec env $(if $(N),N=$(N)) $(if $(DURATION),DURATION=$(DURATION)) $(if $(SEED),SEED=$(SEED)) \
	  $(SERVERS) run --purpose sabotage --fresh -- $(BIN)/python -m project.dev.sabotage

up: setup ## Starts web, workers, Beat and Flower, and prints the addresses
	@exec $(SERVERS) run --purpose up --single -- $(BIN)/python -m project.dev.up

adopt: setup ## The tutorial done literally with the built wheel, in a project of its own; then taken out again (needs a package index)
	@exec $(SERVERS) run --purpose adopt --fresh -- $(BIN)/python -m project.dev.adopt

docs: ## The site of the documentation, in .outlast/site; a link that leads nowhere is an error (needs a package index)
	@$(PYTHON) project/dev/bootstrap.py --venv .venvdocs --requirements requirements-docs.txt
	@exec .venvdocs/bin/python -m sphinx -W --keep-going -q -b html docs .outlast/site

lint: setup ## Format, rules, types, layers, migrations, deployment settings
	@exec $(SERVERS) run --purpose lint -- $(BIN)/python -m project.dev.lint

format: setup ## Puts the code into the project's format
	@exec $(BIN)/ruff format .

bench: setup ## Speed, beside other runtimes: an hour (BENCH="--workloads w1 --peers absurd": a part)
	@exec $(SERVERS) run --purpose bench --fresh --shared-buffers 512MB -- $(BIN)/python benchmarks/run.py $(BENCH)

designs: setup ## Outlast beside simpler designs, on the same faults: a quarter of an hour (RUNS=20 SEED=7 FAULTS=2 DESIGNS=single,outlast)
	@exec $(SERVERS) run --purpose bench --fresh --shared-buffers 512MB -- $(BIN)/python -m benchmarks.designs.harness \
	  $(if $(RUNS),--runs $(RUNS)) $(if $(SEED),--seed $(SEED)) $(if $(FAULTS),--faults $(FAULTS)) \
	  $(if $(DESIGNS),--designs $(DESIGNS)) $(if $(DURATION),--duration $(DURATION))

replays: setup ## How fast recorded workflows are replayed (N=1000: of so many)
	@exec $(SERVERS) run --purpose bench --fresh --shared-buffers 512MB -- $(BIN)/python -m benchmarks.replaying.run $(if $(N),--n $(N))

measures: setup ## What measuring costs: an hour of a log of a million rows, and a look of a monitoring system (N=10000: fewer runs)
	@exec $(SERVERS) run --purpose bench --fresh --shared-buffers 512MB -- $(BIN)/python -m benchmarks.measures.run $(if $(N),--n $(N))

growth: setup ## How the record grows by a million steps, and how fast retention deletes them (N=30000: so many)
	@exec $(SERVERS) run --purpose bench --fresh --shared-buffers 512MB -- $(BIN)/python -m benchmarks.growth.run $(if $(N),--n $(N))

inbox: setup ## How fast the reviewers' inbox is, with 10,000 requests that wait and 400,000 decided (N=100: so many looks)
	@exec $(SERVERS) run --purpose bench --fresh --shared-buffers 512MB -- $(BIN)/python -m benchmarks.inbox.run $(if $(N),--n $(N))

screens: setup ## How fast the operator's screens are, with a million workflows (N=100000: so many)
	@exec $(SERVERS) run --purpose bench --fresh --shared-buffers 512MB -- $(BIN)/python -m benchmarks.screens.run $(if $(N),--n $(N))

liveness: setup ## How long the scan for orphans takes, with a million workflows (N=100000: so many)
	@exec $(SERVERS) run --purpose bench --fresh --shared-buffers 512MB -- $(BIN)/python -m benchmarks.liveness.run $(if $(N),--n $(N))

resume: setup ## What going on costs after a stop, beside a conversation that begins again (N=36: a larger project)
	@exec $(SERVERS) run --purpose bench --fresh -- $(BIN)/python -m benchmarks.resume.run $(if $(N),--n $(N)) $(if $(AT_ONCE),--at-once $(AT_ONCE))

webhooks: setup ## How many signed webhooks a web process takes in: 2,000 from 8 processes (N=200: so many)
	@exec $(SERVERS) run --purpose bench --fresh --shared-buffers 512MB -- $(BIN)/python -m benchmarks.webhooks.run $(if $(N),--n $(N))

storm: setup ## A storm of events, by signal and by HTTP: each is consumed once (N=5000 HTTP=200: a smaller one)
	@exec $(SERVERS) run --purpose bench --fresh --shared-buffers 512MB -- $(BIN)/python -m benchmarks.storm.run \
	  $(if $(N),--n $(N)) $(if $(HTTP),--http $(HTTP))

recovery: setup ## A provider comes back while 20,000 workflows wait for it: ten minutes (N=2000: so many)
	@exec $(SERVERS) run --purpose bench --fresh --shared-buffers 512MB -- $(BIN)/python -m benchmarks.recovery.run $(if $(N),--n $(N))

lock: setup ## Compiles requirements*.txt anew from pyproject.toml
	@exec $(BIN)/python -m project.dev.lock

clean: ## Removes what these commands made: .venv, .outlast, caches
	@exec $(PYTHON) project/dev/clean.py --venv $(VENV)
