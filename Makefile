# Cold-Store Lakehouse. `make` alone lists the commands; everything is installed below .local/ by whichever command needs it first.
SHELL := /bin/bash
.ONESHELL:
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

LOCAL := $(CURDIR)/.local
SPARK := $(LOCAL)/spark/bin/python
AIRFLOW := $(LOCAL)/airflow/bin/python
UV := $(LOCAL)/uv/bin/uv
export COLDSTORE_LAKE ?= $(CURDIR)/lake
export PYTHONPATH := $(CURDIR)
export UV_CACHE_DIR ?= $(LOCAL)/cache/uv
rows ?= 10000000
histories ?= 20
# What a person gives on the command line reaches the shell as it is, whatever stands in it.
export source position run by why reason alert from to apply tell q at as
# Tests are many short lives of a JVM: its second compiler would take more than it gives. (With one compiler it keeps 48 MB of code, and a JVM that
# takes forty passes fills them: then nothing is compiled any more, and it complains on standard output.)
SHORT_LIVED := SPARK_SUBMIT_OPTS="-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
PYTEST := $(SHORT_LIVED) $(SPARK) -m pytest
PYTEST_DAGS := $(SHORT_LIVED) $(AIRFLOW) -m pytest --confcutdir=tests/dags
LANDING := $(if $(COLDSTORE_LANDING),--landing "$(COLDSTORE_LANDING)")

.PHONY: help setup run test oracle test-places walks crash check pass line rebuild accept ack replay recover sample summary sql status doctor up down cluster cluster-down bench lock clean
help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /\1\t/' | awk -F'\t' '{printf "  make %-13s %s\n", $$1, $$2}'

run: setup $(LOCAL)/airflow/.done ## all set-up, sample readings, one pass through Airflow, a summary; again: the next hours
	@as_of=$$($(SPARK) -m simulator --lake "$(COLDSTORE_LAKE)" $(LANDING) | tee /dev/stderr | sed -n 's/^as_of=//p')
	$(AIRFLOW) -m scripts.airflow_server run --as-of "$$as_of"
	$(SPARK) -m spark_jobs.show_summary

test: setup $(LOCAL)/airflow/.done check ## all set-up, every test
	@bash scripts/install_browser.sh
	$(PYTEST) tests --ignore=tests/dags --numprocesses 2 --dist loadfile
	$(PYTEST_DAGS) tests/dags

oracle: setup ## [histories=…]: random histories against the independent oracle, in one pass and in several
	@COLDSTORE_HISTORIES=$(histories) $(PYTEST) tests/oracle --numprocesses logical --maxprocesses 4 --maxschedchunk 1

test-places: setup ## the same history, with a crash, in every place: files, S3 servers, Kafka, a Spark cluster
	@$(PYTEST) tests/places/test_places.py

walks: setup $(LOCAL)/airflow/.done ## through Airflow's pages in a browser, with eight failures really caused and mended
	@bash scripts/install_browser.sh
	WALKS=all $(PYTEST_DAGS) tests/dags/walks

crash: setup ## a driver killed at every point where it writes, and at 30 random moments; writes docs/reliability.md
	@COLDSTORE_CRASHES=all $(PYTEST) --capture=no tests/places/test_crashes.py tests/places/test_lease.py tests/places/test_s3.py

check: setup ## ruff and mypy
	@$(LOCAL)/spark/bin/ruff check .
	$(LOCAL)/spark/bin/ruff format --check .
	$(LOCAL)/spark/bin/mypy

pass: setup ## one pass over COLDSTORE_LAKE as of COLDSTORE_AS_OF, without Airflow
	@COLDSTORE_AS_OF="$${COLDSTORE_AS_OF:-$$(date -u +%Y-%m-%dT%H:%M:%SZ)}" $(SPARK) -m spark_jobs.run_pass

line: setup ## source=… position=…: the raw line behind a reading or a quarantined row
	@$(SPARK) -m spark_jobs.show_line --source "$$source" --position "$$position"

rebuild: setup ## from=… to=… [apply=1] [tell=1]: these days anew, beside the live tables: what differs, and swap it in
	@$(SPARK) -m spark_jobs.rebuild_tables --from "$$from" --to "$$to" --apply "$$apply" --tell "$$tell"

ack: $(LOCAL)/spark/.done ## alert=… by=… why=…: write down that somebody has seen to an alert
	@$(SPARK) -m scripts.acknowledge --alert "$$alert" --by "$$by" --why "$$why"

accept: setup ## run=… by=… why=…: publish a held run all the same
	@$(SPARK) -m spark_jobs.accept_run --run "$$run" --by "$$by" --why "$$why"

replay: setup ## [reason=…]: judge quarantined lines again, take in what is valid now
	@$(SPARK) -m spark_jobs.replay_quarantine --reason "$$reason"

recover: setup ## make the checkpoint anew where it is damaged; no line is lost or doubled
	@$(SPARK) -m spark_jobs.recover_checkpoint

sample: setup ## [args="--stores 3 --hours 4 …"]: write sample readings into the landing folder
	@$(SPARK) -m simulator --lake "$(COLDSTORE_LAKE)" $(LANDING) $(args)

summary: setup ## what the last run did
	@$(SPARK) -m spark_jobs.show_summary

sql: $(LOCAL)/spark/.done ## [q="select …"] [at=run] [as=csv|json]: SQL over the published tables, without Spark; without q a shell
	@$(SPARK) -m scripts.sql --at "$$at" --as "$$as" "$$q"

status: $(LOCAL)/spark/.done ## last runs, freshness, held or not, lease, open alerts
	@$(SPARK) -m scripts.status

doctor: ## is everything here that a pass needs? Java, disk, memory, settings, the lake, Kafka, ports: a verdict per line
	@$$([ -x $(SPARK) ] && echo $(SPARK) || echo python3) -m scripts.doctor

up: setup $(LOCAL)/airflow/.done ## Airflow with its UI and scheduler, in the background
	@$(AIRFLOW) -m scripts.airflow_server up

down: ## end what `make up` started
	@[ ! -x $(AIRFLOW) ] || $(AIRFLOW) -m scripts.airflow_server down

cluster: setup ## a Spark cluster on this machine, one master and two workers, in the background
	@$(SPARK) -m scripts.spark_cluster up

cluster-down: ## end what `make cluster` started
	@[ ! -x $(SPARK) ] || $(SPARK) -m scripts.spark_cluster down

bench: setup $(LOCAL)/airflow/.done ## [rows=…]: the benchmark, side by side with DuckDB, as ratios
	@$(SPARK) -m benchmark --rows $(rows)

setup: $(LOCAL)/spark/.done $(LOCAL)/jars/.done $(LOCAL)/spark-defaults.conf $(LOCAL)/spark.jsa ## install everything a pass needs

lock: $(LOCAL)/uv/.done ## write requirements/*.txt anew from pyproject.toml
	@for group in airflow spark setup; do
	  $(UV) pip compile -q pyproject.toml --group $$group --overrides requirements/overrides.txt --universal --generate-hashes \
	    --python-version 3.11 --custom-compile-command "make lock" -o requirements/$$group.txt
	done

clean: down cluster-down ## remove what set-up made (the lake stays)
	@rm -rf $(LOCAL) .pytest_cache .mypy_cache .ruff_cache .hypothesis

# Set-up, each step once; a step that fails leaves nothing behind that looks done.
$(LOCAL)/machine: scripts/check_machine.sh
	@bash scripts/check_machine.sh $(LOCAL)
	touch $@

$(LOCAL)/uv/.done: requirements/setup.txt | $(LOCAL)/machine
	@echo "set-up: uv" >&2
	python3 -m venv --clear $(LOCAL)/uv
	$(LOCAL)/uv/bin/pip install -q --require-hashes -r $< || { echo "uv could not be installed: is the package index reachable? Then type the command again." >&2; exit 1; }
	touch $@

$(LOCAL)/%/.done: requirements/%.txt $(LOCAL)/uv/.done
	@echo "set-up: Python environment $*" >&2
	[ -x $(LOCAL)/$*/bin/python ] || $(UV) venv -q --python python3.11 $(LOCAL)/$*
	$(UV) pip sync -q --compile-bytecode --python $(LOCAL)/$* $< || { echo "the environment $* could not be installed: is the package index reachable, is there space on the disk? Then type the command again." >&2; exit 1; }
	touch $@

$(LOCAL)/jars/.done: jars/ivy.xml jars/ivysettings.xml spark_jobs/scala/AtomicCommits.scala $(LOCAL)/spark/.done
	@echo "set-up: jars" >&2
	rm -rf $(LOCAL)/jars
	spark=$(LOCAL)/spark/lib/python3.11/site-packages/pyspark/jars
	java -Divy.cache=$(LOCAL)/cache/ivy -jar $$spark/ivy-*.jar -settings jars/ivysettings.xml -ivy $< \
	  -types jar bundle -retrieve "$(LOCAL)/jars/[conf]/[artifact]-[revision].[ext]" -warn > $(LOCAL)/ivy.log 2>&1 \
	  || { tail -5 $(LOCAL)/ivy.log >&2; echo "the jars could not be fetched: is Maven Central reachable? Then type the command again." >&2; exit 1; }
	java -cp "$$(echo $$spark/scala-{compiler,reflect,library}-*.jar | tr ' ' :)" scala.tools.nsc.Main -d $(LOCAL)/jars/core/coldstore.jar \
	  -cp "$$(echo $$spark/{scala-library,hadoop-client-api}-*.jar $(LOCAL)/jars/core/*.jar | tr ' ' :)" spark_jobs/scala/AtomicCommits.scala
	touch $@

$(LOCAL)/spark-defaults.conf: spark_jobs/spark-defaults.conf $(LOCAL)/jars/.done
	@sed "s#@PROJECT@#$(CURDIR)#g" $< > $@

# A class-data-sharing archive, made by one small pass: a job starts in half the time.
$(LOCAL)/spark.jsa: scripts/train_start.sh $(LOCAL)/spark-defaults.conf $(LOCAL)/spark/.done
	@echo "set-up: archive of Java classes, so that jobs start in half the time" >&2
	bash scripts/train_start.sh $(LOCAL)
