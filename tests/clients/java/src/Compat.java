import static java.util.stream.IntStream.range;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/**
 * What an application does with Kafka, by a Java client of any version; the scenarios, names and statuses of
 * {@code compat/scenarios.py}: 0 for a pass, 1 for what is missing in the broker, 3 for what the client hasn't, with a
 * line that says what.
 */
public final class Compat {
    private static final int RECORDS = 200;
    private static final int PHASE_RECORDS = 120;
    private static final int GROUP_PARTITIONS = 6;
    /** From subscribing to a group's first record. */
    private static final long FIRST_RECORD_MS = 1000;
    /** Times that a group of 1, 3 and then 2 members may rebalance; each may bring what wasn't committed again. */
    private static final int MAX_REBALANCES = 6;
    /** The records with timestamps start an hour ago, well within any limit. */
    private static final long FIRST_TIMESTAMP = System.currentTimeMillis() - 3_600_000;

    private interface Feature {
        void run(Client client) throws Exception;
    }

    private static final Map<String, Feature> FEATURES = new LinkedHashMap<>();

    static {
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            FEATURES.put(codec, client -> withCodec(client, codec));
        }
        FEATURES.put("first", Compat::first);
        FEATURES.put("groups", Compat::groups);
        FEATURES.put("static", Compat::staticMembers);
        FEATURES.put("cooperative", Compat::cooperative);
        FEATURES.put("restart", Compat::restart);
        FEATURES.put("seek", Compat::seek);
        FEATURES.put("times", Compat::times);
        FEATURES.put("admin", Compat::admin);
        FEATURES.put("lag", Compat::lag);
    }

    private Compat() {}

    public static void main(String[] arguments) {
        if (arguments.length != 2 || !FEATURES.containsKey(arguments[1])) {
            System.err.println("usage: PROGRAM BOOTSTRAP " + FEATURES.keySet());
            System.exit(2);
        }
        try (Client client = new Client(arguments[0])) {
            FEATURES.get(arguments[1]).run(client);
        } catch (NotInClient reason) {
            System.out.println(reason.getMessage());
            System.exit(3);
        } catch (Missing missing) {
            System.out.println(missing.getMessage());
            System.exit(1);
        } catch (Exception error) {
            System.out.println(error);
            System.exit(1);
        }
        System.exit(0);
    }

    private static List<String> numbered(int count) {
        return range(0, count).mapToObj(number -> "record " + number).toList();
    }

    private static void withCodec(Client client, String codec) throws Exception {
        String topic = Client.newName("codec");
        client.createTopic(topic, 1);
        client.produce(topic, 0, numbered(RECORDS), codec, null);
        List<String> values = client.read(topic, 0, RECORDS).stream().map(ConsumerRecord::value).toList();
        Missing.require(values.equals(numbered(RECORDS)), "other records than were sent");
    }

    private static void first(Client client) throws Exception {
        Party party = new Party(client, 1);
        party.sends(10);
        client.read(party.topic, 0, 10);
        long started = System.nanoTime();
        party.joins();
        party.until(() -> !party.seen.isEmpty(), "a record");
        long took = (System.nanoTime() - started) / 1_000_000;
        party.ends();
        Missing.require(took < FIRST_RECORD_MS, "the first record within " + FIRST_RECORD_MS + " ms, not " + took + " ms");
    }

    private static void groups(Client client) throws Exception {
        Party party = new Party(client, GROUP_PARTITIONS);
        party.joins();
        party.sends(PHASE_RECORDS);
        party.settles();
        party.readsAll();
        party.joins();
        party.joins();
        party.sends(PHASE_RECORDS);
        party.settles();
        party.sends(PHASE_RECORDS);
        party.readsAll();
        party.leaves(party.members.get(0));
        party.sends(PHASE_RECORDS);
        party.settles();
        party.readsAll();
        party.ends();
        Missing.require(party.seen.values().stream().allMatch(count -> count <= 1 + MAX_REBALANCES),
            "records that came oftener than rebalances explain");
    }

    private static void staticMembers(Client client) throws Exception {
        Party party = new Party(client, 4);
        Member stays = party.joins("stays", false);
        party.settles();
        Member goes = party.joins("goes", false);
        party.settles();
        party.sends(40);
        party.readsAll();
        var owned = new TreeSet<>(goes.owned);
        int rebalances = stays.rebalances;
        party.leaves(goes);
        Member comesBack = party.joins("goes", false);
        party.settles();
        party.sends(40);
        party.readsAll();
        Missing.require(comesBack.owned.equals(owned), "the partitions it had before");
        Missing.require(stays.rebalances == rebalances, "no rebalance for the other member");
        party.ends();
    }

    private static void cooperative(Client client) throws Exception {
        Party party = new Party(client, 4);
        Member first = party.joins(null, true);
        party.settles();
        party.sends(40);
        party.readsAll();
        party.joins(null, true);
        party.settles();
        Missing.require(first.lost.size() == 2, "two partitions revoked, not " + first.lost.size());
        party.sends(40);
        party.readsAll();
        party.ends();
    }

    private static void restart(Client client) throws Exception {
        Party party = new Party(client, 1);
        withCommittedOffset(party, 40);
        party.sends(40);
        party.seen.clear();
        party.joins();
        party.until(() -> party.seen.containsKey("record 79"), "the records after the committed offset");
        Missing.require(party.seen.size() == 40 && !party.seen.containsKey("record 39"),
            "just the records after the committed offset");
        party.ends();
    }

    private static void seek(Client client) throws Exception {
        String topic = Client.newName("seek");
        client.createTopic(topic, 1);
        client.produce(topic, 0, numbered(RECORDS), "none", null);
        for (int start : List.of(150, 0, 77)) {
            var records = client.read(topic, start, 20);
            List<Long> offsets = records.stream().map(ConsumerRecord::offset).toList();
            Missing.require(offsets.equals(range(start, start + 20).mapToObj(Long::valueOf).toList()),
                "offsets from " + start);
            List<String> values = records.stream().map(ConsumerRecord::value).toList();
            Missing.require(values.equals(numbered(RECORDS).subList(start, start + 20)), "records from " + start);
        }
    }

    private static void times(Client client) throws Exception {
        String topic = Client.newName("times");
        client.createTopic(topic, 1);
        client.produce(topic, 0, numbered(20), "none", FIRST_TIMESTAMP);
        long[][] expected = {{-5000, 0}, {0, 0}, {1, 1}, {7000, 7}, {18_001, 19}, {19_001, -1}};
        for (long[] each : expected) {
            long found = new Offsets(client, topic).at(FIRST_TIMESTAMP + each[0]);
            Missing.require(found == each[1],
                "offset " + each[1] + " for the time " + each[0] + " ms after the first, not " + found);
        }
    }

    /** Have the party's group commit in partition 0, and end. */
    private static void withCommittedOffset(Party party, int count) throws Exception {
        party.joins();
        party.sends(count);
        party.readsAll();
        party.ends();
    }

    private static void admin(Client client) throws Exception {
        Party party = new Party(client, 1);
        withCommittedOffset(party, 20);
        List<String> failed = new ArrayList<>();
        var calls = new AdminCalls(client, party.topic, party.group).inOrder();
        calls.forEach((name, call) -> {
            try {
                call.call();
            } catch (Exception error) {
                failed.add(name + " (" + error + ")");
            }
        });
        Missing.require(failed.isEmpty(), String.join("; ", failed));
        System.out.println(String.join(", ", calls.keySet()));
    }

    private static void lag(Client client) throws Exception {
        Party party = new Party(client, 1);
        withCommittedOffset(party, 20);
        party.sends(15);
        long found = new Offsets(client, party.topic).end() - client.committed(party.group, party.topic);
        Missing.require(found == 15, "a lag of 15, not " + found);
    }
}
