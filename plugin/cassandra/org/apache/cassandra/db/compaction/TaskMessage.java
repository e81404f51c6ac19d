package org.apache.cassandra.db.compaction;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;

import halcyon.cassandra.Frame;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.SystemKeyspace;
import org.apache.cassandra.db.commitlog.CommitLogPosition;
import org.apache.cassandra.db.commitlog.IntervalSet;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.io.sstable.format.Version;
import org.apache.cassandra.schema.ColumnMetadata;
import org.apache.cassandra.schema.CompressionParams;
import org.apache.cassandra.schema.DroppedColumn;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.utils.TimeUUID;

import static org.apache.cassandra.db.compaction.CompactionTask.getIsTransient;
import static org.apache.cassandra.db.compaction.CompactionTask.getMinRepairedAt;
import static org.apache.cassandra.db.compaction.CompactionTask.getPendingRepair;

/** A task as bytes: what a compaction needs to know of its table and node. */
final class TaskMessage
{
    private static final long LATEST = 0xffffffffL;

    private final DataOutputStream to;

    private TaskMessage(DataOutputStream to)
    {
        this.to = to;
    }

    /** `originals`: the inputs, and those that have expired. */
    static byte[] of(ColumnFamilyStore cfs, CompactionTask task, Set<SSTableReader> inputs, Set<SSTableReader> originals, Split split,
                     long now, boolean verifyRows) throws IOException
    {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        TaskMessage message = new TaskMessage(new DataOutputStream(bytes));
        message.schema(cfs.metadata());
        message.inputs(inputs);
        message.format(cfs.metadata());
        message.times(Line.running().gcBefore(task), now);
        message.split(split);
        message.provenance(inputs, originals, split.level);
        message.to.writeLong(SSTableReader.getApproximateKeyCount(inputs));
        message.to.writeBoolean(verifyRows);
        return bytes.toByteArray();
    }

    private void text(String text) throws IOException
    {
        Frame.putText(to, text);
    }

    private void schema(TableMetadata table) throws IOException
    {
        text(table.keyspace);
        text(table.name);
        to.writeBoolean(table.enforceStrictLiveness());
        List<ColumnMetadata> columns = new ArrayList<>(table.partitionKeyColumns());
        columns.addAll(table.clusteringColumns());
        table.regularAndStaticColumns().forEach(columns::add);
        to.writeInt(columns.size());
        for (ColumnMetadata column : columns)
            column(column);
        to.writeInt(table.droppedColumns.size());
        for (DroppedColumn dropped : table.droppedColumns.values())
        {
            column(dropped.column);
            to.writeLong(dropped.droppedTime);
        }
    }

    private void column(ColumnMetadata column) throws IOException
    {
        switch (column.kind)
        {
            case PARTITION_KEY: to.writeByte(0); break;
            case CLUSTERING: to.writeByte(1); break;
            case STATIC: to.writeByte(2); break;
            default: to.writeByte(3);
        }
        text(column.name.toString());
        text(column.type.toString());
    }

    private void inputs(Set<SSTableReader> inputs) throws IOException
    {
        to.writeInt(inputs.size());
        for (SSTableReader input : inputs)
            text(Line.running().data(input.descriptor).absolutePath());
    }

    private void format(TableMetadata table) throws IOException
    {
        Version version = Line.running().written();
        text(Line.running().format(version));
        text(version.toString());
        CompressionParams compression = table.params.compression;
        Map<String, String> options = compression.isEnabled() ? compression.asMap() : Map.of();
        to.writeInt(options.size());
        for (Map.Entry<String, String> option : options.entrySet())
        {
            text(option.getKey());
            text(option.getValue());
        }
        to.writeDouble(table.params.bloomFilterFpChance);
        to.writeInt(table.params.minIndexInterval);
        to.writeLong(Line.running().columnIndexSize());
    }

    private void times(long gcBefore, long now) throws IOException
    {
        to.writeInt((int) Math.max(0, Math.min(LATEST, gcBefore)));
        to.writeInt((int) Math.max(0, Math.min(LATEST, now)));
    }

    private void split(Split split) throws IOException
    {
        to.writeLong(split.size);
        to.writeInt(split.fanout);
        to.writeInt(split.tokens.length);
        for (long token : split.tokens)
            to.writeLong(token);
    }

    private void provenance(Set<SSTableReader> inputs, Set<SSTableReader> originals, int level) throws IOException
    {
        to.writeInt(level);
        to.writeLong(getMinRepairedAt(inputs));
        TimeUUID pending = getPendingRepair(inputs);
        uuid(pending == null ? null : pending.asUUID());
        to.writeBoolean(getIsTransient(inputs));
        UUID host = SystemKeyspace.getLocalHostId();
        uuid(host);
        IntervalSet.Builder<CommitLogPosition> union = new IntervalSet.Builder<>();
        for (SSTableReader original : originals)
            if (host != null && host.equals(original.getSSTableMetadata().originatingHostId))
                union.addAll(original.getSSTableMetadata().commitLogIntervals);
        IntervalSet<CommitLogPosition> intervals = union.build();
        to.writeInt(intervals.starts().size());
        Iterator<CommitLogPosition> ends = intervals.ends().iterator();
        for (CommitLogPosition start : intervals.starts())
        {
            position(start);
            position(ends.next());
        }
    }

    private void uuid(UUID id) throws IOException
    {
        to.writeBoolean(id != null);
        if (id != null)
        {
            to.writeLong(id.getMostSignificantBits());
            to.writeLong(id.getLeastSignificantBits());
        }
    }

    private void position(CommitLogPosition position) throws IOException
    {
        to.writeLong(position.segmentId);
        to.writeInt(position.position);
    }
}
