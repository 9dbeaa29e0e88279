"""The Data Docs site: one page for each run and table, an index over the last runs, all in one folder that can be served or copied."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import great_expectations as gx
from great_expectations.data_context.data_context.abstract_data_context import AbstractDataContext
from great_expectations.data_context.types.base import DataContextConfig, ProgressBarsConfig
from great_expectations.data_context.types.resource_identifiers import ExpectationSuiteIdentifier, ValidationResultIdentifier

from expectations.results import RESULTS

KEPT_RUNS = 20  # the index is made anew from all of them; the table quality_results has the whole history
PAGES = "validations"


def open_site(folder: Path) -> AbstractDataContext:
    """A context that lives as long as this run; only the results and their pages stay, in the folder."""
    return gx.get_context(mode="ephemeral", project_config=config(folder.absolute()))


def config(folder: Path) -> DataContextConfig:
    section = {"class_name": "DefaultSiteSectionBuilder"}
    return DataContextConfig(
        expectations_store_name="suites",
        validation_results_store_name="results",
        checkpoint_store_name="checkpoints",
        stores={
            "suites": {"class_name": "ExpectationsStore", "store_backend": in_memory()},
            "results": {"class_name": "ValidationResultsStore", "store_backend": files(folder / RESULTS)},
            "checkpoints": {"class_name": "CheckpointStore", "store_backend": in_memory()},
            "validation_definition_store": {"class_name": "ValidationDefinitionStore", "store_backend": in_memory()},
        },
        data_docs_sites={
            "data_docs": {
                "class_name": "SiteBuilder",
                "site_name": "Cold-Store Lakehouse",
                "show_how_to_buttons": False,
                "store_backend": files(folder),
                "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
                # The filter lets every run in: by default one with "profiling" in its id would be left out.
                "site_section_builders": {
                    "expectations": section,
                    "validations": {**section, "run_name_filter": {"matches_regex": "^"}},
                    "profiling": "None",
                },
            }
        },
        progress_bars=ProgressBarsConfig(globally=False, metric_calculations=False),
        analytics_enabled=False,
    )


def in_memory() -> dict[str, Any]:
    return {"class_name": "InMemoryStoreBackend"}


def files(folder: Path) -> dict[str, Any]:
    return {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(folder), "suppress_store_backend_id": True}


def build(context: AbstractDataContext, folder: Path) -> None:
    """Pages for the results that have none, the suites as they are now, and the index, which takes the pages of forgotten runs away."""
    forget_old_runs(folder)
    suites: list[Any] = [ExpectationSuiteIdentifier(name=suite.name) for suite in context.suites.all()]
    context.build_data_docs(resource_identifiers=suites + list(results_without_page(folder)))
    for place in (folder / RESULTS, folder / PAGES):
        drop_empty_folders(place)


def stored_results(folder: Path) -> list[Path]:
    """<table>/<run id>/<time of the run>/<batch>.json, as Great Expectations lays them down."""
    return sorted((folder / RESULTS).glob("*/*/*/*.json"))


def forget_old_runs(folder: Path) -> None:
    results = stored_results(folder)
    kept = sorted({result.parent.name for result in results})[-KEPT_RUNS:]
    for result in results:
        if result.parent.name not in kept:
            result.unlink()


def results_without_page(folder: Path) -> Iterator[ValidationResultIdentifier]:
    """Those of this run, and of one that was killed before its pages were made; what it had half written is dropped."""
    for result in stored_results(folder):
        place = result.relative_to(folder / RESULTS).with_suffix("")
        if (folder / PAGES / place).with_suffix(".html").exists():
            continue
        if is_torn(result):
            result.unlink()
        else:
            yield ValidationResultIdentifier.from_tuple(place.parts)  # type: ignore[no-untyped-call]


def is_torn(result: Path) -> bool:
    try:
        json.loads(result.read_bytes())
    except ValueError:
        return True
    return False


def drop_empty_folders(place: Path) -> None:
    for folder in sorted((path for path in place.rglob("*") if path.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()
