import static org.apache.kafka.common.config.ConfigResource.Type.BROKER;
import static org.apache.kafka.common.config.ConfigResource.Type.TOPIC;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.SecurityDisabledException;

/** The admin calls of 2.1 in the order to be made, each failing when it didn't do what it should. */
final class AdminCalls {
    private final Client client;
    private final AdminClient admin;
    private final String topic;
    private final String group;
    private final String other = Client.newName("made");
    private final String node;

    /** The topic has one partition with records, the group a committed offset and no members. */
    AdminCalls(Client client, String topic, String group) throws Exception {
        this.client = client;
        this.admin = client.admin;
        this.topic = topic;
        this.group = group;
        this.node = Client.wait(admin.describeCluster().nodes()).iterator().next().idString();
    }

    Map<String, Callable<?>> inOrder() {
        Map<String, Callable<?>> calls = new LinkedHashMap<>();
        calls.put("createTopics", this::create);
        calls.put("listTopics", () -> holds(Client.wait(admin.listTopics().names()).contains(other), "the topic"));
        calls.put("createPartitions", () -> holds(createPartitions() == 3, "three partitions"));
        calls.put("describeTopics", () -> Client.wait(admin.describeTopics(List.of(topic)).all()));
        calls.put("describeConfigs", () -> config(TOPIC, topic, "cleanup.policy"));
        calls.put("describeConfigs of a broker", () -> config(BROKER, node, "log.retention.ms"));
        calls.put("alterConfigs", this::alterConfigs);
        calls.put("listConsumerGroups", () -> holds(Client.wait(admin.listConsumerGroups().all()).stream()
            .anyMatch(each -> each.groupId().equals(group)), "the group among those listed"));
        calls.put("describeConsumerGroups", () -> holds(Client.wait(
            admin.describeConsumerGroups(List.of(group)).all()).get(group).members().isEmpty(), "no members"));
        calls.put("listConsumerGroupOffsets", () -> holds(client.committed(group, topic) == 20, "the offset"));
        calls.put("deleteConsumerGroups", () -> Client.wait(admin.deleteConsumerGroups(List.of(group)).all()));
        calls.put("deleteRecords", this::deleteRecords);
        calls.put("describeLogDirs", () -> Client.wait(admin.describeLogDirs(List.of(Integer.valueOf(node))).all()));
        calls.put("describeAcls", this::describeAcls);
        calls.put("deleteTopics", () -> Client.wait(admin.deleteTopics(List.of(other, topic)).all()));
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
        return Client.wait(admin.describeTopics(List.of(other)).all()).get(other).partitions().size();
    }

    private String config(ConfigResource.Type type, String name, String key) throws Exception {
        ConfigResource resource = new ConfigResource(type, name);
        ConfigEntry entry = Client.wait(admin.describeConfigs(List.of(resource)).all()).get(resource).get(key);
        Missing.require(entry != null, key);
        return entry.value();
    }

    private Object alterConfigs() throws Exception {
        Config change = new Config(List.of(new ConfigEntry("retention.ms", "8000000")));
        Client.wait(admin.alterConfigs(Map.of(new ConfigResource(TOPIC, topic), change)).all());
        return holds(config(TOPIC, topic, "retention.ms").equals("8000000"), "the altered value");
    }

    private Object deleteRecords() throws Exception {
        Client.wait(admin.deleteRecords(Map.of(new TopicPartition(topic, 0), RecordsToDelete.beforeOffset(5))).all());
        return holds(new Offsets(client, topic).first() == 5, "5 as the first offset");
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
