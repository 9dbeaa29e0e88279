"""The messages of the Kafka topic, taken once (P1, P19): first each batch is kept whole in `raw_messages`, then its lines are read from there.

So the broker is asked once for each message. A second attempt at a batch finds its messages in the lake, whatever became of the topic meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.readers import kafka_messages
from spark_jobs.runtime import begun_batch, broker, notices, stream, topic_life
from spark_jobs.runtime.begun_batch import BegunBatch
from spark_jobs.runtime.broker import Broker, Topic
from spark_jobs.runtime.checkpoint import Checkpoint
from spark_jobs.runtime.errors import Stop
from spark_jobs.runtime.ingest_batch import Batch
from spark_jobs.runtime.lake import Lake
from spark_jobs.runtime.run import Run
from spark_jobs.runtime.topic_life import Life, Offsets

DATA_LOSS = ("KAFKA_DATA_LOSS", "OffsetOutOfRangeException")  # what Spark, or Kafka's consumer, calls it
Take = Callable[[Batch, DataFrame], None]


class MessageIntake:
    """`take` is what the run does with a batch of lines, `next_seq` the number that it gets."""

    def __init__(self, run: Run, lake: Lake, take: Take, next_seq: Callable[[], int]) -> None:
        self.run, self.lake, self.take, self.next_seq = run, lake, take, next_seq

    def all(self) -> None:
        settings = self.lake.settings
        topic = Broker(settings).topic(settings.kafka_topic)
        known = topic_life.remembered(self.lake, settings.kafka_topic)
        if topic is not None:
            self._take_new(topic, self._life(topic, known))
        elif known is None:
            print(f"Kafka has no topic {settings.kafka_topic} (COLDSTORE_KAFKA_TOPIC) yet: no message was read.", flush=True)
        else:
            raise Stop(
                f"Kafka at {settings.kafka_servers} has no topic {settings.kafka_topic} any more. What was read of it is in the lake. Make it "
                "anew, name another one (COLDSTORE_KAFKA_TOPIC), or leave COLDSTORE_KAFKA_SERVERS out; then run the pass again."
            )

    def _life(self, topic: Topic, known: Life | None) -> Life:
        """The topic's life as it goes on from here; what went wrong with it is told before anything of it is read."""
        if known is None:
            life = topic_life.first(topic)
        else:
            known = self._behind_what_died(known)
            life, report = topic_life.after(known, _taken(known, self._checkpoint(known)), topic)
            if report:
                notices.notice(self.lake, self.run, report)
        if life != known:
            topic_life.remember(self.lake, life)
        return life

    def finish(self, left: BegunBatch) -> None:
        """A batch that died after its messages were kept is finished from there; of any other nothing was written."""
        batch = Batch(left.origin, left.number, self.next_seq())
        if self.lake.has_taken("raw_messages", batch.write):
            self.take(batch, self._lines(batch))
        begun_batch.done(self.lake)

    def _behind_what_died(self, life: Life) -> Life:
        """A batch that was not committed is never Spark's to repeat (its Kafka source fails at that): a new checkpoint goes on behind what was taken.
        What was kept of it is, by now, finished."""
        checkpoint = self._checkpoint(life)
        number = checkpoint.last_begun
        if number is None or checkpoint.is_whole:
            return life
        is_kept = self.lake.has_taken("raw_messages", Batch(checkpoint.id, number, 0).write)
        later = topic_life.behind(life, _offsets(life, checkpoint, number) if is_kept else _taken(life, checkpoint))
        topic_life.remember(self.lake, later)
        return later

    def _take_new(self, topic: Topic, life: Life) -> None:
        """Where nothing is new no stream is started."""
        checkpoint = self._checkpoint(life)
        taken = _taken(life, checkpoint)
        if any(end > taken.get(partition, topic.begins[partition]) for partition, end in topic.ends.items()):
            self._stream(topic, life, checkpoint)

    def _stream(self, topic: Topic, life: Life, checkpoint: Checkpoint) -> None:
        settings = self.lake.settings
        starts = {partition: life.starts.get(partition, kafka_messages.EARLIEST) for partition in topic.begins}
        messages = kafka_messages.stream(self.lake.spark, topic.name, starts, broker.spark_options(settings), settings)

        def keep_and_take(new: DataFrame, number: int) -> None:
            batch = Batch(checkpoint.id, number, self.next_seq())
            before = {**life.starts, **(_offsets(life, checkpoint, number - 1) if number else {})}
            until = _offsets(life, checkpoint, number)
            begun_batch.begin(self.lake, BegunBatch(batch.origin, number, topic=life.topic))
            self.lake.expect_rows(sum(until.values()) - sum(before.values()))
            named = {"run_id": F.lit(self.run.run_id), "batch": F.lit(batch.id)}
            self.lake.append("raw_messages", kafka_messages.whole(new, life.suffix).withColumns(named), batch.write)
            self.take(batch, self._lines(batch))
            begun_batch.done(self.lake)

        try:
            stream.run(messages, checkpoint, keep_and_take)
        except StreamingQueryException as failure:
            if any(name in str(failure) for name in DATA_LOSS):
                raise Stop(
                    f"the broker deleted messages of topic {topic.name} while they were read. Run the pass again: it tells which."
                ) from None
            raise

    def _lines(self, batch: Batch) -> DataFrame:
        return kafka_messages.decoded(self.lake.read("raw_messages").filter(F.col("batch") == batch.id), self.lake.settings)

    def _checkpoint(self, life: Life) -> Checkpoint:
        return Checkpoint(self.lake.place("checkpoints", "ingest_messages", f"{life.topic}-{life.checkpoint}"))


def _taken(life: Life, checkpoint: Checkpoint) -> Offsets:
    """By partition, the first offset that was not taken yet."""
    return {**life.starts, **_offsets(life, checkpoint, checkpoint.last_committed)}


def _offsets(life: Life, checkpoint: Checkpoint, number: int | None) -> Offsets:
    return {int(partition): offset for partition, offset in checkpoint.offsets(number).get(life.topic, {}).items()}
