package halcyon.cassandra;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import javax.management.JMException;
import javax.management.ObjectName;

import org.apache.cassandra.utils.FBUtilities;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The parts of a node's plug-in. It is started once, by the agent or by the first strategy of ours that a client of JMX sets. */
public final class Plugin
{
    private static final Logger logger = LoggerFactory.getLogger(Plugin.class);

    private static volatile Plugin instance;

    public final Options options;
    public final Counters counters;
    public final Service service;
    public final Pace pace;
    /** By the agent: no table waits until it is named. */
    volatile boolean forAllTables;

    private Plugin(Options options)
    {
        this.options = options;
        counters = new Counters(options);
        service = new Service(options);
        pace = new Pace(options.latencyTarget);
    }

    /** Null before the start. */
    public static Plugin instance()
    {
        return instance;
    }

    /** Starts it unless it has started, and says null; or why it cannot be. Where no node has started nothing starts: null. */
    public static synchronized String start()
    {
        if (instance != null || !Started.isNode())
            return null;
        String refusal = Releases.refusal(FBUtilities.getReleaseVersionString());
        if (refusal != null)
            return refusal;
        Plugin plugin;
        try
        {
            plugin = new Plugin(Options.read());
        }
        catch (IOException | IllegalArgumentException e)
        {
            return e.getMessage();
        }
        instance = plugin;
        try
        {
            ManagementFactory.getPlatformMBeanServer().registerMBean(new Management(plugin), new ObjectName(HalcyonMBean.NAME));
        }
        catch (JMException e)
        {
            throw new IllegalStateException(e);
        }
        if (!plugin.service.isThere())
            logger.warn("Halcyon: {}; compactions stay Cassandra's until it is", plugin.service.state());
        return null;
    }

    static void startForAllTables()
    {
        String refusal = start();
        if (refusal != null)
        {
            logger.warn("Halcyon: {}; compactions stay Cassandra's until that is mended and the node is restarted", refusal);
            return;
        }
        instance.forAllTables = true;
        new Overlay(instance.options).start();
    }
}
