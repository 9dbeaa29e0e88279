"""A real Kafka broker (KRaft, from the Maven jars) on this machine's loopback, with ports and a folder of its own.

It has two doors: an open one, and one that asks for a certificate it trusts, a user and a password (SASL_SSL).
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from include.settings import PROJECT
from tests.servers.ports import free_ports

JARS = PROJECT / ".local" / "jars" / "kafka-broker"
JAVA = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{JARS}/*"]
UP_WITHIN_S = 120
PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=OPEN://127.0.0.1:{open},GUARDED://127.0.0.1:{guarded},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=OPEN://127.0.0.1:{open},GUARDED://127.0.0.1:{guarded}
inter.broker.listener.name=OPEN
listener.security.protocol.map=CONTROLLER:PLAINTEXT,OPEN:PLAINTEXT,GUARDED:SASL_SSL
listener.name.guarded.sasl.enabled.mechanisms=PLAIN
listener.name.guarded.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_{user}="{password}";
listener.name.guarded.ssl.keystore.type=PKCS12
listener.name.guarded.ssl.keystore.location={folder}/keys.p12
listener.name.guarded.ssl.keystore.password={store_password}
log.dirs={folder}/logs
auto.create.topics.enable=false
num.partitions=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.segment.delete.delay.ms=0
log.retention.ms=-1
log.cleaner.dedupe.buffer.size=4194304
"""


class Kafka:
    """`environment` is all that a job needs to find it; `guarded` the same by the other door."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.user, self.password = f"user{secrets.token_hex(4)}", secrets.token_hex(16)
        self._ports = dict(zip(("open", "guarded", "controller"), free_ports(3), strict=True))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self._ports['open']}"

    @property
    def environment(self) -> dict[str, str]:
        return {"COLDSTORE_KAFKA_SERVERS": self.servers}

    @property
    def guarded(self) -> dict[str, str]:
        return {
            "COLDSTORE_KAFKA_SERVERS": f"127.0.0.1:{self._ports['guarded']}",
            "COLDSTORE_KAFKA_SECURITY": "SASL_SSL",
            "COLDSTORE_KAFKA_USER": self.user,
            "COLDSTORE_KAFKA_PASSWORD": self.password,
            "COLDSTORE_KAFKA_CA_FILE": str(self.folder / "ca.pem"),
        }

    def start(self) -> None:
        if not (self.folder / "logs").exists():
            self._prepare()
        with (self.folder / "log").open("ab") as log:
            command = [*JAVA, "kafka.Kafka", str(self.folder / "server.properties")]
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, start_new_session=True)
        self._wait()

    def _prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        store_password, properties = secrets.token_hex(16), self.folder / "server.properties"
        values = {**self._ports, "folder": self.folder, "user": self.user, "password": self.password, "store_password": store_password}
        properties.write_text(PROPERTIES.format(**values), encoding="utf-8")
        store = ["-keystore", str(self.folder / "keys.p12"), "-storetype", "PKCS12", "-storepass", store_password, "-alias", "broker"]
        named = ["-dname", "CN=127.0.0.1", "-ext", "SAN=ip:127.0.0.1", "-validity", "30", "-keyalg", "EC"]
        self._run("keytool", "-genkeypair", *store, *named)
        self._run("keytool", "-exportcert", "-rfc", *store, "-file", str(self.folder / "ca.pem"))
        cluster = secrets.token_urlsafe(16)
        self._run(*JAVA, "kafka.tools.StorageTool", "format", "--cluster-id", cluster, "--config", str(properties))

    def _run(self, *command: str) -> None:
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder)
        assert done.returncode == 0, done.stdout + done.stderr

    def _wait(self) -> None:
        end = time.monotonic() + UP_WITHIN_S
        while True:
            try:
                self.admin.list_topics(timeout=2)
                return
            except Exception:
                assert self._process is not None and self._process.poll() is None, self._said()
                assert time.monotonic() < end, "the broker did not come up"

    def _said(self) -> str:
        lines = (self.folder / "log").read_text(encoding="utf-8").splitlines()
        return "\n".join([line for line in lines if "ERROR" in line or "Exception" in line][:10] or lines[-20:])

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, how)
            self._process.wait()
            self._process = None

    # What a test does with it

    @cached_property
    def admin(self) -> AdminClient:
        return AdminClient(self._options())

    def _options(self) -> dict[str, Any]:
        return {"bootstrap.servers": self.servers, "log_level": 0, "topic.metadata.refresh.interval.ms": 500}

    def creates(self, topic: str, partitions: int = 1) -> None:
        _wait_for(self.admin.create_topics([NewTopic(topic, partitions, 1)]))

    def grows(self, topic: str, partitions: int) -> None:
        _wait_for(self.admin.create_partitions([NewPartitions(topic, partitions)]))

    def deletes(self, topic: str) -> None:
        _wait_for(self.admin.delete_topics([topic]))
        while topic in self.admin.list_topics(timeout=10).topics:
            time.sleep(0.1)

    def truncates(self, topic: str, before: int, partition: int = 0) -> None:
        """Delete the messages before an offset, as retention does."""
        _wait_for(self.admin.delete_records([TopicPartition(topic, partition, before)]))

    def receives(self, topic: str, *values: bytes | None, arrived_ms: int, partition: int = 0, **more: Any) -> None:
        """Messages with that time stamp; `more` are a key and headers."""
        self.receives_all(topic, [(value, arrived_ms) for value in values], partition, **more)

    def receives_all(self, topic: str, messages: Iterable[tuple[bytes | None, int]], partition: int = 0, **more: Any) -> None:
        producer, failed = Producer({**self._options(), "acks": "all", "linger.ms": 5}), list[Any]()
        for value, arrived_ms in messages:
            producer.produce(
                topic, value, partition=partition, timestamp=arrived_ms, on_delivery=lambda error, _: failed.append(error), **more
            )
        assert producer.flush(30) == 0 and not any(failed), failed

    def messages(self, topic: str) -> list[Message]:
        """All that are there, partition by partition."""
        consumer = Consumer(
            {**self._options(), "group.id": secrets.token_hex(4), "enable.auto.commit": False, "enable.partition.eof": False}
        )
        found: list[Message] = []
        for partition in consumer.list_topics(topic, timeout=10).topics[topic].partitions:
            first, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)
            consumer.assign([TopicPartition(topic, partition, first)])
            until = time.monotonic() + 20
            while first < end:
                assert time.monotonic() < until, f"{topic} gives no more than {len(found)} messages"
                for message in consumer.consume(1000, timeout=0.2):
                    assert message.error() is None, message.error()
                    found.append(message)
                    first = (message.offset() or 0) + 1
        consumer.close()
        return found


def _wait_for(asked: dict[Any, Any]) -> None:
    for future in asked.values():
        future.result(timeout=30)
