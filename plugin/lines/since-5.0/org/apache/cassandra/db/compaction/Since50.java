package org.apache.cassandra.db.compaction;

import java.io.IOException;
import java.lang.reflect.Field;
import java.util.List;
import java.util.Set;

import com.google.common.collect.ImmutableMap;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.lifecycle.ILifecycleTransaction;
import org.apache.cassandra.index.Index;
import org.apache.cassandra.index.sai.StorageAttachedIndex;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.ISSTableScanner;
import org.apache.cassandra.io.sstable.SSTable;
import org.apache.cassandra.io.sstable.SSTableFlushObserver;
import org.apache.cassandra.io.sstable.format.SSTableFormat.Components;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.io.sstable.format.Version;
import org.apache.cassandra.io.util.File;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.utils.TimeUUID;

import static org.apache.cassandra.db.compaction.CompactionHistoryTabularData.COMPACTION_TYPE_PROPERTY;

/** What the lines from 5.0 on have in common: formats, storage-attached indexes, seconds of 64 bits, UCS. */
abstract class Since50 extends Line
{
    private static final Field WITHOUT_GRACE = keysWithoutGrace();

    private static Field keysWithoutGrace()
    {
        try
        {
            Field field = ColumnFamilyStore.class.getDeclaredField("partitionKeySetIgnoreGcGrace");
            field.setAccessible(true);
            return field;
        }
        catch (ReflectiveOperationException | RuntimeException e)
        {
            return null;
        }
    }

    abstract double density(ShardManager shards, Set<SSTableReader> inputs);

    /** Null: the group does not index it. */
    abstract SSTableFlushObserver observer(Index.Group group, Descriptor output, ILifecycleTransaction transaction, TableMetadata table);

    @Override
    public Set<String> missing()
    {
        return ByRelease.missing();
    }

    @Override
    CompactionIterator merge(List<ISSTableScanner> inputs, CompactionController controller, long now, TimeUUID id)
    {
        return new CompactionIterator(OperationType.COMPACTION, inputs, controller, now, id);
    }

    @Override
    CompactionController controller(ColumnFamilyStore cfs, Set<SSTableReader> inputs, long gcBefore)
    {
        return new CompactionController(cfs, inputs, gcBefore);
    }

    @Override
    boolean neverPurges()
    {
        return CompactionController.NEVER_PURGE_TOMBSTONES_PROPERTY_VALUE;
    }

    /** Without the field nothing is handed over. */
    @Override
    boolean hasKeysWithoutGrace(ColumnFamilyStore cfs)
    {
        try
        {
            return WITHOUT_GRACE == null || !((Set<?>) WITHOUT_GRACE.get(cfs)).isEmpty();
        }
        catch (IllegalAccessException e)
        {
            throw new IllegalStateException(e);
        }
    }

    @Override
    CompactionInfo info(TableMetadata table, OperationType type, long read, long total, long stored, TimeUUID id, Set<SSTableReader> inputs,
                        String directory)
    {
        return ByRelease.info(table, type, read, total, stored, id, inputs, directory);
    }

    @Override
    String record(TimeUUID id, ColumnFamilyStore cfs, OperationType type, long[] merged, long before, long after)
    {
        return CompactionTask.updateCompactionHistory(id, cfs.keyspace.getName(), cfs.getTableName(), merged, before, after,
                                                      ImmutableMap.of(COMPACTION_TYPE_PROPERTY, type.type, "compacted_by", "halcyon"));
    }

    @Override
    Version written()
    {
        return DatabaseDescriptor.getSelectedSSTableFormat().getLatestVersion();
    }

    @Override
    String format(Version version)
    {
        return version.format.name();
    }

    @Override
    long columnIndexSize()
    {
        return DatabaseDescriptor.getColumnIndexSize(0);
    }

    @Override
    File data(Descriptor sstable)
    {
        return sstable.fileFor(Components.DATA);
    }

    @Override
    SSTable placeholder(ColumnFamilyStore cfs, Descriptor descriptor)
    {
        return Placeholder.of(descriptor, cfs);
    }

    @Override
    SSTableReader open(ColumnFamilyStore cfs, Descriptor descriptor)
    {
        return SSTableReader.open(cfs, descriptor, null, cfs.metadata);
    }

    @Override
    boolean isAttached(Index index)
    {
        return index instanceof StorageAttachedIndex;
    }

    @Override
    void index(ColumnFamilyStore cfs, ILifecycleTransaction transaction, SSTableReader output, Progress progress) throws IOException
    {
        Indexed.write(this, cfs, transaction, output, progress);
    }

    @Override
    void carryOver(ColumnFamilyStore cfs, Set<SSTableReader> inputs, List<SSTableReader> outputs, Progress progress) throws IOException
    {
        CachedKeys.carryOver(cfs, inputs, outputs, progress);
    }
}
