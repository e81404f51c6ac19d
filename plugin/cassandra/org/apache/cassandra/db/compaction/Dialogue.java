package org.apache.cassandra.db.compaction;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.BufferUnderflowException;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.LongPredicate;

import com.google.common.util.concurrent.RateLimiter;

import halcyon.cassandra.Counters;
import halcyon.cassandra.Failed;
import halcyon.cassandra.Frame;
import halcyon.cassandra.Pace;
import halcyon.cassandra.Plugin;
import halcyon.cassandra.Service.Conversation;
import halcyon.cassandra.TableOptions;
import halcyon.cassandra.Using;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.memtable.Memtable;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.io.FSDiskFullWriteError;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.utils.ByteBufferUtil;

/** Answers the service's questions about one task, until it is done. */
final class Dialogue
{
    private static final byte[] NOTHING = {};
    private static final long LOOK_MILLIS = 100;
    private static final long REFRESH_NANOS = TimeUnit.MINUTES.toNanos(1);
    /** It stops within a second; one that does not is killed. */
    private static final long STOP_NANOS = TimeUnit.SECONDS.toNanos(20);
    private static final byte STOPPED = 1, DISK_FULL = 3;

    private final Conversation conversation;
    private final Counters counters;
    private final Pace pace;
    private final TableOptions tables;
    private final CompactionController controller;
    private final Progress progress;
    private final Outputs outputs;
    private final Using using;
    private final KeysAhead keys;
    private long refreshed = System.nanoTime();
    private long lastBound = Long.MIN_VALUE;
    private boolean stopping;
    private long stopBy;
    /** Looks in a row that found nothing, and how many may. Not a time: a node that stands still meanwhile looks only once. */
    private long looks;
    private final long mostLooks;

    Dialogue(Conversation conversation, Plugin plugin, CompactionController controller, Progress progress, Outputs outputs, Using using)
    {
        this.conversation = conversation;
        counters = plugin.counters;
        pace = plugin.pace;
        tables = plugin.tables;
        mostLooks = TimeUnit.SECONDS.toMillis(plugin.options.hungSeconds) / LOOK_MILLIS;
        this.controller = controller;
        this.progress = progress;
        this.outputs = outputs;
        this.using = using;
        keys = new KeysAhead(progress.inputs());
    }

    /** Returns when the task has ended: its files are not written any more, whether it succeeds or fails. */
    Result run(byte[] task) throws IOException
    {
        boolean ended = false;
        try
        {
            conversation.send(Frame.TASK, task);
            while (true)
            {
                Frame frame = next();
                if (frame == null)
                {
                    giveUpIfHung();
                    continue;
                }
                looks = 0;
                ended = frame.kind == Frame.DONE || frame.kind == Frame.FAILED;
                if (frame.kind == Frame.DONE)
                    return done(frame);
                if (frame.kind == Frame.FAILED)
                    throw failed(frame);
                answer(frame);
            }
        }
        catch (BufferUnderflowException | IndexOutOfBoundsException e)
        {
            throw new Failed("Protocol", "the service sent a message that ends too early");
        }
        finally
        {
            keys.close();
            if (!ended)
                conversation.kill();
        }
    }

    private Result done(Frame frame) throws IOException
    {
        if (progress.isStopRequested())
            throw new CompactionInterruptedException(progress.getCompactionInfo());
        conversation.succeeded();
        return new Result(frame);
    }

    private RuntimeException failed(Frame frame) throws IOException
    {
        byte kind = frame.body.get();
        String path = frame.text();
        String message = frame.text();
        if (kind == STOPPED || stopping)
            throw new CompactionInterruptedException(progress.getCompactionInfo());
        if (kind == DISK_FULL)
            throw new FSDiskFullWriteError(progress.getCompactionInfo().getKeyspace().orElse(""), 0);
        throw new Failed(Failed.code(kind), path.isEmpty() || message.contains(path) ? message : path + ": " + message);
    }

    /** The next message; null if there was none for a moment. */
    private Frame next() throws IOException
    {
        stopIfAsked();
        try
        {
            return conversation.poll(LOOK_MILLIS);
        }
        catch (InterruptedException e)
        {
            progress.stop();
            return null;
        }
    }

    /**
     * A task that asks or ticks has its answer before the next look, however late we give it: so the service has received the task, and
     * says something of it now and then. Pings do not tell: another thread answers them.
     */
    private void giveUpIfHung() throws IOException
    {
        looks++;
        if (!stopping && looks >= mostLooks && !conversation.isHeldUp())
            throw new Failed("Hung", "the service lives, but has forgotten the compaction, and is killed: it said nothing of it for "
                                  + TimeUnit.MILLISECONDS.toSeconds(looks * LOOK_MILLIS) + " s");
    }

    private void stopIfAsked() throws IOException
    {
        if (!stopping && progress.isStopRequested())
        {
            stopping = true;
            stopBy = System.nanoTime() + STOP_NANOS;
            conversation.send(Frame.STOP, NOTHING);
        }
        if (stopping && System.nanoTime() - stopBy > 0)
        {
            conversation.kill();
            throw new CompactionInterruptedException(progress.getCompactionInfo());
        }
    }

    private void answer(Frame frame) throws IOException
    {
        if (stopping)
            return;
        switch (frame.kind)
        {
            case Frame.ASK_BOUND:
                conversation.send(Frame.BOUNDS, bounds(frame));
                break;
            case Frame.ASK_OUTPUT:
                ByteArrayOutputStream bytes = new ByteArrayOutputStream();
                String path = outputs.next(frame.body.getLong(), progress);
                Frame.putText(new DataOutputStream(bytes), path);
                conversation.send(Frame.GRANTED, bytes.toByteArray());
                break;
            case Frame.TICK:
                tick(frame);
                break;
            default:
                throw new Failed("Protocol", "the service sent a message of kind " + frame.kind);
        }
    }

    private void tick(Frame frame) throws IOException
    {
        long stored = frame.body.getLong();
        progress.read(frame.body.getLong());
        // Of all, written, partitions.
        for (int skipped = 0; skipped < 3; skipped++)
            frame.body.getLong();
        using.tick(frame.body.getLong(), frame.body.getLong());
        throttle(stored);
        if (System.nanoTime() - refreshed > REFRESH_NANOS)
        {
            controller.maybeRefreshOverlaps();
            refreshed = System.nanoTime();
        }
        if (!stopping)
            conversation.send(Frame.GO_ON, ByteBuffer.allocate(8).putLong(floor()).array());
    }

    /** What no key's bound is below. Most tombstones that are past their grace are older, and need no question of their own. */
    private long floor()
    {
        long began = System.nanoTime();
        long floor = floor(controller, progress.inputs());
        counters.purgeNanos.addAndGet(System.nanoTime() - began);
        return floor;
    }

    private static long floor(CompactionController controller, Set<SSTableReader> inputs)
    {
        ColumnFamilyStore cfs = controller.cfs;
        if (Line.running().neverPurges() || cfs.getNeverPurgeTombstones() || !controller.compactingRepaired())
            return Long.MIN_VALUE;
        long floor = Long.MAX_VALUE;
        // First the memtables: what is flushed meanwhile is in both, not in neither.
        for (Memtable memtable : cfs.getTracker().getView().getAllMemtables())
            if (memtable.getMinTimestamp() != Memtable.NO_MIN_TIMESTAMP)
                floor = Math.min(floor, memtable.getMinTimestamp());
        for (SSTableReader other : cfs.getOverlappingLiveSSTables(inputs))
            floor = Math.min(floor, other.getMinTimestamp());
        return floor;
    }

    /** Takes its share of compaction_throughput, which it has in common with Cassandra's own compactions, of its table's, and of what reads leave. */
    private void throttle(long stored) throws IOException
    {
        take(CompactionManager.instance.getRateLimiter(), stored);
        RateLimiter ofTable = tables.throughput(controller.cfs.keyspace.getName(), controller.cfs.getTableName());
        if (ofTable != null)
            take(ofTable, stored);
        RateLimiter paced = pace.limiter();
        if (paced != null)
            take(paced, stored);
        pace.took(stored);
    }

    private void take(RateLimiter limiter, long stored) throws IOException
    {
        long left = Math.max(0, stored);
        while (left > 0 && !stopping)
        {
            int part = (int) Math.min(left, 1 << 20);
            if (limiter.tryAcquire(part, LOOK_MILLIS, TimeUnit.MILLISECONDS))
                left -= part;
            else
                pause();
        }
    }

    private void pause() throws IOException
    {
        try
        {
            Thread.sleep(LOOK_MILLIS / 2);
        }
        catch (InterruptedException e)
        {
            progress.stop();
        }
        stopIfAsked();
    }

    private byte[] bounds(Frame frame) throws IOException
    {
        long began = System.nanoTime();
        int ahead = frame.body.getInt();
        DecoratedKey key = decorated(frame);
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream answer = new DataOutputStream(bytes);
        answer.writeLong(bound(key));
        List<DecoratedKey> behind = keys.behind(key, ahead);
        answer.writeInt(behind.size());
        for (DecoratedKey next : behind)
        {
            byte[] name = ByteBufferUtil.getArray(next.getKey());
            answer.writeShort(name.length);
            answer.write(name);
            answer.writeLong(bound(next));
        }
        counters.purgeNanos.addAndGet(System.nanoTime() - began);
        return bytes.toByteArray();
    }

    private static DecoratedKey decorated(Frame frame)
    {
        byte[] key = new byte[Short.toUnsignedInt(frame.body.getShort())];
        frame.body.get(key);
        return Murmur3Partitioner.instance.decorateKey(ByteBuffer.wrap(key));
    }

    /** The timestamp below which tombstones of the partition can go. Cassandra's answer is "below x" for an x that it does not tell. */
    private long bound(DecoratedKey key)
    {
        LongPredicate purgeable = controller.getPurgeEvaluator(key);
        if (purgeable.test(Long.MAX_VALUE - 1))
            return Long.MAX_VALUE;
        long yes = Long.MIN_VALUE;
        long no = Long.MAX_VALUE - 1;
        if (!purgeable.test(yes))
            return yes;
        // Mostly the same SSTable or memtable is in the way as of the key before.
        if (lastBound > yes && purgeable.test(lastBound - 1) && !purgeable.test(lastBound))
            return lastBound;
        while (no - yes != 1)
        {
            long middle = (yes & no) + ((yes ^ no) >> 1);
            if (purgeable.test(middle))
                yes = middle;
            else
                no = middle;
        }
        lastBound = no;
        return no;
    }
}
