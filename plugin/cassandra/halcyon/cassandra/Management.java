package halcyon.cassandra;

import java.util.List;
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
        super(HalcyonMBean.class, true);
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
        Overlay overlay = plugin.overlay;
        return overlay != null && overlay.hasLooked();
    }

    @Override
    public String getService()
    {
        return plugin.service.state();
    }

    @Override
    public Long getServicePid()
    {
        long pid = plugin.service.pid();
        return pid == 0 ? null : pid;
    }

    @Override
    public Integer getServiceExitStatus()
    {
        return plugin.service.exitStatus();
    }

    @Override
    public List<String> getServiceOutput()
    {
        return plugin.service.lastWords();
    }

    @Override
    public long getRestarts()
    {
        return plugin.service.restarts();
    }

    @Override
    public Long getMemoryBytes()
    {
        return Usage.memoryBytes(plugin.service.pid());
    }

    @Override
    public long getCpuMillis()
    {
        return plugin.usage.cpuMillis(plugin.service.pid());
    }

    @Override
    public long getCompleted()
    {
        return plugin.counters.node.completed.getCount();
    }

    @Override
    public long getStopped()
    {
        return plugin.counters.node.stopped.getCount();
    }

    @Override
    public long getFailed()
    {
        return plugin.counters.node.failed.getCount();
    }

    @Override
    public long getBytesRead()
    {
        return plugin.counters.node.bytesRead.getCount();
    }

    @Override
    public long getBytesWritten()
    {
        return plugin.counters.node.bytesWritten.getCount();
    }

    @Override
    public long getMillis()
    {
        return plugin.counters.node.millis.getCount();
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
    public Map<String, String> getTableOptions()
    {
        return plugin.tables.shown();
    }

    @Override
    public void setTableOption(String pattern, String name, String value)
    {
        plugin.tables.set(pattern, name, value);
        logger.info("Halcyon: {} of {} is {} by JMX, until the node stops", name, pattern, value);
    }

    @Override
    public String getInclude()
    {
        return overlay().include().toString();
    }

    @Override
    public void setInclude(String names)
    {
        overlay().select(new Names(names), overlay().exclude());
        logger.info("Halcyon: include={} by JMX, until the node stops", names);
    }

    @Override
    public String getExclude()
    {
        return overlay().exclude().toString();
    }

    @Override
    public void setExclude(String names)
    {
        overlay().select(overlay().include(), new Names(names));
        logger.info("Halcyon: exclude={} by JMX, until the node stops", names);
    }

    private Overlay overlay()
    {
        Overlay overlay = plugin.overlay;
        if (overlay == null)
            throw new IllegalStateException("include and exclude are the agent's: here `halcyon compact --node` names the tables");
        return overlay;
    }

    @Override
    public Long getPaceBytesPerSecond()
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
        plugin.forgetFailures();
    }
}
