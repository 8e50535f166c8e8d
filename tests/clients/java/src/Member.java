import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;

/** A consumer in a group; {@code owned} are its partitions now, {@code lost} those that were ever taken from it. */
final class Member implements ConsumerRebalanceListener {
    private static final Duration POLL = Duration.ofMillis(100);
    /** A name, since old clients haven't the class. */
    private static final String COOPERATIVE = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor";

    final Set<Integer> owned = new TreeSet<>();
    final Set<Integer> lost = new TreeSet<>();
    int rebalances;
    private final KafkaConsumer<String, String> consumer;

    Member(Client client, String group, String topic, String instance, boolean isCooperative) {
        NotInClient.unless(instance == null || ConsumerConfig.configNames().contains("group.instance.id"),
            "the client has no static members");
        NotInClient.unless(!isCooperative || hasClass(COOPERATIVE), "the client has no cooperative assignor");
        Map<String, Object> settings = new HashMap<>();
        settings.put("group.id", group);
        settings.put("session.timeout.ms", 10_000);
        settings.put("heartbeat.interval.ms", 300);
        settings.put("partition.assignment.strategy", isCooperative ? COOPERATIVE : RangeAssignor.class.getName());
        if (instance != null) {
            settings.put("group.instance.id", instance);
        }
        consumer = client.consumer(settings);
        consumer.subscribe(Set.of(topic), this);
    }

    private static boolean hasClass(String name) {
        try {
            Class.forName(name);
            return true;
        } catch (ClassNotFoundException error) {
            return false;
        }
    }

    ConsumerRecords<String, String> poll() {
        return consumer.poll(POLL);
    }

    void commit() {
        try {
            consumer.commitSync(Client.PATIENCE);
        } catch (CommitFailedException | RebalanceInProgressException error) {
            // A rebalance that the member learns of by its commit: what isn't committed comes again.
        }
    }

    /** Leave the group; a static member only goes away. */
    void close() {
        consumer.close();
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        partitions.forEach(each -> owned.add(each.partition()));
        rebalances++;
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        partitions.forEach(each -> {
            owned.remove(each.partition());
            lost.add(each.partition());
        });
    }
}
