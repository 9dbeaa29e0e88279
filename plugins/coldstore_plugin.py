"""What this project adds to Airflow's own pages."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin

from board.app import app


class ColdStorePlugin(AirflowPlugin):
    name = "coldstore"
    fastapi_apps = [{"app": app, "url_prefix": "/coldstore", "name": "Cold stores"}]  # noqa: RUF012 — Airflow's own way
    external_views = [  # noqa: RUF012
        {"name": "Cold stores", "href": "/coldstore/", "destination": "nav", "url_route": "cold-stores"},
        {
            "name": "Incident",
            "href": "/coldstore/incident?dag_id={DAG_ID}&run_id={RUN_ID}&task_id={TASK_ID}&map_index={MAP_INDEX}",
            "destination": "task_instance",
            "url_route": "incident",
        },
    ]
