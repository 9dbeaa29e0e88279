"""A person's word on what a rebuild would change, where it is much; nobody is asked about little, nothing, or a preview."""

from __future__ import annotations

import json
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from dags.incident import IncidentLink, incident_left
from include.settings import Settings

SHOWN = 10  # rows of a table


class ApproveChange(ApprovalOperator):
    """Reads what `compare_day` found. The tasks that follow get its fingerprint, and a note on who let it pass and why."""

    template_fields = (*ApprovalOperator.template_fields, "comparison", "dry_run")
    operator_extra_links = (IncidentLink(),)
    incident: dict[str, Any] | None = None

    def __init__(self, *, comparison: str, dry_run: str, **settings: Any) -> None:
        super().__init__(subject="A rebuild wants to change published tables", **settings)
        self.comparison, self.dry_run = comparison, dry_run

    def execute(self, context: Any) -> Any:
        with incident_left(self, context):
            return self._ask(_read(self.comparison), context)

    def _ask(self, found: dict[str, Any], context: Any) -> Any:
        self.log.info("%s", told(found))
        context["ti"].xcom_push("comparison", found)
        if not found["rows"]:
            raise AirflowSkipException(f"{found['day']}: the published tables are as a rebuild makes them, there is nothing to swap in.")
        if self.dry_run == "True":
            raise AirflowSkipException(f"{found['day']}: {_rows(found)} would change. This was a preview, so nothing does.")
        context["ti"].xcom_push("fingerprint", found["fingerprint"])
        few = Settings.from_env().rebuild_approval_rows
        if found["rows"] <= few:
            context["ti"].xcom_push("note", f"{found['day']} rebuilt: {_rows(found)}, too few to need approval")
            return None
        self.subject = f"{found['day']}: a rebuild changes {_rows(found)} of published tables"
        self.body = told(found)
        return super().execute(context)

    def execute_complete(self, context: Any, event: dict[str, Any]) -> Any:
        answer = super().execute_complete(context, event)
        who = (answer["responded_by_user"] or {}).get("name") or "nobody known"
        why = str(answer["params_input"].get("why") or "").strip() or "no reason given"
        did = "approved" if self.APPROVE in answer["chosen_options"] else "rejected"
        day = context["ti"].xcom_pull(task_ids=self.task_id, key="comparison")["day"]
        self.log.info("%s was %s by %s: %s", day, did, who, why)
        context["ti"].xcom_push("note", f"{day} rebuilt, {did} by {who}: {why}")
        return answer


def told(found: dict[str, Any]) -> str:
    """For a person who has to decide, as Markdown."""
    lines = [f"**{found['day']}**: {_rows(found)} would change.", ""]
    for table in found["tables"]:
        if count := sum(table["actions"].values()):
            how = ", ".join(f"{number:,} {action}" for action, number in sorted(table["actions"].items()))
            more = [f"- … and {count - SHOWN:,} more"] if count > SHOWN else []
            lines += [f"**{table['table']}**: {how}", "", *(f"- {row}" for row in table["shown"][:SHOWN]), *more, ""]
    return "\n".join(lines).rstrip()


def _rows(found: dict[str, Any]) -> str:
    return f"{found['rows']:,} row{'s' * (found['rows'] != 1)}"


def _read(place: str) -> dict[str, Any]:
    from published.files import read  # here, so that reading the DAG stays cheap

    content = read(place)
    if content is None:
        raise AirflowFailException(f"{place} is not there: clear the task compare_day, it writes it.")
    return dict(json.loads(content))
