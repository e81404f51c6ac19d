package org.apache.cassandra.db.compaction;

import java.util.Set;

import com.google.common.collect.Sets;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Directories;
import org.apache.cassandra.db.Keyspace;
import org.apache.cassandra.db.lifecycle.ILifecycleTransaction;
import org.apache.cassandra.db.lifecycle.LifecycleTransaction;
import org.apache.cassandra.index.Index;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.SSTableFlushObserver;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.schema.Schema;
import org.apache.cassandra.schema.SchemaChangeListener;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.schema.TableMetadataRef;
import org.apache.cassandra.utils.TimeUUID;

final class Line50 extends Since50
{
    static final String NAME = "5.0";

    @Override
    public String name()
    {
        return NAME;
    }

    @Override
    public void listen(SchemaChangeListener listener)
    {
        Schema.instance.registerListener(listener);
    }

    @Override
    ColumnFamilyStore store(Keyspace keyspace, TableMetadata table, Directories directories)
    {
        return ColumnFamilyStore.createColumnFamilyStore(keyspace, table.name, TableMetadataRef.forOfflineTools(table), directories, true, false, true);
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
        return ((LifecycleTransaction) transaction).opId();
    }

    @Override
    long gcBefore(CompactionTask task)
    {
        return task.gcBefore;
    }

    @Override
    Set<SSTableReader> inputs(CompactionTask task, CompactionController controller)
    {
        Set<SSTableReader> expired = controller.getFullyExpiredSSTables();
        if (!task.buildCompactionCandidatesForAvailableDiskSpace(expired, task.transaction.opId()))
            controller.refreshOverlaps();
        return Sets.difference(task.transaction.originals(), expired).immutableCopy();
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
