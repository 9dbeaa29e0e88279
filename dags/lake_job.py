"""A Spark job that, where it fails, leaves an incident: what happened, to which input, and what is safe to do. It does so even when the JVM is gone."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseOperatorLink


class IncidentLink(BaseOperatorLink):
    name = "Incident"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        if not getattr(operator, "incident", None):
            return ""
        named = {"dag_id": ti_key.dag_id, "run_id": ti_key.run_id, "task_id": ti_key.task_id, "map_index": ti_key.map_index}
        return f"/coldstore/incident?{urlencode(named)}"


class LakeJob(SparkSubmitOperator):
    operator_extra_links = (IncidentLink(),)
    incident: dict[str, Any] | None = None

    def execute(self, context: Any) -> Any:
        try:
            return super().execute(context)
        except Exception as failure:
            self._leave(str(failure), context)
            raise

    def _leave(self, failure: str, context: Any) -> None:
        """Whatever becomes of this, the task fails for its own reason."""
        try:
            from published.incident import of_failure  # here, so that reading the DAG stays cheap

            self.incident = of_failure(failure)
            context["ti"].xcom_push("incident", self.incident)
        except Exception:
            self.log.exception("no incident could be left")
