import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;

/** The members of one group, polled in turns, and all that they have read. */
final class Party {
    final Client client;
    final String topic = Client.newName("topic");
    final String group = Client.newName("group");
    final List<Member> members = new ArrayList<>();
    final Map<String, Integer> seen = new HashMap<>();
    private final int partitions;
    private int sent;

    Party(Client client, int partitions) throws Exception {
        this.client = client;
        this.partitions = partitions;
        client.createTopic(topic, partitions);
    }

    Member joins(String instance, boolean isCooperative) {
        Member member = new Member(client, group, topic, instance, isCooperative);
        members.add(member);
        return member;
    }

    Member joins() {
        return joins(null, false);
    }

    void leaves(Member member) {
        members.remove(member);
        member.close();
    }

    void turn() {
        for (Member member : members) {
            var records = member.poll();
            records.forEach(each -> seen.merge(each.value(), 1, Integer::sum));
            if (!records.isEmpty()) {
                member.commit();
            }
        }
    }

    /** Turn until the condition holds; Missing with what it was when it takes too long. */
    void until(BooleanSupplier condition, String what) {
        long deadline = System.nanoTime() + Client.PATIENCE.toNanos();
        while (!condition.getAsBoolean()) {
            Missing.require(System.nanoTime() < deadline, "not within " + Client.PATIENCE.toSeconds() + " s: " + what);
            turn();
        }
    }

    /** Each partition has one owner, each member at least one partition. */
    private boolean isSharedOut() {
        List<Integer> owned = members.stream().flatMap(each -> each.owned.stream()).sorted().toList();
        List<Integer> all = IntStream.range(0, partitions).boxed().toList();
        return owned.equals(all) && members.stream().noneMatch(each -> each.owned.isEmpty());
    }

    void settles() {
        until(this::isSharedOut, "each partition with one of " + members.size() + " members");
    }

    void sends(int count) throws Exception {
        for (int partition = 0; partition < partitions; partition++) {
            List<String> values = new ArrayList<>();
            for (int number = sent + partition; number < sent + count; number += partitions) {
                values.add("record " + number);
            }
            client.produce(topic, partition, values, "none", null);
        }
        sent += count;
    }

    void readsAll() {
        until(() -> seen.size() >= sent, "all " + sent + " records");
        Missing.require(IntStream.range(0, sent).allMatch(number -> seen.containsKey("record " + number)),
            "records that were never sent");
    }

    void ends() {
        while (!members.isEmpty()) {
            leaves(members.get(members.size() - 1));
        }
    }
}
