package org.apache.cassandra.db.compaction;

import java.util.Collection;
import java.util.Set;
import java.util.stream.Collectors;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Directories;
import org.apache.cassandra.db.compaction.writers.CompactionAwareWriter;
import org.apache.cassandra.db.lifecycle.LifecycleTransaction;
import org.apache.cassandra.io.sstable.format.SSTableReader;

/** Cassandra's own task, done by Halcyon where it can be, else by itself. */
class HandedOver41 extends CompactionTask
{
    private final CompactionTask stock;

    private HandedOver41(ColumnFamilyStore cfs, CompactionTask stock)
    {
        super(cfs, stock.transaction, stock.gcBefore, stock.keepOriginals);
        this.stock = stock;
        isUserDefined = stock.isUserDefined;
        compactionType = stock.compactionType;
    }

    /** Tasks that write in a way of their own stay as they are, and so does none. */
    static AbstractCompactionTask task(ColumnFamilyStore cfs, AbstractCompactionTask stock)
    {
        return stock != null && Split.isKnown(stock.getClass()) ? new HandedOver41(cfs, (CompactionTask) stock) : stock;
    }

    static Collection<AbstractCompactionTask> tasks(ColumnFamilyStore cfs, Collection<AbstractCompactionTask> stock)
    {
        return stock == null ? null : stock.stream().map(task -> task(cfs, task)).collect(Collectors.toList());
    }

    @Override
    protected int executeInternal(ActiveCompactionsTracker active)
    {
        if (!new HandOver(cfs, stock, inputs -> Split.of(cfs, stock)).isDone(active))
            return stock.executeInternal(active);
        return transaction.originals().size();
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

    @Override
    public CompactionAwareWriter getCompactionAwareWriter(ColumnFamilyStore cfs, Directories directories, LifecycleTransaction txn,
                                                          Set<SSTableReader> nonExpiredSSTables)
    {
        return stock.getCompactionAwareWriter(cfs, directories, txn, nonExpiredSSTables);
    }

    @Override
    protected int getLevel()
    {
        return stock.getLevel();
    }
}
