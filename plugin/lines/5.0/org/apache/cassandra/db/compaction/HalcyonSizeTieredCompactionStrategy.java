package org.apache.cassandra.db.compaction;

import java.util.Collection;
import java.util.Map;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.lifecycle.LifecycleTransaction;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.apache.cassandra.io.sstable.format.SSTableReader;

/** SizeTieredCompactionStrategy, whose tasks are handed over. */
public class HalcyonSizeTieredCompactionStrategy extends SizeTieredCompactionStrategy
{
    public HalcyonSizeTieredCompactionStrategy(ColumnFamilyStore cfs, Map<String, String> options)
    {
        super(cfs, options);
    }

    public static Map<String, String> validateOptions(Map<String, String> options) throws ConfigurationException
    {
        return Line.notUnderstood(Line50.NAME, SizeTieredCompactionStrategy.validateOptions(options));
    }

    @Override
    public AbstractCompactionTask getNextBackgroundTask(long gcBefore)
    {
        return HandedOver50.task(cfs, super.getNextBackgroundTask(gcBefore));
    }

    @Override
    public Collection<AbstractCompactionTask> getMaximalTask(long gcBefore, boolean splitOutput)
    {
        return HandedOver50.tasks(cfs, super.getMaximalTask(gcBefore, splitOutput));
    }

    @Override
    public AbstractCompactionTask getUserDefinedTask(Collection<SSTableReader> sstables, long gcBefore)
    {
        return HandedOver50.task(cfs, super.getUserDefinedTask(sstables, gcBefore));
    }

    @Override
    public AbstractCompactionTask getCompactionTask(LifecycleTransaction txn, long gcBefore, long maxSSTableBytes)
    {
        return HandedOver50.task(cfs, super.getCompactionTask(txn, gcBefore, maxSSTableBytes));
    }
}
