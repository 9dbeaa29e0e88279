"""Airflow's own configuration: closed to the outside, its secrets from the home."""

from __future__ import annotations

import configparser
import io

from include.settings import PROJECT
from scripts.airflow_server.home import folder, kept, logs, new_secrets, password, users
from scripts.airflow_server.metadata import given_address, own_address
from scripts.ports import LOCALHOST
from scripts.processes import write_private


def configuration(port: int, is_scheduling: bool) -> configparser.ConfigParser:
    own = kept(folder() / "secrets.json", new_secrets)
    address = f"http://{LOCALHOST}:{port}"
    config = configparser.ConfigParser(interpolation=None)
    config.read_dict(
        {
            "core": {
                "dags_folder": PROJECT / "dags",
                "plugins_folder": PROJECT / "plugins",
                "executor": "LocalExecutor",
                "parallelism": 4 if given_address() else 2,  # processes started in advance; the pool lets one task run at a time
                "load_examples": False,
                "fernet_key": own["fernet_key"],
                "execution_api_server_url": f"{address}/execution/",
                "simple_auth_manager_users": ",".join(f"{name}:{role}" for name, role in users().items()),
                "simple_auth_manager_all_admins": False,
                "simple_auth_manager_passwords_file": folder() / "passwords.json",
            },
            "database": {} if given_address() else {"sql_alchemy_conn": own_address()},
            "logging": {"base_log_folder": logs()},
            "api": {"host": LOCALHOST, "port": port, "base_url": address, "workers": 1, "secret_key": own["secret_key"]},
            "api_auth": {"jwt_secret": own["jwt_secret"]},
            "workers": {"execution_api_timeout": 60},  # the first call takes the server seconds
            "scheduler": {"use_job_schedule": is_scheduling, "enable_health_check": False, "orphaned_tasks_check_interval": 60},
            "dag_processor": {"refresh_interval": 30},
            "usage_data_collection": {"enabled": False},
        }
    )
    return config


def prepare(port: int, is_scheduling: bool) -> None:
    """The home folder with its secrets and airflow.cfg, all private."""
    folder().mkdir(parents=True, exist_ok=True)
    folder().chmod(0o700)
    logs().mkdir(exist_ok=True)
    password()
    text = io.StringIO()
    configuration(port, is_scheduling).write(text)
    write_private(folder() / "airflow.cfg", text.getvalue())
