package halcyon.cassandra;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import javax.management.Attribute;
import javax.management.JMException;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;

import halcyon.cassandra.Sidecar.Refusal;

/**
 * The tables of a node, over JMX.
 *
 * <ol>
 * <li>What does not fit is refused before anything is set: another release, a node that is on its way up or down, unknown tables.
 * <li>Of each table the class alone is set, to ours or back: the options in force stay, be they the schema's or an operator's.
 * <li>The first class of ours that is set starts the plug-in. If none did, the node had not fully started, and is to be asked again.
 * </ol>
 */
final class NodeTables
{
    /** As Cassandra's SchemaConstants has them. */
    private static final Set<String> SYSTEM = Set.of("system", "system_schema", "system_traces", "system_auth", "system_distributed");
    private static final Set<String> RUNNING = Set.of("NORMAL", "LEAVING", "MOVING");
    private static final String PARAMETERS = "CompactionParameters", CLASS = "class";

    private final MBeanServerConnection node;
    private final Set<String> wanted;
    private final String action;
    private final boolean looksOnly;
    private final ObjectName storage;
    private final ObjectName plugin;
    private final List<String> told = new ArrayList<>();
    private String release;
    private boolean isChanged;

    NodeTables(MBeanServerConnection node, String action, boolean looksOnly, String wanted) throws JMException
    {
        this.node = node;
        this.action = action;
        this.looksOnly = looksOnly;
        storage = new ObjectName(Started.STORAGE);
        plugin = new ObjectName(HalcyonMBean.NAME);
        this.wanted = new TreeSet<>();
        if (!wanted.isEmpty())
            this.wanted.addAll(List.of(wanted.split(",")));
    }

    /** The answer about all that are wanted. */
    List<String> all() throws JMException, IOException, Refusal
    {
        boolean hand = !action.equals("remove");
        release = text(storage, "ReleaseVersion");
        if (Releases.isTooOld(release))
            throw new Refusal("release", release);
        String mode = text(storage, "OperationMode");
        if (!RUNNING.contains(mode))
            throw new Refusal("away", "it is " + mode);
        if (!hand && hasPlugin() && text(plugin, "ForAllTables").equals("true"))
            throw new Refusal("refused", "its agent (-javaagent) would hand the tables over again: `halcyon plugin remove` takes it out, and "
                                         + "the attribute Enabled of " + plugin + " switches it off at once");
        Map<String, ObjectName> tables = tables();
        for (Map.Entry<String, ObjectName> table : tables.entrySet())
        {
            if (hand)
                handOver(table.getKey(), table.getValue());
            else
                takeBack(table.getKey(), table.getValue());
        }
        boolean isThere = hasPlugin();
        if (hand && isChanged && !isThere)
            throw new Refusal("away", "it has not fully started");
        told.addAll(0, List.of("done", release, isThere ? text(plugin, "Service") : "no table was handed over yet",
                               isThere ? text(plugin, "Enabled") : "true"));
        return told;
    }

    private Map<String, ObjectName> tables() throws JMException, IOException, Refusal
    {
        Map<String, ObjectName> found = new TreeMap<>();
        Set<String> unknown = new TreeSet<>(wanted);
        for (ObjectName name : node.queryNames(new ObjectName("org.apache.cassandra.db:type=Tables,*"), null))
        {
            String keyspace = name.getKeyProperty("keyspace");
            String table = keyspace + '.' + name.getKeyProperty("table");
            unknown.removeAll(Set.of(table, keyspace));
            if (wanted.isEmpty() ? !SYSTEM.contains(keyspace) : wanted.contains(table) || wanted.contains(keyspace))
                found.put(table, name);
        }
        if (action.equals("keep"))
            unknown.forEach(name -> tell(name, "unknown", "", "", "no such table or keyspace"));
        else if (!unknown.isEmpty())
            throw new Refusal("unknown", "it has no table or keyspace " + String.join(", ", unknown));
        return found;
    }

    private void handOver(String name, ObjectName table) throws JMException, IOException, Refusal
    {
        Map<String, String> now = parameters(table);
        String before = now.get(CLASS);
        boolean isOurs = Strategies.stock(before) != null;
        String ours = isOurs ? before : Strategies.ours(before, release);
        if (SYSTEM.contains(name.substring(0, name.indexOf('.'))))
            tell(name, "left", before, before, "a keyspace of the system");
        else if (ours == null)
            tell(name, "left", before, before, "a strategy that is not one of Cassandra's four");
        else if (isOurs && (looksOnly || hasPlugin()))
            tell(name, "kept", before, before, "");
        else
            set(name, table, now, ours);
    }

    private void takeBack(String name, ObjectName table) throws JMException, IOException, Refusal
    {
        Map<String, String> now = parameters(table);
        String before = now.get(CLASS);
        String stock = Strategies.stock(before);
        if (stock == null)
            tell(name, "kept", before, before, "");
        else
            set(name, table, now, stock);
    }

    private void set(String name, ObjectName table, Map<String, String> now, String strategy) throws JMException, IOException, Refusal
    {
        String before = now.put(CLASS, strategy);
        if (!looksOnly)
        {
            // New parameters switch compaction on and off, which an operator may have done otherwise.
            boolean isDisabled = isDisabled(table);
            try
            {
                node.setAttribute(table, new Attribute(PARAMETERS, now));
            }
            catch (RuntimeException | JMException e)
            {
                throw refused(name, e);
            }
            isChanged = true;
            if (isDisabled != isDisabled(table))
                node.invoke(storage, isDisabled ? "disableAutoCompaction" : "enableAutoCompaction",
                            new Object[]{ table.getKeyProperty("keyspace"), new String[]{ table.getKeyProperty("table") } },
                            new String[]{ String.class.getName(), String[].class.getName() });
        }
        tell(name, "set", before, strategy, "");
    }

    /** In the words of a person, not of the exceptions around it. */
    private static Refusal refused(String name, Exception error)
    {
        String why = String.valueOf(Sidecar.innermost(error).getMessage());
        if (why.contains("Unable to find compaction strategy class"))
            why = "halcyon-cassandra.jar is not on its class path: put it into Cassandra's lib/, or name it in EXTRA_CLASSPATH, and restart the node";
        why = why.replaceFirst("(?s).*Properties specified \\[(.*)\\] are not understood by .*", "$1");
        return new Refusal("refused", name + " is not set: " + why);
    }

    private boolean hasPlugin() throws IOException
    {
        return node.isRegistered(plugin);
    }

    private boolean isDisabled(ObjectName table) throws JMException, IOException
    {
        return text(table, "AutoCompactionDisabled").equals("true");
    }

    private Map<String, String> parameters(ObjectName table) throws JMException, IOException
    {
        Map<String, String> found = new HashMap<>();
        ((Map<?, ?>) node.getAttribute(table, PARAMETERS)).forEach((name, value) -> found.put((String) name, (String) value));
        return found;
    }

    private String text(ObjectName bean, String attribute) throws JMException, IOException
    {
        return String.valueOf(node.getAttribute(bean, attribute));
    }

    private void tell(String... of)
    {
        told.addAll(List.of(of));
    }
}
