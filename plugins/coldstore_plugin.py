"""What this project adds to Airflow's own pages."""

from __future__ import annotations

from typing import Any, ClassVar

from airflow.plugins_manager import AirflowPlugin

from board.app import app


class ColdStorePlugin(AirflowPlugin):
    name = "coldstore"
    fastapi_apps: ClassVar[list[dict[str, Any]]] = [{"app": app, "url_prefix": "/coldstore", "name": "Cold stores"}]
    external_views: ClassVar[list[dict[str, Any]]] = [
        {"name": "Cold stores", "href": "/coldstore/", "destination": "nav", "url_route": "cold-stores"},
        {
            "name": "Incident",
            "href": "/coldstore/incident?dag_id={DAG_ID}&run_id={RUN_ID}&task_id={TASK_ID}&map_index={MAP_INDEX}",
            "destination": "task_instance",
            "url_route": "incident",
        },
    ]
