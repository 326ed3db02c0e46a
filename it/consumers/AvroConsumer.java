import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.apicurio.registry.serde.avro.AvroKafkaDeserializer;
import java.io.BufferedWriter;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.math.BigDecimal;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.avro.Conversions;
import org.apache.avro.LogicalTypes;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.IndexedRecord;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reads all records that the topics with a prefix hold now and prints each as a line of JSON: its key and value decoded either by
 * Avro's own reader with the schema that a registry has for the id in the record ("confluent"), or by Apicurio's deserializer with
 * 8 bytes of id ("apicurio") or 4 ("apicurio4"). Numbers are plain, bytes {"bytes": hex}, decimals {"decimal": text}.
 */
public class AvroConsumer {
    private static final JsonNodeFactory JSON = JsonNodeFactory.withExactBigDecimals(true);
    private static final Conversions.DecimalConversion DECIMAL = new Conversions.DecimalConversion();

    private interface Decoder {
        Object decode(String topic, byte[] data, boolean key) throws Exception;
    }

    public static void main(String[] args) throws Exception {
        String bootstrap = args[0], prefix = args[1], mode = args[2], url = args[3];
        Decoder decoder = mode.equals("confluent") ? new AvroReader(url) : new Apicurio(url, mode.equals("apicurio4"));
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("max.poll.records", "10000");
        ObjectMapper mapper = new ObjectMapper();
        try (KafkaConsumer<byte[], byte[]> consumer =
                        new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
                Writer out = new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8), 1 << 20)) {
            List<TopicPartition> partitions = new ArrayList<>();
            for (String topic : new TreeSet<>(consumer.listTopics().keySet())) {
                if (topic.startsWith(prefix)) {
                    consumer.partitionsFor(topic).forEach(p -> partitions.add(new TopicPartition(topic, p.partition())));
                }
            }
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            while (ends.entrySet().stream().anyMatch(e -> consumer.position(e.getKey()) < e.getValue())) {
                for (ConsumerRecord<byte[], byte[]> r : consumer.poll(Duration.ofMillis(500))) {
                    ObjectNode line = JSON.objectNode();
                    line.put("topic", r.topic()).put("partition", r.partition()).put("offset", r.offset());
                    line.set("key", json(r.key() == null ? null : decoder.decode(r.topic(), r.key(), true), null));
                    line.set("value", json(r.value() == null ? null : decoder.decode(r.topic(), r.value(), false), null));
                    out.write(mapper.writeValueAsString(line));
                    out.write('\n');
                }
            }
        }
    }

    /** Avro's reader behind Confluent's five bytes. */
    private static class AvroReader implements Decoder {
        private final HttpClient http = HttpClient.newHttpClient();
        private final String url;
        private final Map<Integer, GenericDatumReader<Object>> readers = new HashMap<>();

        AvroReader(String url) {
            this.url = url;
        }

        @Override
        public Object decode(String topic, byte[] data, boolean key) throws Exception {
            ByteBuffer buffer = ByteBuffer.wrap(data);
            if (buffer.get() != 0) {
                throw new IllegalArgumentException(topic + ": the first byte is not 0");
            }
            int id = buffer.getInt();
            if (!readers.containsKey(id)) {
                HttpResponse<String> answer = http.send(HttpRequest.newBuilder(URI.create(url + "/schemas/ids/" + id)).build(),
                        HttpResponse.BodyHandlers.ofString());
                if (answer.statusCode() != 200) {
                    throw new IllegalStateException(topic + ": schema " + id + ": " + answer.statusCode() + " " + answer.body());
                }
                String text = new ObjectMapper().readTree(answer.body()).get("schema").asText();
                readers.put(id, new GenericDatumReader<>(new Schema.Parser().parse(text)));
            }
            BinaryDecoder decoder = DecoderFactory.get().binaryDecoder(data, 5, data.length - 5, null);
            Object datum = readers.get(id).read(null, decoder);
            if (!decoder.isEnd()) {
                throw new IllegalStateException(topic + ": bytes are left over behind a record of schema " + id);
            }
            return datum;
        }
    }

    /** Apicurio's own deserializer. */
    private static class Apicurio implements Decoder {
        private final AvroKafkaDeserializer<Object> keys = new AvroKafkaDeserializer<>();
        private final AvroKafkaDeserializer<Object> values = new AvroKafkaDeserializer<>();

        Apicurio(String url, boolean four) {
            Map<String, Object> settings = new HashMap<>();
            settings.put("apicurio.registry.url", url);
            settings.put("apicurio.registry.headers.enabled", "false");
            settings.put("apicurio.registry.as-confluent", Boolean.toString(four));
            keys.configure(new HashMap<>(settings), true);
            values.configure(new HashMap<>(settings), false);
        }

        @Override
        public Object decode(String topic, byte[] data, boolean key) {
            return (key ? keys : values).deserialize(topic, data);
        }
    }

    private static JsonNode json(Object v, Schema schema) {
        if (schema != null && schema.getType() == Schema.Type.UNION) {
            return json(v, schema.getTypes().get(GenericData.get().resolveUnion(schema, v)));
        }
        if (v == null) {
            return JSON.nullNode();
        }
        if (v instanceof IndexedRecord) {
            IndexedRecord record = (IndexedRecord) v;
            ObjectNode node = JSON.objectNode();
            for (Schema.Field f : record.getSchema().getFields()) {
                node.set(f.name(), json(record.get(f.pos()), f.schema()));
            }
            return node;
        }
        if (v instanceof Iterable) {
            ArrayNode node = JSON.arrayNode();
            for (Object item : (Iterable<?>) v) {
                node.add(json(item, schema.getElementType()));
            }
            return node;
        }
        if (v instanceof ByteBuffer) {
            if (schema.getLogicalType() instanceof LogicalTypes.Decimal) {
                BigDecimal d = DECIMAL.fromBytes((ByteBuffer) v, schema, schema.getLogicalType());
                return JSON.objectNode().put("decimal", d.toPlainString());
            }
            byte[] b = new byte[((ByteBuffer) v).remaining()];
            ((ByteBuffer) v).duplicate().get(b);
            return JSON.objectNode().put("bytes", HexFormat.of().formatHex(b));
        }
        if (v instanceof Boolean) {
            return JSON.booleanNode((Boolean) v);
        }
        if (v instanceof Float || v instanceof Double) {
            return JSON.numberNode(((Number) v).doubleValue());
        }
        if (v instanceof Number) {
            return JSON.numberNode(((Number) v).longValue());
        }
        return JSON.textNode(v.toString());
    }
}
