package org.apache.cassandra.db.compaction;

import java.util.Collection;
import java.util.Map;
import java.util.stream.Collectors;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.compaction.unified.UnifiedCompactionTask;
import org.apache.cassandra.db.lifecycle.LifecycleTransaction;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.apache.cassandra.io.sstable.format.SSTableReader;

/** UnifiedCompactionStrategy, whose tasks are handed over. */
public class HalcyonUnifiedCompactionStrategy extends UnifiedCompactionStrategy
{
    public HalcyonUnifiedCompactionStrategy(ColumnFamilyStore cfs, Map<String, String> options)
    {
        super(cfs, options);
    }

    public static Map<String, String> validateOptions(Map<String, String> options) throws ConfigurationException
    {
        return Line.notUnderstood(Line50.NAME, UnifiedCompactionStrategy.validateOptions(options));
    }

    @Override
    public UnifiedCompactionTask getNextBackgroundTask(long gcBefore)
    {
        UnifiedCompactionTask stock = super.getNextBackgroundTask(gcBefore);
        return stock == null ? null : new HandedOverUnified50(cfs, this, stock);
    }

    @Override
    public Collection<AbstractCompactionTask> getMaximalTask(long gcBefore, boolean splitOutput)
    {
        Collection<AbstractCompactionTask> stock = super.getMaximalTask(gcBefore, splitOutput);
        return stock.stream().map(this::handedOver).collect(Collectors.toList());
    }

    @Override
    public AbstractCompactionTask getUserDefinedTask(Collection<SSTableReader> sstables, long gcBefore)
    {
        return handedOver(super.getUserDefinedTask(sstables, gcBefore));
    }

    @Override
    public AbstractCompactionTask getCompactionTask(LifecycleTransaction txn, long gcBefore, long maxSSTableBytes)
    {
        // Cassandra's does not split its outputs: it is not a UnifiedCompactionTask.
        return HandedOver50.task(cfs, super.getCompactionTask(txn, gcBefore, maxSSTableBytes));
    }

    private AbstractCompactionTask handedOver(AbstractCompactionTask stock)
    {
        if (stock != null && stock.getClass() == UnifiedCompactionTask.class)
            return new HandedOverUnified50(cfs, this, (UnifiedCompactionTask) stock);
        return stock;
    }
}
