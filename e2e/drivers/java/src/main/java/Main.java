import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import com.datastax.oss.driver.api.core.cql.*;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;

/**
 * What an application does with the Java driver: discovers the schema, prepares, writes, pages, batches, sets conditions, traces.
 * Arguments: host, port, protocol version (V3, V4, V5), compression (none, lz4). Prints one line a step.
 */
public class Main {
    static void expect(String what, Object got, Object wanted) {
        if (!Objects.equals(got, wanted)) {
            System.out.println("FAILED: " + what + ": " + got + ", expected " + wanted);
            System.exit(1);
        }
        System.out.println("ok " + what);
    }

    public static void main(String[] arguments) {
        DriverConfigLoader config = DriverConfigLoader.programmaticBuilder()
            .withString(DefaultDriverOption.PROTOCOL_VERSION, arguments[2])
            .withString(DefaultDriverOption.PROTOCOL_COMPRESSION, arguments[3])
            .withDuration(DefaultDriverOption.REQUEST_TIMEOUT, Duration.ofSeconds(20))
            .withDuration(DefaultDriverOption.CONNECTION_INIT_QUERY_TIMEOUT, Duration.ofSeconds(20))
            .withDuration(DefaultDriverOption.CONTROL_CONNECTION_TIMEOUT, Duration.ofSeconds(20))
            .withInt(DefaultDriverOption.REQUEST_PAGE_SIZE, 70)
            .build();
        InetSocketAddress contact = new InetSocketAddress(arguments[0], Integer.parseInt(arguments[1]));
        String datacenter;
        try (CqlSession probe = CqlSession.builder().addContactPoint(contact).withLocalDatacenter("datacenter1").withConfigLoader(config).build()) {
            datacenter = probe.execute("SELECT data_center FROM system.local").one().getString(0);
        }
        try (CqlSession session = CqlSession.builder().addContactPoint(contact).withLocalDatacenter(datacenter).withConfigLoader(config).build()) {
            run(session, arguments[2]);
        } catch (RuntimeException e) {
            e.printStackTrace(System.out);
            System.exit(1);
        }
    }

    static void run(CqlSession session, String version) {
        session.execute("DROP KEYSPACE IF EXISTS java_driver");
        session.execute("CREATE KEYSPACE java_driver WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
        session.execute("CREATE TYPE java_driver.address (street text, number int)");
        session.execute("CREATE TABLE java_driver.t (k int, c int, v text, s set<int>, m map<text, bigint>, a frozen<address>, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC)");
        session.refreshSchema();
        var table = session.getMetadata().getKeyspace("java_driver").orElseThrow().getTable("t").orElseThrow();
        expect("columns", table.getColumns().size(), 6);
        var address = session.getMetadata().getKeyspace("java_driver").orElseThrow().getUserDefinedType("address").orElseThrow();
        PreparedStatement insert = session.prepare("INSERT INTO java_driver.t (k, c, v, s, m, a) VALUES (?, ?, ?, ?, ?, ?)");
        for (int c = 0; c < 500; c++) {
            var value = address.newValue("street" + c, c);
            session.execute(insert.bind(1, c, "v" + c, Set.of(1, 3), Map.of("a", 1L), value));
        }
        PreparedStatement select = session.prepare("SELECT c, v, s, m, a FROM java_driver.t WHERE k = :key");
        // Protocol 3 does not say which markers make up the partition key.
        expect("routing key", select.getPartitionKeyIndices(), version.equals("V3") ? List.of() : List.of(0));
        int next = 499;
        for (Row row : session.execute(select.bind(1))) {
            boolean right = row.getInt("c") == next && row.getString("v").equals("v" + next) && row.getSet("s", Integer.class).equals(Set.of(1, 3))
                && row.getMap("m", String.class, Long.class).equals(Map.of("a", 1L)) && row.getUdtValue("a").getInt("number") == next;
            if (!right) {
                expect("row", row.getFormattedContents(), next);
            }
            next--;
        }
        expect("paged rows", next, -1);
        BatchStatementBuilder batch = BatchStatement.builder(DefaultBatchType.LOGGED);
        for (int c = 0; c < 10; c++) {
            batch.addStatement(insert.bind(2, c, "batch", Set.of(), Map.of(), null));
        }
        session.execute(batch.build());
        expect("batch", session.execute("SELECT count(*) FROM java_driver.t WHERE k = 2").one().getLong(0), 10L);
        var condition = session.execute("UPDATE java_driver.t SET v = 'x' WHERE k = 2 AND c = 0 IF v = 'other'");
        expect("not applied", condition.wasApplied(), false);
        expect("current value", condition.one().getString("v"), "batch");
        session.execute("ALTER TABLE java_driver.t ADD extra int");
        PreparedStatement all = session.prepare("SELECT * FROM java_driver.t WHERE k = 2 AND c = 1");
        expect("columns after ALTER", session.execute(all.bind()).one().getColumnDefinitions().size(), 7);
        session.execute("ALTER TABLE java_driver.t ADD another int");
        // Before protocol 5 a driver keeps the columns of its PREPARE.
        if (version.equals("V5")) {
            expect("re-prepared", session.execute(all.bind()).one().getString("v"), "batch");
        }
        var traced = session.execute(SimpleStatement.newInstance("SELECT * FROM java_driver.t WHERE k = 2").setTracing(true));
        expect("trace", traced.getExecutionInfo().getTracingId() != null, true);
        expect("trace can be read", traced.getExecutionInfo().getQueryTrace().getEvents().isEmpty(), false);
        try {
            session.execute("SELECT nothing FROM java_driver.t");
            expect("error", "none", "one");
        } catch (com.datastax.oss.driver.api.core.servererrors.InvalidQueryException e) {
            expect("error", e.getMessage(), "Undefined column name nothing in table java_driver.t");
        }
    }
}
