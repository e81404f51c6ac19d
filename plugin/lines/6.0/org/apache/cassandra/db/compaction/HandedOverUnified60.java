package org.apache.cassandra.db.compaction;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.compaction.unified.UnifiedCompactionTask;

/** As {@link HandedOver60}: the strategy's method answers a UnifiedCompactionTask. */
class HandedOverUnified60 extends UnifiedCompactionTask
{
    private final UnifiedCompactionStrategy strategy;
    private final UnifiedCompactionTask stock;

    HandedOverUnified60(ColumnFamilyStore cfs, UnifiedCompactionStrategy strategy, UnifiedCompactionTask stock)
    {
        super(cfs, strategy, ((CompactionTask) stock).transaction, ((CompactionTask) stock).gcBeforeSeconds, strategy.getShardManager());
        this.strategy = strategy;
        this.stock = stock;
        isUserDefined = ((CompactionTask) stock).isUserDefined;
        compactionType = ((CompactionTask) stock).compactionType;
    }

    @Override
    protected void executeInternal(ActiveCompactionsTracker active)
    {
        if (!new HandOver(cfs, stock, inputs -> Shards.of(cfs, strategy, inputs)).isDone(active))
            ((CompactionTask) stock).executeInternal(active);
    }

    @Override
    public AbstractCompactionTask setUserDefined(boolean isUserDefined)
    {
        stock.setUserDefined(isUserDefined);
        return super.setUserDefined(isUserDefined);
    }

    @Override
    public AbstractCompactionTask setCompactionType(OperationType compactionType)
    {
        stock.setCompactionType(compactionType);
        return super.setCompactionType(compactionType);
    }
}
