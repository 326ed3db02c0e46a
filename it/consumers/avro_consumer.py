"""Reads all records that the topics with a prefix hold now and prints each as a line of JSON: its key and value decoded by fastavro,
through Confluent's Python client and the registry. Numbers are plain, bytes {"bytes": hex}, decimals {"decimal": text}.

usage: avro_consumer.py BOOTSTRAP PREFIX REGISTRY_URL
"""

import decimal
import json
import sys

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext


def plain(v):
    if isinstance(v, dict):
        return {name: plain(member) for name, member in v.items()}
    if isinstance(v, list):
        return [plain(item) for item in v]
    if isinstance(v, bytes):
        return {"bytes": v.hex()}
    if isinstance(v, decimal.Decimal):
        return {"decimal": format(v, "f")}
    if v is None or isinstance(v, (bool, int, float, str)):
        return v
    raise TypeError(f"a {type(v)} from fastavro: {v!r}")


def main(bootstrap, prefix, url):
    decoder = AvroDeserializer(SchemaRegistryClient({"url": url}))
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False, "enable.partition.eof": False})
    ends = {}
    for name, topic in consumer.list_topics(timeout=20).topics.items():
        if name.startswith(prefix):
            for partition in topic.partitions:
                _, end = consumer.get_watermark_offsets(TopicPartition(name, partition), timeout=20)
                if end > 0:
                    ends[name, partition] = end
    consumer.assign([TopicPartition(name, partition, OFFSET_BEGINNING) for name, partition in ends])
    while ends:
        message = consumer.poll(20)
        if message is None:
            raise SystemExit(f"nothing came for 20 s; missing is the end of {sorted(ends)}")
        if message.error():
            raise SystemExit(f"{message.error()}")
        topic, at = message.topic(), message.offset()
        if at >= ends.get((topic, message.partition()), 0):
            continue
        if at == ends[topic, message.partition()] - 1:
            del ends[topic, message.partition()]
        line = {"topic": topic, "partition": message.partition(), "offset": at}
        for field, data in ((MessageField.KEY, message.key()), (MessageField.VALUE, message.value())):
            decoded = None if data is None else decoder(data, SerializationContext(topic, field))
            line[str(field.value if hasattr(field, "value") else field)] = plain(decoded)
        print(json.dumps(line))
    consumer.close()


main(*sys.argv[1:])
