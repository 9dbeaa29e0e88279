"""docker-compose.yml, as far as it can be judged without a container engine: its form, and that all it names is there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from include.settings import PROJECT
from scripts.airflow_server.environment import environment
from scripts.airflow_server.servers import COMPONENTS
from tests.servers.seaweedfs import SeaweedFS

TEXT = (PROJECT / "docker-compose.yml").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = YAML(typ="safe").load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (PROJECT / "docker" / "Dockerfile").read_text(encoding="utf-8")
EXAMPLE = dict(
    line.split("=", 1) for line in (PROJECT / ".env.example").read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")
)
IMAGE_HOME = "/opt/coldstore"
VARIABLE = re.compile(r"\$\{(\w+)(?:(:[-?])([^}]*))?\}")
SECRET = re.compile(r"PASSWORD|SECRET|KEY|TOKEN|FERNET")
PYSPARK = PROJECT / ".local" / "spark" / "lib" / "python3.11" / "site-packages" / "pyspark"
by_service = pytest.mark.parametrize("name", SERVICES)


def words(name: str) -> list[str]:
    """Everything that a service calls: its command and its health check."""
    service = SERVICES[name]
    return [*service.get("command", []), *service.get("healthcheck", {}).get("test", [])]


def is_ours(name: str) -> bool:
    return SERVICES[name]["image"] == "coldstore-lakehouse"


def has_class(folder: Path, name: str) -> bool:
    entry = name.replace(".", "/") + ".class"
    return any(entry in zipfile.ZipFile(jar).namelist() for jar in sorted(folder.glob("*.jar")))


# --- form ---------------------------------------------------------------------------------------------------------------------------------


def test_it_keeps_to_the_compose_specification() -> None:
    schema = json.loads(files("check_jsonschema").joinpath("builtin_schemas/vendor/compose-spec.json").read_text(encoding="utf-8"))
    errors = jsonschema.validators.validator_for(schema)(schema).iter_errors(COMPOSE)
    assert [f"{'.'.join(map(str, error.path))}: {error.message}" for error in errors] == []


def test_the_compose_client_takes_it_where_there_is_one(tmp_path: Path) -> None:
    clients = [[*client, "version"] for client in (["docker", "compose"], ["docker-compose"]) if shutil.which(client[0])]
    client = next((one[:-1] for one in clients if subprocess.run(one, capture_output=True, check=False).returncode == 0), None)
    if client is None:
        pytest.skip("neither `docker compose` nor `docker-compose` is installed here: `config` was not run")
    (tmp_path / ".env").write_text("".join(f"{name}=0a1b2c\n" for name in EXAMPLE), encoding="utf-8")
    command = [*client, "--env-file", str(tmp_path / ".env"), "--file", str(PROJECT / "docker-compose.yml"), "config", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_all_that_is_asked_for_is_there() -> None:
    assert {"postgres", "s3", "kafka", "spark-master", "spark-worker"} <= set(SERVICES)
    assert {f"airflow-{component}" for component in COMPONENTS} <= set(SERVICES)
    assert SERVICES["spark-worker"]["deploy"]["replicas"] >= 2


@by_service
def test_a_service_that_stays_says_whether_it_is_well(name: str) -> None:
    is_staying = SERVICES[name]["restart"] != "no"
    assert ("healthcheck" in SERVICES[name]) is is_staying


@by_service
def test_a_service_waits_for_what_it_needs_to_be_well(name: str) -> None:
    for needed, how in SERVICES[name].get("depends_on", {}).items():
        is_staying = "healthcheck" in SERVICES[needed]
        assert how["condition"] == ("service_healthy" if is_staying else "service_completed_successfully")


@by_service
def test_nothing_is_published_but_on_this_machine(name: str) -> None:
    for port in SERVICES[name].get("ports", []):
        assert str(port).startswith("127.0.0.1:"), port
    assert "network_mode" not in SERVICES[name] and "privileged" not in SERVICES[name]


@by_service
def test_a_strange_image_is_pinned_and_one_of_ours_is_built_once(name: str) -> None:
    if not is_ours(name):
        assert re.search(r":\d+\.\d+", SERVICES[name]["image"])
        assert "build" not in SERVICES[name]
    assert [one for one in SERVICES if "build" in SERVICES[one]] == ["s3"]


# --- what it names is there ---------------------------------------------------------------------------------------------------------------


@by_service
def test_every_file_and_program_it_names_exists(name: str) -> None:
    environment = [str(value) for value in SERVICES[name].get("environment", {}).values()]
    named = [word for word in words(name) if word.startswith(("docker/", ".local/", "scripts/"))]
    named += [value.removeprefix(f"{IMAGE_HOME}/") for value in environment if value.startswith(f"{IMAGE_HOME}/")]
    build = SERVICES[name].get("build")
    named += [build["dockerfile"], build["context"]] if build else []
    assert [one for one in named if not (PROJECT / one).exists()] == []
    if is_ours(name):
        assert words(name)[0] in ("bash", *named)


def test_every_file_the_image_is_made_of_exists_and_its_targets_are_of_the_makefile() -> None:
    sources = [source for line in re.findall(r"^COPY .*", DOCKERFILE, re.MULTILINE) for source in line.split()[2:-1]]
    assert sources and [source for source in sources if not (PROJECT / source).exists()] == []
    targets = [word for line in re.findall(r"^RUN make (.*?)(?: &&|$)", DOCKERFILE, re.MULTILINE) for word in line.split()]
    assert set(targets) == {"setup", *(f"{IMAGE_HOME}/.local/{part}/.done" for part in ("spark", "airflow", "jars"))}


def test_each_step_of_the_image_has_what_its_targets_are_made_of(tmp_path: Path) -> None:
    """In a folder that holds what was copied up to then, and nothing else."""
    for step in re.findall(r"^(?:COPY .*|RUN make .*?(?= &&|$))", DOCKERFILE, re.MULTILINE):
        word, *rest = step.split()
        if word == "RUN":
            targets = [target.replace(IMAGE_HOME, str(tmp_path)) for target in rest[1:]]
            done = subprocess.run(["make", "--dry-run", *targets], cwd=tmp_path, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
        elif rest[-1] in (".", "./"):
            for source in rest[1:-1]:
                if source == ".":
                    kept = shutil.ignore_patterns(".local", ".git", ".*_cache", ".hypothesis", "lake")
                    shutil.copytree(PROJECT, tmp_path, ignore=kept, dirs_exist_ok=True)
                else:
                    shutil.copy(PROJECT / source, tmp_path)
        elif (PROJECT / rest[-2]).is_dir():
            shutil.copytree(PROJECT / rest[-2], tmp_path / rest[-1])
        else:
            (tmp_path / rest[-1]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(PROJECT / rest[-2], tmp_path / rest[-1])


def test_what_a_script_calls_exists() -> None:
    called = re.findall(
        r"(?<![\w/])(\.local/airflow/bin/\w+|docker/[\w.]+)", "".join(path.read_text() for path in (PROJECT / "docker").glob("*.sh"))
    )
    assert called and [one for one in called if not (PROJECT / one).exists()] == []


def test_volumes_are_declared_used_and_their_folders_belong_to_the_images_user() -> None:
    mounted = dict(volume.split(":") for service in SERVICES.values() for volume in service.get("volumes", []))
    assert set(mounted) == set(COMPOSE["volumes"])
    made = re.search(r"install -d -o coldstore -g coldstore (.*)", DOCKERFILE)
    assert made is not None
    assert {folder for name, folder in mounted.items() if name != "postgres"} <= set(made.group(1).split())


def test_the_image_is_not_run_by_root_and_holds_nothing_private() -> None:
    assert re.findall(r"^USER (.*)", DOCKERFILE, re.MULTILINE) == ["coldstore"]
    assert re.findall(r"^FROM (.*)", DOCKERFILE, re.MULTILINE) == ["python:3.11-slim-bookworm"]
    assert {".env", ".local", ".git", "lake"} <= set((PROJECT / ".dockerignore").read_text(encoding="utf-8").split("\n"))
    assert ".env" in (PROJECT / ".gitignore").read_text(encoding="utf-8").splitlines()


# --- secrets ------------------------------------------------------------------------------------------------------------------------------


def test_every_variable_is_explained_and_every_explained_one_is_used() -> None:
    assert {name for name, _, _ in VARIABLE.findall(TEXT)} == set(EXAMPLE)
    assert TEXT.count("$") == len(VARIABLE.findall(TEXT))


def test_no_secret_has_a_default() -> None:
    for name, operator, default in VARIABLE.findall(TEXT):
        if SECRET.search(name):
            is_optional = name.startswith("COLDSTORE_WEBHOOK_")
            assert (operator, bool(default)) == ((":-", False) if is_optional else (":?", True)), name
    assert set(EXAMPLE.values()) == {""}


@by_service
def test_no_secret_is_written_out(name: str) -> None:
    for variable, value in SERVICES[name].get("environment", {}).items():
        if SECRET.search(variable):
            assert VARIABLE.fullmatch(str(value)), variable
        assert not re.search(r"://[^/$]*:[^/$@]+@", str(value)), variable


# --- the commands are those of the tests and the scripts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("component", COMPONENTS)
def test_airflows_servers_are_called_as_make_up_calls_them(component: str) -> None:
    called = SERVICES[f"airflow-{component}"]["command"]
    assert called[0] == ".local/airflow/bin/airflow"
    assert called[1:] == [word.replace("127.0.0.1", "0.0.0.0") for word in COMPONENTS[component]]


def test_the_image_finds_programs_as_make_up_does() -> None:
    path = re.search(r"PATH=(\S+)", DOCKERFILE)
    assert path is not None
    there = environment()["PATH"].split(os.pathsep)[:2]
    assert [folder.replace(IMAGE_HOME, str(PROJECT)) for folder in path.group(1).split(":")[:2]] == there


def test_the_s3_server_is_called_as_in_the_tests(tmp_path: Path) -> None:
    differs = ("-dir", "-ip.bind", "-s3.port", "-master.port", "-volume.port", "-filer.port", "-admin.port")
    tested = [word for word in SeaweedFS(tmp_path).command()[1:] if word.split("=")[0] not in differs]
    called = SERVICES["s3"]["command"]
    assert called[0] == ".local/spark/bin/weed"
    assert [word for word in called[1:] if word.split("=")[0] not in differs] == tested
    assert (
        COMPOSE["x-lake"]["AWS_ENDPOINT_URL"].rsplit(":", 1)[1]
        == next(word for word in called if word.startswith("-s3.port=")).split("=")[1]
    )


@pytest.mark.parametrize("name", ["spark-master", "spark-worker"])
def test_sparks_servers_are_classes_of_the_locked_pyspark(name: str) -> None:
    program, main_class, *_ = SERVICES[name]["command"]
    assert program == ".local/spark/bin/spark-class"
    assert has_class(PYSPARK / "jars", main_class)


def test_airflow_the_workers_and_the_driver_agree_where_the_master_is() -> None:
    master = SERVICES["spark-master"]["command"]
    address = f"spark://{master[master.index('--host') + 1]}:{master[master.index('--port') + 1]}"
    assert address == "spark://spark-master:7077" == SERVICES["spark-worker"]["command"][-1]
    assert SERVICES["airflow-scheduler"]["environment"]["AIRFLOW_CONN_COLDSTORE_SPARK"] == address
    properties = dict(line.split() for line in (PROJECT / "docker" / "spark.conf").read_text().splitlines() if not line.startswith("#"))
    assert properties["spark.driver.host"] in SERVICES


def test_jobs_find_the_broker_where_it_says_it_is() -> None:
    properties = (PROJECT / "docker" / "kafka.properties").read_text(encoding="utf-8")
    address = SERVICES["airflow-scheduler"]["environment"]["COLDSTORE_KAFKA_SERVERS"]
    assert re.search(rf"^advertised\.listeners=.*INSIDE://{re.escape(address)},", properties, re.MULTILINE)


def test_the_broker_is_made_of_locked_jars() -> None:
    script = (PROJECT / "docker" / "kafka.sh").read_text(encoding="utf-8")
    called = set(re.findall(r"\bkafka\.[\w.]*[A-Z]\w+", script))
    assert called == {"kafka.Kafka", "kafka.tools.StorageTool"}
    assert ".local/jars/kafka-broker/*" in script
    assert [name for name in called if not has_class(PROJECT / ".local" / "jars" / "kafka-broker", name)] == []


def test_postgres_is_of_the_version_that_is_tested() -> None:
    tested = re.search(r'PROGRAMS = "pginstall(\d+)"', (PROJECT / "tests" / "servers" / "postgres.py").read_text(encoding="utf-8"))
    assert tested is not None and SERVICES["postgres"]["image"].startswith(f"postgres:{tested.group(1)}.")


# --- the health check, for real -----------------------------------------------------------------------------------------------------------


class Parts(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/health" else 503)
        self.end_headers()
        self.wfile.write(b'{"scheduler": {"status": "healthy"}, "dag_processor": {"status": "unhealthy"}}')

    def log_message(self, *_: Any) -> None:
        pass


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (["http", "/health"], 0),
        (["http", "/health", "scheduler"], 0),
        (["http", "/health", "scheduler", "dag_processor"], 1),
        (["http", "/elsewhere"], 1),
        (["tcp"], 0),
    ],
    ids=["it answers", "a part is well", "a part is not", "it answers with an error", "somebody listens"],
)
def test_the_health_check_tells_well_from_unwell(asked: list[str], answer: int) -> None:
    server = HTTPServer(("127.0.0.1", 0), Parts)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    kind, *rest = asked
    place = ["127.0.0.1", str(server.server_port)] if kind == "tcp" else [f"http://127.0.0.1:{server.server_port}{rest[0]}", *rest[1:]]
    command = [sys.executable, str(PROJECT / "docker" / "healthy.py"), kind, *place]
    assert subprocess.run(command, capture_output=True, check=False).returncode == answer
    server.shutdown()
    server.server_close()
    assert subprocess.run(command, capture_output=True, check=False).returncode == 1, "nobody is there any more"
