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
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
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
        calls.put("createTopics", this::create);
        calls.put("listTopics", () -> holds(Client.wait(admin.listTopics().names()).contains(other), "the topic"));
        calls.put("createPartitions", () -> holds(createPartitions() == 3, "three partitions"));
        calls.put("describeTopics", () -> Client.wait(admin.describeTopics(List.of(topic)).allTopicNames()));
        calls.put("listOffsets", () -> holds(new Offsets(client, topic).end() == 20, "20 as the end"));
        calls.put("describeConfigs", () -> config(TOPIC, topic, "cleanup.policy"));
        calls.put("describeConfigs of a broker", () -> config(BROKER, node, "log.retention.ms"));
        calls.put("incrementalAlterConfigs", this::alterConfigs);
        calls.put("listConfigResources", () -> Client.wait(admin.listConfigResources().all()));
        calls.put("listGroups", () -> holds(Client.wait(admin.listGroups().all()).stream()
            .anyMatch(each -> each.groupId().equals(group)), "the group among those listed"));
        calls.put("describeConsumerGroups", () -> holds(Client.wait(
            admin.describeConsumerGroups(List.of(group)).all()).get(group).members().isEmpty(), "no members"));
        calls.put("describeClassicGroups", () -> Client.wait(admin.describeClassicGroups(List.of(group)).all()));
        calls.put("listConsumerGroupOffsets", () -> holds(client.committed(group, topic) == 20, "the offset"));
        calls.put("alterConsumerGroupOffsets", this::alterOffsets);
        calls.put("deleteConsumerGroupOffsets", () -> Client.wait(
            admin.deleteConsumerGroupOffsets(group, Set.of(partition)).all()));
        calls.put("deleteConsumerGroups", () -> Client.wait(admin.deleteConsumerGroups(List.of(group)).all()));
        calls.put("deleteRecords", this::deleteRecords);
        calls.put("describeLogDirs", this::describeLogDirs);
        calls.put("describeMetadataQuorum", () -> Client.wait(admin.describeMetadataQuorum().quorumInfo()));
        calls.put("describeProducers", () -> Client.wait(admin.describeProducers(List.of(partition)).all()));
        calls.put("listPartitionReassignments", () -> Client.wait(
            admin.listPartitionReassignments().reassignments()));
        calls.put("describeAcls", this::describeAcls);
        calls.put("describeClientQuotas", () -> Client.wait(
            admin.describeClientQuotas(ClientQuotaFilter.all()).entities()));
        calls.put("describeUserScramCredentials", () -> Client.wait(
            admin.describeUserScramCredentials().all()));
        calls.put("describeFeatures", () -> Client.wait(admin.describeFeatures().featureMetadata()));
        calls.put("deleteTopics by id", this::deleteTopicById);
        calls.put("deleteTopics", () -> Client.wait(admin.deleteTopics(List.of(topic)).all()));
        return calls;
    }

    private static Object holds(boolean condition, String missing) {
        Missing.require(condition, missing);
        return null;
    }

    private Object create() throws Exception {
        client.createTopic(other, 1);
        return null;
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
        return holds(new Offsets(client, topic).first() == 5, "5 as the first offset");
    }

    private Object describeLogDirs() throws Exception {
        int id = Integer.parseInt(node);
        var folders = Client.wait(admin.describeLogDirs(List.of(id)).allDescriptions()).get(id).values();
        return holds(folders.stream().anyMatch(each -> each.replicaInfos().containsKey(partition)
            && each.replicaInfos().get(partition).size() > 0), "the size of the log");
    }

    private Object deleteTopicById() throws Exception {
        Uuid id = Client.wait(admin.describeTopics(List.of(other)).allTopicNames()).get(other).topicId();
        Client.wait(admin.describeTopics(TopicCollection.ofTopicIds(List.of(id))).allTopicIds());
        Client.wait(admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all());
        return holds(!Client.wait(admin.listTopics().names()).contains(other), "a deleted topic");
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
