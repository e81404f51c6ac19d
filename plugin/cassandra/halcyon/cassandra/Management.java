package halcyon.cassandra;

import java.util.Map;
import javax.management.StandardMBean;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

final class Management extends StandardMBean implements HalcyonMBean
{
    private static final Logger logger = LoggerFactory.getLogger(Management.class);

    private final Plugin plugin;

    Management(Plugin plugin)
    {
        super(HalcyonMBean.class, false);
        this.plugin = plugin;
    }

    @Override
    public boolean isEnabled()
    {
        return plugin.counters.enabled;
    }

    @Override
    public void setEnabled(boolean enabled)
    {
        plugin.counters.enabled = enabled;
        logger.info("Halcyon: switched {} by JMX, until the node stops", enabled ? "on" : "off");
    }

    @Override
    public boolean isForAllTables()
    {
        return plugin.forAllTables;
    }

    @Override
    public String getService()
    {
        return plugin.service.state();
    }

    @Override
    public long getCompleted()
    {
        return plugin.counters.completed.get();
    }

    @Override
    public long getStopped()
    {
        return plugin.counters.stopped.get();
    }

    @Override
    public long getFailed()
    {
        return plugin.counters.failed.get();
    }

    @Override
    public long getBytesRead()
    {
        return plugin.counters.bytesRead.get();
    }

    @Override
    public long getBytesWritten()
    {
        return plugin.counters.bytesWritten.get();
    }

    @Override
    public long getMillis()
    {
        return plugin.counters.nanos.get() / 1_000_000;
    }

    @Override
    public long getPurgeMillis()
    {
        return plugin.counters.purgeNanos.get() / 1_000_000;
    }

    @Override
    public String getLatencyTarget()
    {
        return plugin.pace.target();
    }

    @Override
    public void setLatencyTarget(String target)
    {
        plugin.pace.set(target);
        logger.info("Halcyon: latency target {} by JMX, until the node stops", target);
    }

    @Override
    public long getPaceBytesPerSecond()
    {
        return plugin.pace.rate();
    }

    @Override
    public String getPace()
    {
        return plugin.pace.shown();
    }

    @Override
    public Map<String, Long> getReasons()
    {
        return plugin.counters.reasons();
    }

    @Override
    public Map<String, Long> getFailures()
    {
        return plugin.counters.failures();
    }

    @Override
    public void forgetFailures()
    {
        plugin.counters.forgetFailures();
    }
}
