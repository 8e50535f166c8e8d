import java.util.Map;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.TopicPartition;

/** Offsets of a topic's partition 0, by the admin client. */
final class Offsets {
    private final Client client;
    private final TopicPartition partition;

    Offsets(Client client, String topic) {
        this.client = client;
        this.partition = new TopicPartition(topic, 0);
    }

    private long of(OffsetSpec spec) throws Exception {
        return Client.wait(client.admin.listOffsets(Map.of(partition, spec)).partitionResult(partition)).offset();
    }

    long first() throws Exception {
        return of(OffsetSpec.earliest());
    }

    long end() throws Exception {
        return of(OffsetSpec.latest());
    }

    /** The first offset at or after the time; -1 when there is none. */
    long at(long timestamp) throws Exception {
        return of(OffsetSpec.forTimestamp(timestamp));
    }
}
