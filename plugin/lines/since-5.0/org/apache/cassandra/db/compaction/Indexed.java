package org.apache.cassandra.db.compaction;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.lifecycle.ILifecycleTransaction;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.index.Index;
import org.apache.cassandra.index.sai.StorageAttachedIndex;
import org.apache.cassandra.index.sai.StorageAttachedIndexGroup;
import org.apache.cassandra.index.sai.disk.format.IndexDescriptor;
import org.apache.cassandra.io.sstable.Component;
import org.apache.cassandra.io.sstable.ISSTableScanner;
import org.apache.cassandra.io.sstable.SSTableFlushObserver;
import org.apache.cassandra.io.sstable.format.SSTableReader;

/**
 * The files of storage-attached indexes for an output: Cassandra's own writers get its rows, read once more.
 *
 * <p>They must be there before the output is live: an index that misses some stops to answer.
 */
final class Indexed
{
    private Indexed()
    {
    }

    static void write(Since50 line, ColumnFamilyStore cfs, ILifecycleTransaction transaction, SSTableReader output, Progress progress) throws IOException
    {
        List<SSTableFlushObserver> observers = new ArrayList<>();
        for (Index.Group group : cfs.indexManager.listIndexGroups())
        {
            SSTableFlushObserver observer = line.observer(group, output.descriptor, transaction, cfs.metadata());
            if (observer != null)
                observers.add(observer);
        }
        if (observers.isEmpty())
            return;
        try
        {
            observe(output, observers, progress);
        }
        catch (Throwable e)
        {
            observers.forEach(observer -> observer.abort(e));
            throw e;
        }
        check(cfs, output);
    }

    private static void observe(SSTableReader output, List<SSTableFlushObserver> observers, Progress progress)
    {
        observers.forEach(SSTableFlushObserver::begin);
        try (ISSTableScanner partitions = output.getScanner())
        {
            while (partitions.hasNext())
            {
                if (progress.isStopRequested())
                    throw new CompactionInterruptedException(progress.getCompactionInfo());
                try (UnfilteredRowIterator rows = partitions.next())
                {
                    observers.forEach(observer -> observer.startPartition(rows.partitionKey(), -1, -1));
                    observers.forEach(observer -> observer.staticRow(rows.staticRow()));
                    rows.forEachRemaining(row -> observers.forEach(observer -> observer.nextUnfilteredCluster(row)));
                }
            }
        }
        observers.forEach(ByRelease::writerSwitched);
        observers.forEach(SSTableFlushObserver::complete);
    }

    /** The writers log their errors and continue. */
    private static void check(ColumnFamilyStore cfs, SSTableReader output) throws IOException
    {
        Set<StorageAttachedIndex> indexes = new HashSet<>();
        for (Index index : cfs.indexManager.listIndexes())
            if (index instanceof StorageAttachedIndex)
                indexes.add((StorageAttachedIndex) index);
        IndexDescriptor written = IndexDescriptor.create(output);
        for (StorageAttachedIndex index : indexes)
            if (!written.isPerSSTableIndexBuildComplete() || !written.isPerColumnIndexBuildComplete(index.identifier()))
                throw new IOException("index " + index.identifier() + " was not written for " + output.getFilename());
        Set<Component> components = StorageAttachedIndexGroup.getLiveComponents(output, indexes);
        output.addComponents(components);
    }
}
