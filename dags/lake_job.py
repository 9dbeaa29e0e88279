"""A Spark job that leaves an incident where it fails."""

from __future__ import annotations

from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseOperatorLink

from dags.incident import IncidentLink, incident_left


class LakeJob(SparkSubmitOperator):
    operator_extra_links = (IncidentLink(),)
    incident: dict[str, Any] | None = None

    def execute(self, context: Any) -> Any:
        with incident_left(self, context):
            return super().execute(context)


class DataDocsLink(BaseOperatorLink):
    name = "Data Docs"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        return "/coldstore/quality#data-docs"


class QualityCheck(LakeJob):
    operator_extra_links = (IncidentLink(), DataDocsLink())
