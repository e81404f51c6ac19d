package org.apache.cassandra.db.compaction;

import java.util.Collection;
import java.util.Map;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.lifecycle.LifecycleTransaction;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.apache.cassandra.io.sstable.format.SSTableReader;

/** TimeWindowCompactionStrategy, whose tasks are handed over. */
public class Halcyon41TimeWindowCompactionStrategy extends TimeWindowCompactionStrategy
{
    public Halcyon41TimeWindowCompactionStrategy(ColumnFamilyStore cfs, Map<String, String> options)
    {
        super(cfs, options);
    }

    public static Map<String, String> validateOptions(Map<String, String> options) throws ConfigurationException
    {
        return Line.notUnderstood(Line41.NAME, TimeWindowCompactionStrategy.validateOptions(options));
    }

    @Override
    public AbstractCompactionTask getNextBackgroundTask(int gcBefore)
    {
        return HandedOver41.task(cfs, super.getNextBackgroundTask(gcBefore));
    }

    @Override
    public Collection<AbstractCompactionTask> getMaximalTask(int gcBefore, boolean splitOutput)
    {
        return HandedOver41.tasks(cfs, super.getMaximalTask(gcBefore, splitOutput));
    }

    @Override
    public AbstractCompactionTask getUserDefinedTask(Collection<SSTableReader> sstables, int gcBefore)
    {
        return HandedOver41.task(cfs, super.getUserDefinedTask(sstables, gcBefore));
    }

    @Override
    public AbstractCompactionTask getCompactionTask(LifecycleTransaction txn, int gcBefore, long maxSSTableBytes)
    {
        return HandedOver41.task(cfs, super.getCompactionTask(txn, gcBefore, maxSSTableBytes));
    }
}
