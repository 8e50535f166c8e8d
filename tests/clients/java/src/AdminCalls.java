import static org.apache.kafka.common.config.ConfigResource.Type.BROKER;
import static org.apache.kafka.common.config.ConfigResource.Type.TOPIC;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.SecurityDisabledException;
import org.apache.kafka.common.quota.ClientQuotaFilter;

/** The admin calls in the order to be made, each failing when it didn't do what it should. */
final class AdminCalls {
    private final Client client;
    private final Admin admin;
    private final String topic;
    private final String group;
    private final String other = Client.newName("made");
    private final TopicPartition partition;
    private final String node;

    /** The topic has one partition with records, the group a committed offset and no members. */
    AdminCalls(Client client, String topic, String group) throws Exception {
        this.client = client;
        this.admin = client.admin;
        this.topic = topic;
        this.group = group;
        this.partition = new TopicPartition(topic, 0);
        this.node = Client.wait(admin.describeCluster().nodes()).iterator().next().idString();
    }

    Map<String, Callable<?>> inOrder() {
        Map<String, Callable<?>> calls = new LinkedHashMap<>();
        calls.put("createTopics", () -> holds(create(), "the topic"));
        calls.put("createPartitions", () -> holds(createPartitions() == 3, "three partitions"));
        calls.put("describeConfigs", () -> config(TOPIC, topic, "cleanup.policy"));
        calls.put("describeConfigs of a broker", () -> config(BROKER, node, "log.retention.ms"));
        calls.put("incrementalAlterConfigs", this::alterConfigs);
        calls.put("listConfigResources", () -> Client.wait(admin.listConfigResources().all()));
        calls.put("listGroups", () -> holds(Client.wait(admin.listGroups().all()).stream()
            .anyMatch(each -> each.groupId().equals(group)), "the group among those listed"));
        calls.put("describeConsumerGroups", () -> holds(Client.wait(
            admin.describeConsumerGroups(List.of(group)).all()).get(group).members().isEmpty(), "no members"));
        calls.put("describeClassicGroups", () -> Client.wait(admin.describeClassicGroups(List.of(group)).all()));
        calls.put("alterConsumerGroupOffsets", this::alterOffsets);
        calls.put("deleteConsumerGroupOffsets", () -> Client.wait(
            admin.deleteConsumerGroupOffsets(group, Set.of(partition)).all()));
        calls.put("deleteConsumerGroups", () -> Client.wait(admin.deleteConsumerGroups(List.of(group)).all()));
        calls.put("deleteRecords", this::deleteRecords);
        calls.put("describeLogDirs", () -> Client.wait(
            admin.describeLogDirs(List.of(Integer.valueOf(node))).allDescriptions()));
        calls.put("describeMetadataQuorum", () -> Client.wait(admin.describeMetadataQuorum().quorumInfo()));
        calls.put("describeProducers", () -> Client.wait(admin.describeProducers(List.of(partition)).all()));
        calls.put("listPartitionReassignments", () -> Client.wait(
            admin.listPartitionReassignments().reassignments()));
        calls.put("describeAcls", this::describeAcls);
        calls.put("describeClientQuotas", () -> Client.wait(
            admin.describeClientQuotas(ClientQuotaFilter.all()).entities()));
        calls.put("describeUserScramCredentials", () -> Client.wait(
            admin.describeUserScramCredentials().all()));
        calls.put("deleteTopics", () -> Client.wait(admin.deleteTopics(List.of(other, topic)).all()));
        return calls;
    }

    private static Object holds(boolean condition, String missing) {
        Missing.require(condition, missing);
        return null;
    }

    private boolean create() throws Exception {
        client.createTopic(other, 1);
        return Client.wait(admin.listTopics().names()).contains(other);
    }

    private int createPartitions() throws Exception {
        Client.wait(admin.createPartitions(Map.of(other, NewPartitions.increaseTo(3))).all());
        return Client.wait(admin.describeTopics(List.of(other)).allTopicNames()).get(other).partitions().size();
    }

    private String config(ConfigResource.Type type, String name, String key) throws Exception {
        ConfigResource resource = new ConfigResource(type, name);
        ConfigEntry entry = Client.wait(admin.describeConfigs(List.of(resource)).all()).get(resource).get(key);
        Missing.require(entry != null, key);
        return entry.value();
    }

    private Object alterConfigs() throws Exception {
        var change = new AlterConfigOp(new ConfigEntry("retention.ms", "7000000"), AlterConfigOp.OpType.SET);
        Client.wait(admin.incrementalAlterConfigs(Map.of(new ConfigResource(TOPIC, topic), List.of(change))).all());
        return holds(config(TOPIC, topic, "retention.ms").equals("7000000"), "the altered value");
    }

    private Object alterOffsets() throws Exception {
        Client.wait(admin.alterConsumerGroupOffsets(group, Map.of(partition, new OffsetAndMetadata(7, "note"))).all());
        return holds(client.committed(group, topic) == 7, "the altered offset");
    }

    private Object deleteRecords() throws Exception {
        Client.wait(admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(5))).all());
        return holds(client.offset(topic, OffsetSpec.earliest()) == 5, "5 as the first offset");
    }

    private Object describeAcls() throws Exception {
        try {
            return Client.wait(admin.describeAcls(AclBindingFilter.ANY).values());
        } catch (ExecutionException error) {
            // What Kafka answers without an authorizer.
            return holds(error.getCause() instanceof SecurityDisabledException, String.valueOf(error.getCause()));
        }
    }
}
