"""The board as a web application that Airflow serves under its own login. Who may see the pipeline's DAG may look; who may trigger it may acknowledge."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Annotated, Any
from urllib.parse import quote

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import FastAPI, Form, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, FileSystemLoader, select_autoescape

from board import incidents, pictures
from include.reference import BrokenReference, parsed
from include.settings import Settings
from include.wording import lasted
from published import board, quality
from published.acknowledging import acknowledge
from published.files import read
from published.refused import Refused
from published.snapshot import Snapshot, opened, published

DAG, DAGS = "coldstore_pipeline", ("coldstore_pipeline", "rebuild_day", "watch_freshness")
TEMPLATES = Path(__file__).parent / "templates"
LEGEND = (
    ("average", "average"), ("range", "lowest to highest"), ("limit", "limits"), ("outage", "silent"), ("door", "door open"),
    ("critical", "critical"), ("warning", "warning"), ("info", "info"),
)  # fmt: skip
SPANS = ((24, "24 hours"), (72, "3 days"), (168, "7 days"))
pages = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=select_autoescape())
pages.globals["style"] = (TEMPLATES / "style.css").read_text(encoding="utf-8")
pages.filters["commands"] = incidents.commands
KINDS = {".html": "text/html", ".css": "text/css", ".png": "image/png"}  # of Data Docs
DOCS = (TEMPLATES / "data_docs.css").read_text(encoding="utf-8")
KEPT: dict[tuple[str, str, int], tuple[list[board.Store], dict[str, str]]] = {}
app = FastAPI(title="Cold stores", docs_url=None, redoc_url=None, openapi_url=None)


def may(user: Any, method: Any, dag_id: str = DAG, entity: DagAccessEntity | None = None) -> bool:
    return bool(get_auth_manager().is_authorized_dag(method=method, access_entity=entity, details=DagDetails(id=dag_id), user=user))


def look(user: Any) -> None:
    if not may(user, "GET"):
        raise HTTPException(403, "your role may not see the cold stores")


@app.exception_handler(Refused)
def nothing_published(request: Request, refused: Refused) -> HTMLResponse:
    return problem(request, "No stores yet", str(refused), 200)


@app.get("/", response_class=HTMLResponse)
def stores(request: Request, user: GetUserDep) -> HTMLResponse:
    look(user)
    snapshot = published(Settings.from_env().lake)
    found, drawn = board_of(snapshot)
    return shown(request, "stores.html", stores=found, pictures=drawn, state=state_of(snapshot), severities=board.SEVERITIES)


@app.get("/stores/{store_id:path}", response_class=HTMLResponse)
def store(request: Request, store_id: str, user: GetUserDep, hours: int = 24) -> HTMLResponse:
    look(user)
    if hours not in dict(SPANS):
        return problem(request, "No such span", f"{hours} hours cannot be shown: {', '.join(str(each) for each, _ in SPANS)} can.", 400)
    snapshot = published(Settings.from_env().lake)
    found = board.store(snapshot, store_id, limits(snapshot.lake), hours)
    if found is None:
        return problem(request, "No such store", f"{store_id} has no sensor and no reading in the published tables.", 404)
    return shown(
        request, "store.html", page=found, picture=pictures.time_axis(found), state=state_of(snapshot), spans=SPANS, shown=hours,
        may_acknowledge=may(user, "POST"), legend=LEGEND,
    )  # fmt: skip


@app.post("/acknowledge")
def acknowledged(
    request: Request, user: GetUserDep, alert_id: Annotated[str, Form()], store_id: Annotated[str, Form()], comment: Annotated[str, Form()]
) -> Any:
    if not may(user, "POST"):
        raise HTTPException(403, "your role may look, not acknowledge")
    back = f"{_base(request)}/stores/{quote(store_id)}"
    try:
        acknowledge(Settings.from_env().lake, alert_id, user.get_name(), comment)
    except Refused as refused:
        return problem(request, "Not acknowledged", str(refused), 409, back)
    return RedirectResponse(f"{back}#{quote(alert_id)}", status_code=303)


@app.get("/quality", response_class=HTMLResponse)
def checks(request: Request, user: GetUserDep) -> HTMLResponse:
    look(user)
    lake = Settings.from_env().lake
    found = quality.of_lake(lake)
    drawn = {trend.name: pictures.trend(trend) for trend in found.trends}
    return shown(request, "quality.html", quality=found, pictures=drawn, runs=quality.RUNS, docs=quality.data_docs(lake))


@app.get("/data-docs/{path:path}")
def data_docs(request: Request, path: str, user: GetUserDep) -> Response:
    """Great Expectations' own pages, in our style: theirs comes from the internet, and so do their programs, which are kept from running here."""
    look(user)
    if path == "index.html":  # theirs is a list that only programs of the internet's can draw
        return RedirectResponse(f"{_base(request)}/quality#data-docs", status_code=303)
    kind = KINDS.get(PurePosixPath(path).suffix)
    content = read(f"{Settings.from_env().lake}/data_docs/{path}") if kind and ".." not in PurePosixPath(path).parts else None
    if kind is None or content is None:
        return problem(request, "No such page", f"{path} is not among the Data Docs; a run writes them when it is checked.", 404)
    if kind == "text/html":
        content = content.replace(b"</head>", f"<style>{pages.globals['style']}{DOCS}</style></head>".encode(), 1)
    return Response(
        content,
        media_type=kind,
        headers={"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline' 'self'; img-src 'self' data:"},
    )


@app.get("/incident", response_class=HTMLResponse)
def incident(request: Request, user: GetUserDep, dag_id: str, run_id: str, task_id: str, map_index: str = "-1") -> HTMLResponse:
    if dag_id not in DAGS or not may(user, "GET", dag_id, DagAccessEntity.TASK_INSTANCE):
        raise HTTPException(403, "your role may not see this task")
    number = int(map_index) if map_index.removeprefix("-").isdigit() else -1
    failed = incidents.of_task(dag_id, run_id, task_id, number)
    if failed is None:
        return problem(request, "No such task", f"{dag_id} has no run {run_id} with a task {task_id}.", 404)
    if failed.found is None:
        return problem(request, "No incident", f"{task_id} of {run_id} is {failed.state}: there is no incident to tell of.", 200)
    named = {"dag_id": dag_id, "run_id": run_id, "task_id": task_id, "state": failed.state, "attempt": failed.attempt}
    return shown(request, "incident.html", found=failed.found, runbook=incidents.section(failed.found["kind"]), **named)


def board_of(snapshot: Snapshot) -> tuple[list[board.Store], dict[str, str]]:
    """Worked out once: a snapshot never changes, but for what people say of it."""
    key = (snapshot.lake, snapshot.run["run_id"], opened(snapshot.lake, "acknowledgements").version())
    if key not in KEPT:
        found, span = board.stores(snapshot), board.day_until(snapshot)
        KEPT.clear()
        KEPT[key] = found, {each.store_id: pictures.spark(each.temperatures, span) for each in found}
    return KEPT[key]


def limits(lake: str) -> list[dict[str, Any]]:
    try:
        return parsed("limits", read(f"{lake}/reference/limits.csv") or b"")
    except BrokenReference:  # the pipeline says so; the page shows what it can
        return []


def state_of(snapshot: Snapshot) -> dict[str, Any]:
    """What is shown, how old it is, and whether a later run was held or failed."""
    run, last = snapshot.run, snapshot.last
    ago = datetime.now(UTC) - run["finished_at"]
    told = f"run {run['run_id']}, up to {run['as_of']:%d %b %Y %H:%M} UTC, published {lasted(ago)} ago"
    return {"status": last["status"], "told": told, "held": last["run_id"] if last["status"] == "held" else ""}


def problem(request: Request, title: str, told: str, status: int, back: str = "") -> HTMLResponse:
    return shown(request, "problem.html", status, title=title, told=told, back=back or f"{_base(request)}/")


def shown(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    return HTMLResponse(pages.get_template(template).render(base=_base(request), **values), status_code=status)


def _base(request: Request) -> str:
    """Where Airflow serves these pages."""
    return str(request.scope.get("root_path", ""))
