package org.apache.cassandra.db.compaction;

import java.lang.reflect.Field;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.DiskBoundaries;
import org.apache.cassandra.db.PartitionPosition;
import org.apache.cassandra.dht.Token;

/** When the next output begins: as the task's own writer would switch. */
final class Split
{
    private static final Field MAX_BYTES = field("maxSSTableBytes");
    private static final Field IS_MAJOR = field("majorCompaction");

    /** Bytes of Data.db; 0: no limit. */
    final long size;
    /** Outputs fill levels, each larger than the last by this factor; 0: they are all of one level. */
    final int fanout;
    final int level;
    /** First tokens of outputs, ascending. */
    final long[] tokens;

    private Split(long size, int fanout, int level, Set<Long> tokens)
    {
        this.size = size;
        this.fanout = fanout;
        this.level = level;
        this.tokens = tokens.stream().mapToLong(Long::longValue).toArray();
    }

    private static Field field(String name)
    {
        try
        {
            Field field = LeveledCompactionTask.class.getDeclaredField(name);
            field.setAccessible(true);
            return field;
        }
        catch (ReflectiveOperationException | RuntimeException e)
        {
            return null;
        }
    }

    /** Tasks whose writers we know; `nodetool compact -s` has another. */
    static boolean isKnown(Class<?> task)
    {
        if (task == LeveledCompactionTask.class)
            return MAX_BYTES != null && IS_MAJOR != null;
        return task == CompactionTask.class || task == TimeWindowCompactionTask.class;
    }

    static Split of(ColumnFamilyStore cfs, CompactionTask task)
    {
        Set<Long> disks = disks(cfs);
        if (!(task instanceof LeveledCompactionTask))
            return new Split(0, 0, task.getLevel(), disks);
        try
        {
            long size = MAX_BYTES.getLong(task);
            size = size == Long.MAX_VALUE ? 0 : size;
            if (!IS_MAJOR.getBoolean(task))
                return new Split(size, 0, task.getLevel(), disks);
            return new Split(size, cfs.getLevelFanoutSize(), 1, disks);
        }
        catch (IllegalAccessException e)
        {
            throw new IllegalStateException(e);
        }
    }

    /** At these, and where the disks' ranges begin. */
    static Split at(ColumnFamilyStore cfs, Set<Long> firstTokens)
    {
        Set<Long> tokens = disks(cfs);
        tokens.addAll(firstTokens);
        return new Split(0, 0, 0, tokens);
    }

    private static Set<Long> disks(ColumnFamilyStore cfs)
    {
        Set<Long> tokens = new TreeSet<>();
        DiskBoundaries disks = cfs.getDiskBoundaries();
        List<PartitionPosition> positions = disks.positions;
        // The last one is the end of the ring.
        for (int i = 0; positions != null && i < positions.size() - 1; i++)
            if (!isLast(positions.get(i).getToken()))
                tokens.add(after(positions.get(i).getToken()));
        return tokens;
    }

    static boolean isLast(Token end)
    {
        return (Long) end.getTokenValue() == Long.MAX_VALUE;
    }

    static long after(Token end)
    {
        return (Long) end.getTokenValue() + 1;
    }
}
