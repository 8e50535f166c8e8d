import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** What the scenarios ask of the Java client. */
final class Client implements AutoCloseable {
    /** Bound on everything that is waited for. */
    static final Duration PATIENCE = Duration.ofSeconds(30);

    final AdminClient admin;
    private final String bootstrap;

    Client(String bootstrap) {
        this.bootstrap = bootstrap;
        this.admin = AdminClient.create(Map.of("bootstrap.servers", bootstrap));
    }

    /** A name that no other run uses. */
    static String newName(String prefix) {
        return prefix + "-" + UUID.randomUUID();
    }

    static <T> T wait(KafkaFuture<T> future) throws Exception {
        return future.get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
    }

    void createTopic(String topic, int partitions) throws Exception {
        wait(admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all());
    }

    /** Send all with the producer's defaults (acks=all, idempotent); timestamps a second apart, if the first isn't null. */
    void produce(String topic, int partition, List<String> values, String codec, Long firstTimestamp) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "compression.type", codec);
        List<Future<?>> sent = new ArrayList<>();
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int i = 0; i < values.size(); i++) {
                Long timestamp = firstTimestamp == null ? null : Long.valueOf(firstTimestamp + 1000L * i);
                sent.add(producer.send(new ProducerRecord<>(topic, partition, timestamp, null, values.get(i))));
            }
            for (Future<?> each : sent) {
                each.get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
            }
        }
    }

    KafkaConsumer<String, String> consumer(Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>(more);
        settings.put("bootstrap.servers", bootstrap);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", false);
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    /** Seek to an offset of partition 0, when already reading elsewhere, and read. */
    List<ConsumerRecord<String, String>> read(String topic, long start, int count) {
        TopicPartition partition = new TopicPartition(topic, 0);
        List<ConsumerRecord<String, String>> records = new ArrayList<>();
        try (var consumer = consumer(Map.of("max.poll.records", count))) {
            consumer.assign(List.of(partition));
            consumer.poll(Duration.ofSeconds(5));
            consumer.seek(partition, start);
            long deadline = System.nanoTime() + PATIENCE.toNanos();
            while (records.size() < count && System.nanoTime() < deadline) {
                consumer.poll(Duration.ofMillis(500)).forEach(records::add);
            }
        }
        return records.subList(0, Math.min(count, records.size()));
    }

    long committed(String group, String topic) throws Exception {
        var offsets = wait(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata());
        var found = offsets.get(new TopicPartition(topic, 0));
        Missing.require(found != null, "a committed offset");
        return found.offset();
    }

    @Override
    public void close() {
        admin.close();
    }
}
