package org.apache.cassandra.db.compaction;

import java.util.Collection;
import java.util.List;
import java.util.Map;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.lifecycle.LifecycleTransaction;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.apache.cassandra.io.sstable.format.SSTableReader;

/** LeveledCompactionStrategy, whose tasks are handed over. */
public class Halcyon60LeveledCompactionStrategy extends LeveledCompactionStrategy
{
    public Halcyon60LeveledCompactionStrategy(ColumnFamilyStore cfs, Map<String, String> options)
    {
        super(cfs, options);
    }

    public static Map<String, String> validateOptions(Map<String, String> options) throws ConfigurationException
    {
        return Line.notUnderstood(Line60.NAME, LeveledCompactionStrategy.validateOptions(options));
    }

    @Override
    public Collection<AbstractCompactionTask> getNextBackgroundTasks(long gcBefore)
    {
        return HandedOver60.tasks(cfs, super.getNextBackgroundTasks(gcBefore));
    }

    @Override
    public List<AbstractCompactionTask> getMaximalTasks(long gcBefore, boolean splitOutput)
    {
        return HandedOver60.tasks(cfs, super.getMaximalTasks(gcBefore, splitOutput));
    }

    @Override
    public AbstractCompactionTask getUserDefinedTask(Collection<SSTableReader> sstables, long gcBefore)
    {
        return HandedOver60.task(cfs, super.getUserDefinedTask(sstables, gcBefore));
    }

    @Override
    public AbstractCompactionTask getCompactionTask(LifecycleTransaction txn, long gcBefore, long maxSSTableBytes)
    {
        return HandedOver60.task(cfs, super.getCompactionTask(txn, gcBefore, maxSSTableBytes));
    }
}
