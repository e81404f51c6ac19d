package org.apache.cassandra.db.compaction;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;

import halcyon.cassandra.Failed;
import halcyon.cassandra.Plugin;
import halcyon.cassandra.Reason;
import halcyon.cassandra.Service;
import halcyon.cassandra.Service.Conversation;
import halcyon.cassandra.Using;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.lifecycle.ILifecycleTransaction;
import org.apache.cassandra.io.FSDiskFullWriteError;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.utils.FBUtilities;
import org.apache.cassandra.utils.Throwables;
import org.apache.cassandra.utils.TimeUUID;
import org.apache.cassandra.utils.concurrent.Refs;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import static org.apache.cassandra.utils.Clock.Global.currentTimeMillis;
import static org.apache.cassandra.utils.Clock.Global.nanoTime;

/**
 * One compaction by Halcyon, in Cassandra's transaction.
 *
 * <ol>
 * <li>What cannot be handed over is done by Cassandra's own task, for a reason that is counted.
 * <li>Inputs are chosen as Cassandra does: without those that have expired, and as many as the disk has room for.
 * <li>The service merges; it asks for names of outputs, each of which the transaction tracks before its first byte, and about purging.
 * <li>Outputs that it has verified are compared with what it says of them, and only then opened: Cassandra's reader would take a damaged
 *     one for a broken disk.
 * <li>One change of the table's view replaces the inputs.
 * </ol>
 * If it fails before the last step, its files are deleted and Cassandra's own task does the work. The inputs are only read.
 */
final class HandOver
{
    private static final Logger logger = LoggerFactory.getLogger(HandOver.class);

    private final ColumnFamilyStore cfs;
    private final CompactionTask stock;
    private final Function<Set<SSTableReader>, Split> split;

    HandOver(ColumnFamilyStore cfs, CompactionTask stock, Function<Set<SSTableReader>, Split> split)
    {
        this.cfs = cfs;
        this.stock = stock;
        this.split = split;
    }

    /** Null: a compaction of these would be handed over, if one was to be done now. */
    static Reason reason(ColumnFamilyStore cfs, Set<SSTableReader> inputs)
    {
        Reason reason = Eligibility.ofNode(Plugin.instance());
        return reason != null ? reason : Eligibility.ofInputs(Plugin.instance(), cfs, inputs);
    }

    /** False: Cassandra's own task is to do it. */
    boolean isDone(ActiveCompactionsTracker active)
    {
        ActiveCompactionsTracker tracker = active == null ? ActiveCompactionsTracker.NOOP : active;
        Plugin plugin = Plugin.instance();
        // Cassandra's start compacts its own tables before the plug-in is there.
        if (plugin == null)
            return false;
        String table = Eligibility.name(cfs);
        Reason reason = Eligibility.ofNode(plugin);
        if (reason == null)
            reason = Eligibility.ofTask(plugin, cfs, stock);
        if (reason == null)
            reason = attempt(plugin, table, tracker);
        if (reason == null)
            return true;
        plugin.counters.stays(table, reason);
        return false;
    }

    /** Null if it is done, else why Cassandra's task is to do it. */
    private Reason attempt(Plugin plugin, String table, ActiveCompactionsTracker active)
    {
        Outputs outputs = new Outputs(cfs, stock);
        try
        {
            return compact(plugin, active, outputs, true) ? null : Reason.EXPIRED;
        }
        catch (CompactionInterruptedException e)
        {
            outputs.release();
            plugin.counters.stopped(table);
            throw e;
        }
        catch (FSDiskFullWriteError e)
        {
            outputs.release();
            plugin.counters.failed(table, "DiskFull", "the disk is full");
            throw e;
        }
        catch (Service.NotStarted e)
        {
            return Reason.ofNode("ServiceDown", e.getMessage());
        }
        catch (NoSpace e)
        {
            throw new RuntimeException(e.getMessage());
        }
        catch (Exception e)
        {
            logger.debug("Halcyon: {}", table, e);
            if (outputs.arePublished())
                throw Throwables.unchecked(e);
            plugin.counters.failed(table, Failed.code(e), String.valueOf(e.getMessage()));
            giveUp(outputs);
            return Reason.FAILED;
        }
    }

    private static void giveUp(Outputs outputs)
    {
        try
        {
            outputs.giveUp();
        }
        catch (IOException e)
        {
            // The transaction is aborted, and deletes what is left; a JMX client knows no classes of ours.
            throw new RuntimeException("Halcyon: an output could not be deleted: " + e);
        }
    }

    /** Cassandra has no room for a compaction; its own task would find none either. */
    private static final class NoSpace extends RuntimeException
    {
        private static final long serialVersionUID = 1;

        NoSpace(RuntimeException cause)
        {
            super(cause.getMessage(), cause);
        }
    }

    /** For {@link SelfTest}: neither counted nor told, and a failure is the caller's. */
    void forItself(Plugin plugin) throws Exception
    {
        Outputs outputs = new Outputs(cfs, stock);
        try
        {
            compact(plugin, ActiveCompactionsTracker.NOOP, outputs, false);
        }
        catch (Exception e)
        {
            outputs.release();
            throw e;
        }
    }

    /** False if nothing is left to merge. */
    private boolean compact(Plugin plugin, ActiveCompactionsTracker active, Outputs outputs, boolean isTold) throws Exception
    {
        try (CompactionController controller = stock.getCompactionController(transaction().originals()))
        {
            Set<SSTableReader> inputs = inputs(controller);
            if (inputs.isEmpty())
                return false;
            long began = nanoTime();
            long beganMillis = currentTimeMillis();
            if (isTold)
                logger.info("Compacting ({}) by Halcyon {}", id(), names(transaction().originals()));
            Result result;
            try (Using using = isTold ? plugin.counters.using(Eligibility.name(cfs)) : Using.ofNoTable())
            {
                result = merge(plugin, active, controller, inputs, outputs, using);
            }
            List<SSTableReader> opened = outputs.publish();
            if (isTold)
                tell(plugin, inputs, result, opened, beganMillis, nanoTime() - began);
        }
        return true;
    }

    private Set<SSTableReader> inputs(CompactionController controller)
    {
        try
        {
            return Line.running().inputs(stock, controller);
        }
        catch (RuntimeException e)
        {
            throw new NoSpace(e);
        }
    }

    private Result merge(Plugin plugin, ActiveCompactionsTracker active, CompactionController controller, Set<SSTableReader> inputs,
                         Outputs outputs, Using using) throws IOException, InterruptedException
    {
        Split where = split.apply(inputs);
        long now = TimeUnit.MILLISECONDS.toSeconds(currentTimeMillis());
        byte[] task = TaskMessage.of(cfs, stock, inputs, transaction().originals(), where, now, plugin.options.verifyRows);
        Progress progress = new Progress(cfs, stock, inputs);
        try (Refs<SSTableReader> refs = Refs.ref(inputs); Conversation conversation = plugin.service.begin())
        {
            active.beginCompaction(progress);
            try
            {
                // A caller that pauses compactions waits for the running ones: this one began before it looked.
                if (!cfs.getCompactionStrategyManager().isActive())
                    throw new CompactionInterruptedException(progress.getCompactionInfo());
                outputs.of(inputs);
                Result result = new Dialogue(conversation, plugin, controller, progress, outputs, using).run(task);
                outputs.open(result.outputs, progress);
                outputs.warm(progress);
                return result;
            }
            finally
            {
                active.finishCompaction(progress);
            }
        }
    }

    private void tell(Plugin plugin, Set<SSTableReader> inputs, Result result, List<SSTableReader> opened, long beganMillis, long nanos)
    {
        long before = inputs.stream().mapToLong(SSTableReader::onDiskLength).sum();
        long after = SSTableReader.getTotalBytes(opened);
        plugin.counters.done(Eligibility.name(cfs), before, after, nanos);
        String merged = Line.running().record(id(), cfs, stock.compactionType, result.merged, before, after);
        logger.info("Compacted ({}) by Halcyon {} sstables to [{}] to level={}. {} to {} in {} ms. Read Throughput = {}. "
                    + "{} partitions written. Partition merge counts were {{}}",
                    id(), transaction().originals().size(), names(opened), stock.getLevel(),
                    FBUtilities.prettyPrintMemory(before), FBUtilities.prettyPrintMemory(after), TimeUnit.NANOSECONDS.toMillis(nanos),
                    FBUtilities.prettyPrintMemoryPerSecond(before, Math.max(1, nanos)), result.partitions, merged);
        cfs.getCompactionStrategyManager().compactionLogger.compaction(beganMillis, transaction().originals(), currentTimeMillis(), opened);
        cfs.metric.compactionBytesWritten.inc(after);
    }

    private ILifecycleTransaction transaction()
    {
        return Line.running().transaction(stock);
    }

    private TimeUUID id()
    {
        return Line.running().id(transaction());
    }

    private static List<String> names(Iterable<SSTableReader> sstables)
    {
        List<String> names = new ArrayList<>();
        sstables.forEach(sstable -> names.add(sstable.getFilename()));
        return names;
    }
}
