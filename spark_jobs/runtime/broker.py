"""The Kafka broker: how to reach it, from the driver and from Spark, and what it has of a topic.

User and password stand in the options only, and those are never printed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec, TopicDescription

from include.settings import SettingError, Settings
from spark_jobs.runtime.errors import Stop

SECURITY = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
WHAT_TO_DO = "Nothing is lost: see to the broker, or to the COLDSTORE_KAFKA_ settings, and run it again."


@dataclass(frozen=True)
class Topic:
    """A topic as the broker has it now."""

    name: str
    id: str  # another one when it is made anew under the same name; empty: the broker does not tell
    begins: dict[int, int]  # by partition: the first offset that is still there …
    ends: dict[int, int]  # … and the one after the last


class Broker:
    def __init__(self, settings: Settings) -> None:
        check(settings)
        self._settings, self._complaint = settings, ""

    def topic(self, name: str) -> Topic | None:
        """None where the broker has no such topic."""
        admin = AdminClient({**client_options(self._settings), "error_cb": self._complains})
        try:
            described = self._described(admin, name)
            if described is None:
                return None
            partitions = [TopicPartition(name, partition.id) for partition in described.partitions]
            begins, ends = (self._offsets(admin, partitions, spec) for spec in (OffsetSpec.earliest(), OffsetSpec.latest()))
            return Topic(name, _id(described), begins, ends)
        except KafkaException as failure:
            admin.poll(0.1)  # lets `_complains` hear what there is to hear
            raise Stop(f"Kafka at {self._settings.kafka_servers} cannot be asked ({self._cause(failure)}). {WHAT_TO_DO}") from None

    def _described(self, admin: AdminClient, name: str) -> TopicDescription | None:
        asked = admin.describe_topics(TopicCollection([name]), request_timeout=self._settings.kafka_timeout_s)
        try:
            return asked[name].result()
        except KafkaException as failure:
            if failure.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return None
            raise

    def _offsets(self, admin: AdminClient, partitions: list[TopicPartition], spec: OffsetSpec) -> dict[int, int]:
        asked = admin.list_offsets(
            dict.fromkeys(partitions, spec),
            isolation_level=IsolationLevel.READ_COMMITTED,
            request_timeout=self._settings.kafka_timeout_s,
        )
        return {partition.partition: int(future.result().offset) for partition, future in asked.items()}

    def _complains(self, error: KafkaError) -> None:
        """What lies behind a request that gets no answer, like a wrong password."""
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._complaint = error.str()

    def _cause(self, failure: KafkaException) -> str:
        return self._complaint or str(failure.args[0].str())


def _id(described: TopicDescription) -> str:
    text = str(described.topic_id) if described.topic_id is not None else ""
    return "" if text.strip("A=") == "" else text  # sixteen zero bytes: an old broker


def client_options(settings: Settings) -> dict[str, Any]:
    """For what the driver does itself. The library writes no log: what it would say reaches the user as one line."""
    options: dict[str, Any] = {"bootstrap.servers": settings.kafka_servers, "security.protocol": settings.kafka_security, "log_level": 0}
    if settings.kafka_security.startswith("SASL"):
        options |= {"sasl.mechanism": "PLAIN", "sasl.username": settings.kafka_user, "sasl.password": settings.kafka_password}
    if settings.kafka_ca_file:
        options["ssl.ca.location"] = settings.kafka_ca_file
    return options


def spark_options(settings: Settings) -> dict[str, str]:
    """The same for Spark. Of a transaction that was given up no message is read."""
    options = {
        "bootstrap.servers": settings.kafka_servers,
        "security.protocol": settings.kafka_security,
        "isolation.level": "read_committed",
    }
    if settings.kafka_security.startswith("SASL"):
        who = f'username="{_quoted(settings.kafka_user)}" password="{_quoted(settings.kafka_password)}"'
        options |= {
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f"org.apache.kafka.common.security.plain.PlainLoginModule required {who};",
        }
    if settings.kafka_ca_file:
        options |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": settings.kafka_ca_file}
    return {f"kafka.{name}": value for name, value in options.items()}


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def check(settings: Settings) -> None:
    """Before anything is asked or sent."""
    if not settings.kafka_servers:
        raise SettingError("COLDSTORE_KAFKA_ALERTS_TOPIC is set, but COLDSTORE_KAFKA_SERVERS is not. Give both, or neither.")
    if settings.kafka_security not in SECURITY:
        raise SettingError(f"COLDSTORE_KAFKA_SECURITY={settings.kafka_security!r} is not known; give one of {', '.join(SECURITY)}.")
    has_user, asks_for_user = bool(settings.kafka_user and settings.kafka_password), settings.kafka_security.startswith("SASL")
    if asks_for_user and not has_user:
        raise SettingError(
            f"COLDSTORE_KAFKA_SECURITY is {settings.kafka_security}: give COLDSTORE_KAFKA_USER and COLDSTORE_KAFKA_PASSWORD."
        )
    if settings.kafka_user and not asks_for_user:
        raise SettingError(
            f"COLDSTORE_KAFKA_USER is given, but {settings.kafka_security} asks for none: give COLDSTORE_KAFKA_SECURITY=SASL_SSL."
        )
    if settings.kafka_alerts_topic == settings.kafka_topic:
        raise SettingError(
            "COLDSTORE_KAFKA_ALERTS_TOPIC is the topic that readings come from: alerts would be read as readings. Give another."
        )
    for name in ("kafka_batch_messages", "kafka_timeout_s"):
        if not 0 < getattr(settings, name) < float("inf"):
            raise SettingError(f"COLDSTORE_{name.upper()} has to be a number above 0.")
