"""A stream over everything that is new, batch by batch, against its checkpoint."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

from spark_jobs.runtime import fault_points
from spark_jobs.runtime.checkpoint import Checkpoint
from spark_jobs.runtime.errors import Stop


def run(new: DataFrame, checkpoint: Checkpoint, take: Callable[[DataFrame, int], None]) -> None:
    """Why a batch stopped is kept: the stream would tell it as a Java error."""
    stopped: list[Stop] = []

    def take_or_stop(rows: DataFrame, number: int) -> None:
        try:
            take(rows, number)
        except Stop as stop:
            stopped.append(stop)
            raise
        fault_points.passed("before the checkpoint's commit")

    try:
        writer = new.writeStream.option("checkpointLocation", checkpoint.place)
        writer.trigger(availableNow=True).foreachBatch(take_or_stop).start().awaitTermination()
    except Exception as trouble:
        if stopped:
            raise stopped[0] from None
        checkpoint.refuse_if_damaged(trouble)
        raise
    fault_points.passed("after the checkpoint's commit")
