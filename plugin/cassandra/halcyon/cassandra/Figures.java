package halcyon.cassandra;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import javax.management.InstanceNotFoundException;
import javax.management.JMException;

import com.codahale.metrics.Counter;
import com.codahale.metrics.Gauge;
import com.codahale.metrics.Metric;
import org.apache.cassandra.db.compaction.Line;
import org.apache.cassandra.metrics.CassandraMetricsRegistry;
import org.apache.cassandra.metrics.CassandraMetricsRegistry.MetricName;
import org.apache.cassandra.metrics.DefaultNameFactory;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Metrics beside Cassandra's own, so that every collector of those has them: of the node {@code type=Halcyon}, of a table {@code
 * type=HalcyonTable,keyspace=…,scope=TABLE}. Counters only grow, until the node stops.
 */
final class Figures
{
    private static final Logger logger = LoggerFactory.getLogger(Figures.class);
    private static final String OF_NODE = "Halcyon", OF_TABLES = "HalcyonTable";

    final Counter completed;
    final Counter stopped;
    final Counter failed;
    final Counter handedBack;
    final Counter bytesRead;
    final Counter bytesWritten;
    /** Of compactions, from the first file that is opened to the last. */
    final Counter millis;
    /** Of a table: what its compactions have had of processors, and hold of memory. */
    final LongAdder cpuMicros = new LongAdder();
    final LongAdder memoryBytes = new LongAdder();
    private final String keyspace;
    private final String table;
    private final Map<String, Counter> byCode = new ConcurrentHashMap<>();
    private final List<MetricName> names = new ArrayList<>();

    private Figures(String keyspace, String table)
    {
        this.keyspace = keyspace;
        this.table = table;
        completed = counter("CompactionsCompleted");
        stopped = counter("CompactionsStopped");
        failed = counter("CompactionsFailed");
        handedBack = counter("CompactionsHandedBack");
        bytesRead = counter("BytesRead");
        bytesWritten = counter("BytesWritten");
        millis = counter("CompactionMillis");
    }

    static Figures ofNode()
    {
        return new Figures(null, null);
    }

    static Figures ofTable(String keyspace, String table)
    {
        Figures figures = new Figures(keyspace, table);
        figures.gauge("CpuMillis", () -> TimeUnit.MICROSECONDS.toMillis(figures.cpuMicros.sum()));
        figures.gauge("MemoryBytes", figures.memoryBytes::sum);
        return figures;
    }

    private Counter counter(String name)
    {
        return register(own(name), new Counter());
    }

    void gauge(String name, Gauge<Long> gauge)
    {
        register(own(name), gauge);
    }

    /** Of the node, one for each word of few. */
    Counter counter(String name, String code)
    {
        return byCode.computeIfAbsent(name + '.' + code,
                                      key -> register(DefaultNameFactory.createMetricName(OF_NODE, name, code), new Counter()));
    }

    private MetricName own(String name)
    {
        MetricName own = name(name);
        names.add(own);
        return own;
    }

    private MetricName name(String name)
    {
        if (table == null)
            return DefaultNameFactory.createMetricName(OF_NODE, name, null);
        String bean = String.format("%s:type=%s,keyspace=%s,scope=%s,name=%s", DefaultNameFactory.GROUP_NAME, OF_TABLES, keyspace, table, name);
        return new MetricName(DefaultNameFactory.GROUP_NAME, OF_TABLES, name, keyspace + '.' + table, bean);
    }

    private static <T extends Metric> T register(MetricName name, T metric)
    {
        return Line.running().publish(name, metric);
    }

    /** The table was dropped. */
    void remove()
    {
        for (MetricName name : names)
        {
            CassandraMetricsRegistry.Metrics.remove(name.getMetricName());
            try
            {
                ManagementFactory.getPlatformMBeanServer().unregisterMBean(name.getMBeanName());
            }
            catch (InstanceNotFoundException e)
            {
                // The registry has taken it out.
                continue;
            }
            catch (JMException e)
            {
                logger.debug("Halcyon: {} stays", name, e);
            }
        }
    }
}
