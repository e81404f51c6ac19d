package org.apache.cassandra.db.compaction;

import java.util.Set;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.utils.TimeUUID;

/** What `nodetool compactionstats` shows, and `nodetool stop` stops. */
final class Progress extends CompactionInfo.Holder
{
    private final ColumnFamilyStore cfs;
    private final CompactionTask task;
    private final Set<SSTableReader> inputs;
    private final TimeUUID id;
    private final long total;
    private final long stored;
    private volatile long read;
    private volatile String directory;

    Progress(ColumnFamilyStore cfs, CompactionTask task, Set<SSTableReader> inputs)
    {
        this.cfs = cfs;
        this.task = task;
        this.inputs = inputs;
        id = Line.running().id(Line.running().transaction(task));
        total = inputs.stream().mapToLong(SSTableReader::uncompressedLength).sum();
        stored = inputs.stream().mapToLong(SSTableReader::onDiskLength).sum();
    }

    Set<SSTableReader> inputs()
    {
        return inputs;
    }

    void read(long read)
    {
        this.read = Math.min(read, total);
    }

    void writesTo(String directory)
    {
        this.directory = directory;
    }

    @Override
    public CompactionInfo getCompactionInfo()
    {
        return Line.running().info(cfs.metadata(), task.compactionType, read, total, stored, id, inputs, directory);
    }

    @Override
    public boolean isGlobal()
    {
        return false;
    }
}
