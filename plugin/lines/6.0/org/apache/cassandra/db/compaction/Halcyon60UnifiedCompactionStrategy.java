package org.apache.cassandra.db.compaction;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

import halcyon.cassandra.Plugin;
import halcyon.cassandra.Reason;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.compaction.unified.UnifiedCompactionTask;
import org.apache.cassandra.db.lifecycle.LifecycleTransaction;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.apache.cassandra.io.sstable.format.SSTableReader;

/** UnifiedCompactionStrategy, whose tasks are handed over. */
public class Halcyon60UnifiedCompactionStrategy extends UnifiedCompactionStrategy
{
    public Halcyon60UnifiedCompactionStrategy(ColumnFamilyStore cfs, Map<String, String> options)
    {
        super(cfs, options);
    }

    public static Map<String, String> validateOptions(Map<String, String> options) throws ConfigurationException
    {
        return Line.notUnderstood(Line60.NAME, UnifiedCompactionStrategy.validateOptions(options));
    }

    @Override
    public Collection<AbstractCompactionTask> getNextBackgroundTasks(long gcBefore)
    {
        return handedOver(super.getNextBackgroundTasks(gcBefore));
    }

    @Override
    public List<AbstractCompactionTask> getMaximalTasks(long gcBefore, boolean splitOutput)
    {
        return handedOver(super.getMaximalTasks(gcBefore, splitOutput));
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
        return HandedOver60.task(cfs, super.getCompactionTask(txn, gcBefore, maxSSTableBytes));
    }

    /**
     * With parallelize_output_shards Cassandra makes a task for each shard, and one transaction of them all. What is handed over is one task:
     * its shards are written one after the other.
     */
    @Override
    List<AbstractCompactionTask> createCompactionTasks(long gcBefore, LifecycleTransaction transaction)
    {
        if (Plugin.instance() == null)
            return super.createCompactionTasks(gcBefore, transaction);
        Reason reason = HandOver.reason(cfs, transaction.originals());
        if (reason == null)
            return List.of(new UnifiedCompactionTask(cfs, this, transaction, gcBefore, getShardManager()));
        List<AbstractCompactionTask> stock = super.createCompactionTasks(gcBefore, transaction);
        // A single one says itself why it stays.
        if (stock.size() > 1)
            Plugin.instance().counters.stays(Eligibility.name(cfs), reason);
        return stock;
    }

    private List<AbstractCompactionTask> handedOver(Collection<AbstractCompactionTask> stock)
    {
        return stock.stream().map(this::handedOver).collect(Collectors.toList());
    }

    private AbstractCompactionTask handedOver(AbstractCompactionTask stock)
    {
        boolean isWhole = stock != null && stock.getClass() == UnifiedCompactionTask.class && stock.transaction instanceof LifecycleTransaction;
        return isWhole ? new HandedOverUnified60(cfs, this, (UnifiedCompactionTask) stock) : stock;
    }
}
