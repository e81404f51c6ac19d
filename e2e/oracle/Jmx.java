import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashSet;
import java.util.Set;
import javax.management.Attribute;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.openmbean.CompositeData;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/**
 * The few nodetool verbs that tests need, over one JMX connection, because each nodetool costs a JVM.
 *
 * Argument: the JMX port. One command per line on stdin, fields separated by tabs; one answer line each:
 *
 *   flush KEYSPACE TABLE...           compact KEYSPACE TABLE...      no-autocompaction KEYSPACE TABLE...
 *   compact-files DATA_FILE,...       a compaction of these SSTables alone
 *   verify KEYSPACE TABLE...          extended, without check of version, never touching repair status
 *   train KEYSPACE TABLE              6.0: makes a compression dictionary from the table's SSTables
 *   import KEYSPACE TABLE DIRECTORY   extended verification, SSTables are moved from DIRECTORY
 *   upgrade KEYSPACE TABLE...         rewrites all SSTables      autocompaction KEYSPACE TABLE...
 *   clear-snapshot NAME KEYSPACE...   an empty name means all
 *   get MBEAN ATTRIBUTE               answers "ok VALUE"         set MBEAN ATTRIBUTE true|false|NUMBER|TEXT
 *   call MBEAN OPERATION [TEXT]       answers "ok VALUE"
 *
 * The answer is "ok", or "failed MESSAGE".
 */
public class Jmx
{
    private static final String STRINGS = String[].class.getName();
    private final MBeanServerConnection node;
    private final ObjectName storage = new ObjectName("org.apache.cassandra.db:type=StorageService");

    private Jmx(String port) throws Exception
    {
        String url = "service:jmx:rmi:///jndi/rmi://127.0.0.1:" + port + "/jmxrmi";
        node = JMXConnectorFactory.connect(new JMXServiceURL(url)).getMBeanServerConnection();
    }

    public static void main(String[] arguments) throws Exception
    {
        Jmx jmx = new Jmx(arguments[0]);
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = commands.readLine()) != null;)
        {
            String answer;
            try
            {
                answer = jmx.run(line.split("\t", -1));
            }
            catch (Exception e)
            {
                Throwable cause = e;
                while (cause.getCause() != null)
                    cause = cause.getCause();
                answer = "failed " + String.valueOf(cause).replace('\n', ' ');
            }
            System.out.println(answer);
            System.out.flush();
        }
        System.exit(0);
    }

    private String run(String[] fields) throws Exception
    {
        String keyspace = fields[1];
        String[] tables = Arrays.copyOfRange(fields, 2, fields.length);
        switch (fields[0])
        {
            case "flush": return call("forceKeyspaceFlush", keyspace, tables);
            case "no-autocompaction": return call("disableAutoCompaction", keyspace, tables);
            case "compact":
                node.invoke(storage, "forceKeyspaceCompaction", new Object[] { false, keyspace, tables },
                            new String[] { "boolean", String.class.getName(), STRINGS });
                return "ok";
            case "compact-files":
                node.invoke(new ObjectName("org.apache.cassandra.db:type=CompactionManager"), "forceUserDefinedCompaction",
                            new Object[] { fields[1] }, new String[] { String.class.getName() });
                return "ok";
            case "verify": return verify(keyspace, tables);
            case "import": return importDirectory(keyspace, fields[2], fields[3]);
            case "train": return train(keyspace, fields[2]);
            case "clear-snapshot": return call("clearSnapshot", fields[1], tables);
            case "autocompaction": return call("enableAutoCompaction", keyspace, tables);
            case "upgrade":
                node.invoke(storage, "upgradeSSTables", new Object[] { keyspace, false, 1, tables },
                            new String[] { String.class.getName(), "boolean", "int", STRINGS });
                return "ok";
            case "get": return "ok " + node.getAttribute(new ObjectName(fields[1]), fields[2]);
            case "set":
                node.setAttribute(new ObjectName(fields[1]), new Attribute(fields[2], value(fields[3])));
                return "ok";
            case "call":
                String[] texts = Arrays.copyOfRange(fields, 3, fields.length);
                String[] types = new String[texts.length];
                Arrays.fill(types, String.class.getName());
                return "ok " + node.invoke(new ObjectName(fields[1]), fields[2], texts, types);
            default: return "failed unknown command " + fields[0];
        }
    }

    private static Object value(String text)
    {
        if (text.matches("true|false"))
            return Boolean.valueOf(text);
        return text.matches("-?[0-9]+") ? (Object) Integer.valueOf(text) : text;
    }

    private String call(String operation, String keyspace, String[] tables) throws Exception
    {
        node.invoke(storage, operation, new Object[] { keyspace, tables },
                    new String[] { String.class.getName(), STRINGS });
        return "ok";
    }

    /** extended, checkVersion, diskFailurePolicy, mutateRepairStatus, checkOwnsTokens, quick. */
    private String verify(String keyspace, String[] tables) throws Exception
    {
        String[] types = new String[8];
        Arrays.fill(types, 0, 6, "boolean");
        types[6] = String.class.getName();
        types[7] = STRINGS;
        Object status = node.invoke(storage, "verify",
                                    new Object[] { true, false, false, false, false, false, keyspace, tables }, types);
        return Integer.valueOf(0).equals(status) ? "ok" : "failed status " + status;
    }

    /** resetLevel, clearRepaired, verifySSTables, verifyTokens, invalidateCaches, extendedVerify. */
    private String importDirectory(String keyspace, String table, String directory) throws Exception
    {
        ObjectName store = new ObjectName("org.apache.cassandra.db:type=Tables,keyspace=" + keyspace + ",table=" + table);
        String[] types = new String[7];
        types[0] = Set.class.getName();
        Arrays.fill(types, 1, 7, "boolean");
        Object failed = node.invoke(store, "importNewSSTables",
                                    new Object[] { new HashSet<>(Set.of(directory)), false, false, true, true, true, true },
                                    types);
        return ((Collection<?>) failed).isEmpty() ? "ok" : "failed to import " + failed;
    }

    private String train(String keyspace, String table) throws Exception
    {
        ObjectName manager = new ObjectName("org.apache.cassandra.db.compression:type=CompressionDictionaryManager,keyspace="
                                            + keyspace + ",table=" + table);
        node.invoke(manager, "train", new Object[] { true }, new String[] { "boolean" });
        CompositeData state = null;
        for (int i = 0; i < 300; i++)
        {
            state = (CompositeData) node.getAttribute(manager, "TrainingState");
            String status = String.valueOf(state.get("status"));
            if (status.equals("COMPLETED"))
                return "ok";
            if (status.equals("FAILED"))
                break;
            Thread.sleep(100);
        }
        return "failed training: " + state;
    }
}
