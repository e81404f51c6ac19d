package org.apache.cassandra.db.compaction;

import java.util.HashSet;
import java.util.Set;

import com.codahale.metrics.Metric;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Directories;
import org.apache.cassandra.db.Keyspace;
import org.apache.cassandra.db.lifecycle.ILifecycleTransaction;
import org.apache.cassandra.db.lifecycle.LifecycleTransaction;
import org.apache.cassandra.index.Index;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.SSTableFlushObserver;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.metrics.CassandraMetricsRegistry;
import org.apache.cassandra.metrics.CassandraMetricsRegistry.MetricName;
import org.apache.cassandra.schema.Schema;
import org.apache.cassandra.schema.SchemaChangeListener;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.utils.MBeanWrapper;
import org.apache.cassandra.utils.TimeUUID;

final class Line60 extends Since50
{
    static final String NAME = "6.0";

    @Override
    public String name()
    {
        return NAME;
    }

    /** Its registry knows the groups of its own metrics, by which it makes virtual tables, and takes no other. */
    @Override
    public <T extends Metric> T publish(MetricName name, T metric)
    {
        CassandraMetricsRegistry.Metrics.registerMBean(metric, name.getMBeanName(), MBeanWrapper.instance, false);
        return metric;
    }

    @Override
    public void listen(SchemaChangeListener listener)
    {
        Schema.instance.registerListener(listener);
    }

    @Override
    ColumnFamilyStore store(Keyspace keyspace, TableMetadata table, Directories directories)
    {
        return ColumnFamilyStore.createColumnFamilyStore(keyspace, table.name, table, directories, true, false, true);
    }

    @Override
    CompactionTask task(ColumnFamilyStore cfs, LifecycleTransaction transaction, long gcBefore)
    {
        return new CompactionTask(cfs, transaction, gcBefore, false);
    }

    @Override
    ILifecycleTransaction transaction(CompactionTask task)
    {
        return task.transaction;
    }

    @Override
    TimeUUID id(ILifecycleTransaction transaction)
    {
        return transaction.opId();
    }

    @Override
    long gcBefore(CompactionTask task)
    {
        return task.gcBeforeSeconds;
    }

    @Override
    Set<SSTableReader> inputs(CompactionTask task, CompactionController controller)
    {
        Set<SSTableReader> expired = controller.getFullyExpiredSSTables();
        Set<SSTableReader> inputs = new HashSet<>(task.transaction.originals());
        inputs.removeAll(expired);
        boolean areAll = inputs.isEmpty() || !task.shouldReduceScopeForSpace()
                         || task.buildCompactionCandidatesForAvailableDiskSpace(inputs, !expired.isEmpty(), task.transaction.opId());
        if (!areAll || !expired.isEmpty())
            controller.refreshOverlaps();
        return inputs;
    }

    @Override
    double density(ShardManager shards, Set<SSTableReader> inputs)
    {
        return shards.calculateCombinedDensity(inputs);
    }

    @Override
    SSTableFlushObserver observer(Index.Group group, Descriptor output, ILifecycleTransaction transaction, TableMetadata table)
    {
        return group.getFlushObserver(output, transaction, table);
    }
}
