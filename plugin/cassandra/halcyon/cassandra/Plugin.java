package halcyon.cassandra;

import java.lang.management.ManagementFactory;
import java.util.Set;
import javax.management.ObjectName;

import org.apache.cassandra.service.StorageService;
import org.apache.cassandra.utils.FBUtilities;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The parts of a node's plug-in, there from its start on. */
public final class Plugin
{
    private static final Logger logger = LoggerFactory.getLogger(Plugin.class);

    /** What it was compiled against: internals of Cassandra change in patch releases too. */
    private static final Set<String> RELEASES = Set.of("5.0.9");

    private static volatile Plugin instance;

    public final Options options;
    public final Counters counters;
    public final Service service;
    public final Pace pace;

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

    static void start() throws Exception
    {
        while (!StorageService.instance.isDaemonSetupCompleted())
            Thread.sleep(200);
        String release = FBUtilities.getReleaseVersionString();
        if (!RELEASES.contains(release))
        {
            logger.warn("Halcyon: this jar is for Cassandra {}, not {}; compactions stay Cassandra's", RELEASES, release);
            return;
        }
        Options options;
        try
        {
            options = Options.read();
        }
        catch (Exception e)
        {
            logger.warn("Halcyon: {}; compactions stay Cassandra's until the options are mended and the node is restarted", e.getMessage());
            return;
        }
        Plugin plugin = new Plugin(options);
        instance = plugin;
        ManagementFactory.getPlatformMBeanServer().registerMBean(new Management(plugin), new ObjectName(HalcyonMBean.NAME));
        if (!plugin.service.isThere())
            logger.warn("Halcyon: {} is not an executable file; compactions stay Cassandra's until it is", options.binary);
        new Overlay(options).start();
    }
}
