package org.apache.cassandra.db.compaction;

import java.util.List;
import java.util.Set;

import com.google.common.collect.Sets;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Directories;
import org.apache.cassandra.db.Keyspace;
import org.apache.cassandra.db.lifecycle.ILifecycleTransaction;
import org.apache.cassandra.db.lifecycle.LifecycleTransaction;
import org.apache.cassandra.index.Index;
import org.apache.cassandra.io.sstable.Component;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.ISSTableScanner;
import org.apache.cassandra.io.sstable.SSTable;
import org.apache.cassandra.io.sstable.format.SSTableFormat;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.io.sstable.format.Version;
import org.apache.cassandra.io.util.File;
import org.apache.cassandra.schema.Schema;
import org.apache.cassandra.schema.SchemaChangeListener;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.schema.TableMetadataRef;
import org.apache.cassandra.utils.TimeUUID;

/** Seconds of 32 bits; one format, and no storage-attached indexes. */
final class Line41 extends Line
{
    static final String NAME = "4.1";

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
        return new CompactionTask(cfs, transaction, (int) gcBefore, false);
    }

    @Override
    CompactionIterator merge(List<ISSTableScanner> inputs, CompactionController controller, long now, TimeUUID id)
    {
        return new CompactionIterator(OperationType.COMPACTION, inputs, controller, (int) now, id);
    }

    @Override
    CompactionController controller(ColumnFamilyStore cfs, Set<SSTableReader> inputs, long gcBefore)
    {
        return new CompactionController(cfs, inputs, (int) gcBefore);
    }

    @Override
    boolean neverPurges()
    {
        return CompactionController.NEVER_PURGE_TOMBSTONES;
    }

    /** Its nodetool has no forcecompact. */
    @Override
    boolean hasKeysWithoutGrace(ColumnFamilyStore cfs)
    {
        return false;
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
        if (!task.buildCompactionCandidatesForAvailableDiskSpace(expired))
            controller.refreshOverlaps();
        return Sets.difference(task.transaction.originals(), expired).immutableCopy();
    }

    @Override
    CompactionInfo info(TableMetadata table, OperationType type, long read, long total, long stored, TimeUUID id, Set<SSTableReader> inputs,
                        String directory)
    {
        return new CompactionInfo(table, type, read, total, id, inputs);
    }

    @Override
    String record(TimeUUID id, ColumnFamilyStore cfs, OperationType type, long[] merged, long before, long after)
    {
        return CompactionTask.updateCompactionHistory(id, cfs.keyspace.getName(), cfs.getTableName(), merged, before, after);
    }

    @Override
    Version written()
    {
        return SSTableFormat.Type.current().info.getLatestVersion();
    }

    @Override
    String format(Version version)
    {
        return SSTableFormat.Type.BIG.name;
    }

    @Override
    long columnIndexSize()
    {
        return DatabaseDescriptor.getColumnIndexSize();
    }

    @Override
    File data(Descriptor sstable)
    {
        return sstable.fileFor(Component.DATA);
    }

    @Override
    SSTable placeholder(ColumnFamilyStore cfs, Descriptor descriptor)
    {
        return new SSTable(descriptor, Set.of(Component.DATA), cfs.metadata, DatabaseDescriptor.getDiskOptimizationStrategy())
        {
        };
    }

    @Override
    SSTableReader open(ColumnFamilyStore cfs, Descriptor descriptor)
    {
        return SSTableReader.open(descriptor, cfs.metadata);
    }

    @Override
    boolean isAttached(Index index)
    {
        return false;
    }

    @Override
    void index(ColumnFamilyStore cfs, ILifecycleTransaction transaction, SSTableReader output, Progress progress)
    {
        // It has no index whose tables are handed over.
    }

    @Override
    void carryOver(ColumnFamilyStore cfs, Set<SSTableReader> inputs, List<SSTableReader> outputs, Progress progress)
    {
        // The cache's keys are of an interface that 5.0 has changed: hot rows are looked up once more.
    }
}
