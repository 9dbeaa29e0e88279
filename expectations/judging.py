"""Great Expectations judges the counts: one row, one suite, one page for each table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import great_expectations as gx
import pandas as pd
from great_expectations.core import ExpectationSuiteValidationResult, ExpectationValidationResult
from great_expectations.data_context.data_context.abstract_data_context import AbstractDataContext
from great_expectations.datasource.fluent.pandas_datasource import PandasDatasource
from great_expectations.expectations.core.expect_column_values_to_be_between import ExpectColumnValuesToBeBetween
from great_expectations.expectations.metadata_types import FailureSeverity
from great_expectations.expectations.row_conditions import Column, ComparisonCondition
from great_expectations.render.components import LegacyDiagnosticRendererType
from great_expectations.render.renderer.renderer import renderer

from expectations import data_docs, wording
from expectations.measures import Measures
from expectations.results import Result
from expectations.vocabulary import Expectation, Severity, Suite
from expectations.wording import Value
from include.settings import Settings


class ExpectMeasureToBeBetween(ExpectColumnValuesToBeBetween):
    """Judged as by its parent, which lets a null pass; its page says what was seen, not how many of one row were unexpected."""

    @classmethod
    @renderer(renderer_type=LegacyDiagnosticRendererType.OBSERVED_VALUE)
    def _diagnostic_observed_value_renderer(
        cls, configuration: Any = None, result: ExpectationValidationResult | None = None, runtime_configuration: Any = None
    ) -> str:
        return told(result).get("observed", "--")


def judge(suites: Sequence[Suite], measures: Measures, settings: Settings, run_id: str, docs_folder: Path) -> list[Result]:
    context = data_docs.open_site(docs_folder)
    counts = context.data_sources.add_pandas("counts")
    run = gx.RunIdentifier(run_name=filename(run_id), run_time=datetime.now(UTC))
    results = [
        result
        for suite in suites
        for result in read(suite, validate(context, counts, suite, measures[suite.table], settings, run), settings)
    ]
    data_docs.build(context, docs_folder)
    return results


def validate(
    context: AbstractDataContext,
    counts: PandasDatasource,
    suite: Suite,
    measures: Mapping[str, Value],
    settings: Settings,
    run: gx.RunIdentifier,
) -> ExpectationSuiteValidationResult:
    row = pd.DataFrame([{name: wording.number(measures[name]) for name in suite.measures}], dtype="float64")
    batch = counts.add_dataframe_asset(suite.table).add_batch_definition_whole_dataframe("this run")
    translated = context.suites.add(
        gx.ExpectationSuite(name=suite.table, expectations=[translate(each, measures, settings) for each in suite.expectations])
    )
    definition = context.validation_definitions.add(gx.ValidationDefinition(name=suite.table, data=batch, suite=translated))
    return definition.run(batch_parameters={"dataframe": row}, run_id=run, result_format="BOOLEAN_ONLY")


def translate(expectation: Expectation, measures: Mapping[str, Value], settings: Settings) -> ExpectMeasureToBeBetween:
    limit = wording.limit(expectation, settings)
    return ExpectMeasureToBeBetween(
        column=expectation.measure,
        min_value=expectation.at_least(settings) if expectation.at_least else None,
        max_value=expectation.at_most(settings) if expectation.at_most else None,
        severity=FailureSeverity(expectation.severity),
        description=f"{expectation.severity}: {expectation.name} (limit: {limit})",
        meta={"name": expectation.name, "limit": limit, "observed": wording.observed(expectation, measures, settings)},
        row_condition=condition(expectation, settings),
    )


def condition(expectation: Expectation, settings: Settings) -> ComparisonCondition | None:
    if expectation.judged_from is None:
        return None
    counted, enough = expectation.judged_from
    return Column(counted) >= enough(settings)


def read(suite: Suite, validated: ExpectationSuiteValidationResult, settings: Settings) -> list[Result]:
    """Our rows in the order of the suite; what Great Expectations could not judge has failed."""
    judged = {told(result)["name"]: result for result in validated.results}
    return [
        Result(
            table=suite.table,
            expectation=expectation.name,
            severity=severity(judged[expectation.name]),
            success=bool(judged[expectation.name].success),
            observed=seen(judged[expectation.name]),
            limit=wording.limit(expectation, settings),
        )
        for expectation in suite.expectations
    ]


def severity(result: ExpectationValidationResult) -> Severity:
    config = result.expectation_config
    return "warning" if config and config.severity == FailureSeverity.WARNING else "critical"


def seen(result: ExpectationValidationResult) -> str:
    trouble = result.exception_info or {}
    return f"could not be judged: {trouble['exception_message']}" if trouble.get("raised_exception") else told(result)["observed"]


def told(result: ExpectationValidationResult | None) -> dict[str, str]:
    """What the expectation was told when it was made, and its result brings back."""
    config = result.expectation_config if result else None
    return dict(config.meta or {}) if config else {}


def filename(run_id: str) -> str:
    """A run's id as the name of its folder; Airflow's ids stay as they are."""
    return re.sub(r"[^\w.~:+-]", "-", run_id).strip(".") or "-"
