package halcyon.cassandra;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import javax.management.JMException;
import javax.management.ObjectName;

import org.apache.cassandra.db.compaction.SelfTest;
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
    final Usage usage = new Usage();
    private final Object tested = new Object();
    private String testedProgram = "";
    private long testedAt;
    private Reason failure;
    public final TableOptions tables;
    /** The agent's, by which no table waits until it is named; else null. */
    volatile Overlay overlay;

    private Plugin(Options options)
    {
        this.options = options;
        counters = new Counters(options);
        service = new Service(options);
        tables = new TableOptions(options.tables);
        pace = new Pace(options.latencyTarget, tables);
        gauges();
    }

    private void gauges()
    {
        Figures node = counters.node;
        node.gauge("Enabled", () -> counters.enabled ? 1L : 0L);
        node.gauge("ServiceRunning", () -> service.pid() == 0 ? 0L : 1L);
        node.gauge("Restarts", service::restarts);
        node.gauge("CpuMillis", () -> usage.cpuMillis(service.pid()));
        node.gauge("PurgeMillis", () -> TimeUnit.NANOSECONDS.toMillis(counters.purgeNanos.get()));
        node.gauge("MemoryBytes", () -> Objects.requireNonNullElse(Usage.memoryBytes(service.pid()), 0L));
        node.gauge("MemoryLimitBytes", () -> options.memory);
        // 0: off.
        node.gauge("LatencyTargetMicros", pace::targetMicros);
        node.gauge("PaceBytesPerSecond", () -> Objects.requireNonNullElse(pace.rate(), 0L));
    }

    /** Null before the start. */
    public static Plugin instance()
    {
        return instance;
    }

    void forgetFailures()
    {
        counters.forgetFailures();
        service.retryAtOnce();
        synchronized (tested)
        {
            testedProgram = "";
        }
    }

    /** Null: the program that is there has passed. */
    public Reason selfTest()
    {
        synchronized (tested)
        {
            String program = service.identity();
            boolean isOld = System.nanoTime() - testedAt > TimeUnit.MINUTES.toNanos(options.retryMinutes);
            if (program.equals(testedProgram) && (failure == null || !isOld))
                return failure;
            try
            {
                SelfTest.run(this);
                failure = null;
            }
            catch (Service.NotStarted e)
            {
                return Reason.ofNode("ServiceDown", e.getMessage());
            }
            catch (Exception | LinkageError e)
            {
                failure = Reason.ofNode("SelfTest", "the self-test failed: " + (e.getMessage() == null ? e : e.getMessage()));
                logger.warn("Halcyon: {}; compactions stay Cassandra's, and it is tried again in {} minutes, or after another program was put in its place",
                            failure, options.retryMinutes, e);
            }
            testedProgram = program;
            testedAt = System.nanoTime();
            return failure;
        }
    }

    /** Starts it unless it has started, and says null; or why it cannot be. Where no node has started nothing starts: null. */
    public static synchronized String start()
    {
        if (instance != null || !Started.isNode())
            return null;
        Plugin plugin;
        try
        {
            String release = FBUtilities.getReleaseVersionString();
            String refusal = Releases.refusal(release);
            if (refusal != null)
                return refusal;
            if (!Releases.isTested(release))
                logger.warn("Halcyon: this jar was not tested with Cassandra {}, but finds all that it uses of it", release);
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
        String problem = plugin.service.problem();
        if (problem != null)
            logger.warn("Halcyon: {}; compactions stay Cassandra's until that is mended", problem);
        return null;
    }

    static void startForAllTables() throws InterruptedException
    {
        String refusal = start();
        if (refusal != null)
        {
            logger.warn("Halcyon: {}; compactions stay Cassandra's until that is mended and the node is restarted", refusal);
            return;
        }
        if (instance.counters.enabled)
        {
            instance.service.startAhead();
            instance.selfTest();
        }
        Overlay overlay = new Overlay(instance);
        instance.overlay = overlay;
        overlay.start();
    }
}
