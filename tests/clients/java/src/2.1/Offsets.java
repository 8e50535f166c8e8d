import java.util.List;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;

/** Offsets of a topic's partition 0, by a consumer: the admin client of 2.1 can't ask for them. */
final class Offsets {
    private final Client client;
    private final TopicPartition partition;

    Offsets(Client client, String topic) {
        this.client = client;
        this.partition = new TopicPartition(topic, 0);
    }

    long first() {
        try (var consumer = client.consumer(Map.of())) {
            return consumer.beginningOffsets(List.of(partition)).get(partition);
        }
    }

    long end() {
        try (var consumer = client.consumer(Map.of())) {
            return consumer.endOffsets(List.of(partition)).get(partition);
        }
    }

    /** The first offset at or after the time; -1 when there is none. */
    long at(long timestamp) {
        try (var consumer = client.consumer(Map.of())) {
            var found = consumer.offsetsForTimes(Map.of(partition, timestamp)).get(partition);
            return found == null ? -1 : found.offset();
        }
    }
}
