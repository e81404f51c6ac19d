package halcyon.cassandra;

import java.util.Collections;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.IntSupplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import com.codahale.metrics.Timer;
import com.google.common.util.concurrent.RateLimiter;
import org.apache.cassandra.config.DurationSpec;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.compaction.CompactionManager;
import org.apache.cassandra.metrics.ClientRequestsMetricsHolder;
import org.apache.cassandra.metrics.TableMetrics;
import org.apache.cassandra.utils.EstimatedHistogram;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Holds the p99 of this node's reads at a target, while compaction takes what they leave.
 *
 * <p>1. Twice a second it looks at the reads since then, as Cassandra's metrics count them: those that this node coordinated, and those of
 * its own data, and of each table that has a target of its own. The worst counts. 2. If more than one in a hundred took longer than the target, the rate falls to a part of what
 * compaction took. If half of that many did, it stays; else it grows, slowly. 3. It does not grow while it is not used. Few reads are
 * gathered, and one slow one among them is forgiven. Without reads, nothing limits it. 4. The rate has a floor, which rises with the
 * compactions that wait: a node that falls behind reads more for each query.
 *
 * <p>These are the rules of Halcyon's own node (crates/io/src/pacing/latency.rs), where reads are looked at more often and in finer buckets:
 * Cassandra's differ by a fifth, and to read them costs the more the more tables there are.
 */
public final class Pace
{
    private static final Logger logger = LoggerFactory.getLogger(Pace.class);
    private static final long LOOK_MILLIS = 500;
    /** From this number of reads on, one slow read is not an accident; samples after which a decision is made with fewer. */
    private static final long ENOUGH_READS = 100;
    private static final int SAMPLES_MAX = 4;
    private static final double FLOOR = 1 << 20, START = 64 << 20, CEILING = 8L << 30, STEP_MIN = 2 << 20;
    private static final double GROWTH = 1.0 / 8, DECREASE = 0.8, DECREASE_MUCH = 0.5, MUCH = 4;
    /** Compactions that wait, from which on reads are not spared. */
    private static final double BEHIND = 64;

    private final List<Reads> ofNode;
    /** By table and its id. */
    private final Map<String, Reads> ofTables = new TreeMap<>();
    private final TableOptions tables;
    private final IntSupplier waiting;
    private final AtomicLong taken = new AtomicLong();
    private volatile RateLimiter limiter;
    private volatile String target = "off";
    private volatile String shown = "off";
    private long targetMicros;
    private double rate;
    private long gatheredBytes;
    private long gatheredNanos;
    private int samples;

    Pace(String target, TableOptions tables)
    {
        this.tables = tables;
        ofNode = List.of(new Reads("", ClientRequestsMetricsHolder.readMetrics.latency), new Reads("", TableMetrics.GLOBAL_READ_LATENCY.latency));
        waiting = CompactionManager.instance.getMetrics().pendingTasks::getValue;
        set(target);
        Thread thread = new Thread(this::run, "halcyon-pace");
        thread.setDaemon(true);
        thread.start();
    }

    /** `off`, or a duration in the words of cassandra.yaml. */
    static long micros(String target)
    {
        if (target.equals("off"))
            return 0;
        long micros;
        try
        {
            micros = TimeUnit.NANOSECONDS.toMicros(new DurationSpec.LongNanosecondsBound(target).toNanoseconds());
        }
        catch (RuntimeException e)
        {
            micros = 0;
        }
        if (micros == 0)
            throw new IllegalArgumentException("halcyon.latency_target is off or a duration like 10ms or 500us, not " + target);
        return micros;
    }

    synchronized void set(String target)
    {
        targetMicros = micros(target);
        this.target = target;
        ofNode.forEach(some -> some.aim(targetMicros));
        restart();
    }

    private void restart()
    {
        rate = START;
        watched().forEach(Reads::look);
        forget();
        limiter = watched().isEmpty() ? null : RateLimiter.create(rate);
        shown = limiter == null ? "off" : "starts";
    }

    /** What has a target. */
    private List<Reads> watched()
    {
        return Stream.concat(ofNode.stream(), ofTables.values().stream()).filter(some -> some.micros > 0).collect(Collectors.toList());
    }

    /** Tables that have a target now. */
    private void follow()
    {
        boolean wasOff = watched().isEmpty();
        Set<String> seen = new HashSet<>();
        for (ColumnFamilyStore cfs : tables.have(TableOptions.LATENCY_TARGET) ? ColumnFamilyStore.all() : List.<ColumnFamilyStore>of())
        {
            String own = tables.of(cfs.keyspace.getName(), cfs.getTableName(), TableOptions.LATENCY_TARGET);
            if (own == null)
                continue;
            String name = cfs.keyspace.getName() + '.' + cfs.getTableName();
            String key = name + ' ' + cfs.metadata().id;
            seen.add(key);
            ofTables.computeIfAbsent(key, absent -> new Reads(" of " + name, cfs.metric.readLatency.latency)).aim(micros(own));
        }
        ofTables.keySet().retainAll(seen);
        if (wasOff != watched().isEmpty())
            restart();
    }

    String target()
    {
        return target;
    }

    /** The rate and its reason, for an operator. */
    String shown()
    {
        return shown;
    }

    synchronized long targetMicros()
    {
        return targetMicros;
    }

    /** Bytes of inputs in a second; null without a target. */
    synchronized Long rate()
    {
        return limiter == null ? null : (long) rate;
    }

    /** What stored bytes of inputs wait for; null without a target. */
    public RateLimiter limiter()
    {
        return limiter;
    }

    public void took(long bytes)
    {
        taken.addAndGet(bytes);
    }

    private void run()
    {
        long before = System.nanoTime();
        while (true)
        {
            try
            {
                Thread.sleep(LOOK_MILLIS);
                long now = System.nanoTime();
                look(now - before);
                before = now;
            }
            catch (InterruptedException e)
            {
                Thread.currentThread().interrupt();
                return;
            }
            catch (RuntimeException e)
            {
                logger.debug("Halcyon: the latency of reads is not known", e);
            }
        }
    }

    private synchronized void look(long nanos)
    {
        follow();
        gatheredBytes += taken.getAndSet(0);
        gatheredNanos += nanos;
        if (limiter == null)
        {
            forget();
            return;
        }
        samples++;
        List<Reads> reads = watched();
        reads.forEach(Reads::add);
        long most = reads.stream().mapToLong(some -> some.all).max().orElse(0);
        if (most > 0 && most < ENOUGH_READS && samples < SAMPLES_MAX)
            return;
        decide(reads, gatheredBytes / (gatheredNanos / 1e9), Math.max(FLOOR, START * waiting.getAsInt() / BEHIND));
        forget();
    }

    private void decide(List<Reads> reads, double used, double floor)
    {
        Reads worst = Collections.max(reads, Comparator.comparingDouble(Reads::excess));
        double excess = worst.excess();
        if (excess > 1)
            rate = (used > FLOOR ? Math.min(used, rate) : rate) * (excess > MUCH ? DECREASE_MUCH : DECREASE);
        else if (excess <= 0.5 && used >= rate / 2)
            rate += Math.max(STEP_MIN, rate * GROWTH);
        rate = floor >= START ? CEILING : Math.min(CEILING, Math.max(floor, rate));
        limiter.setRate(rate);
        shown = String.format("%d MiB/s: %d of %d reads%s took longer than %d us", (long) rate >> 20, worst.slow, worst.all, worst.whose, worst.micros);
    }

    private void forget()
    {
        gatheredBytes = 0;
        gatheredNanos = 0;
        samples = 0;
        watched().forEach(Reads::forget);
    }

    /** What one of Cassandra's histograms got since it was looked at; its buckets only grow. */
    private static final class Reads
    {
        final String whose;
        long micros;
        private final Timer timer;
        private long[] before;
        private long[] limits = {};
        long all;
        long slow;

        Reads(String whose, Timer timer)
        {
            this.whose = whose;
            this.timer = timer;
            look();
        }

        /** 0: no target. */
        void aim(long micros)
        {
            this.micros = micros;
        }

        long[] look()
        {
            long[] last = before;
            before = timer.getSnapshot().getValues();
            return last;
        }

        void add()
        {
            long[] last = look();
            if (limits.length != before.length)
                limits = EstimatedHistogram.newOffsets(before.length, false);
            for (int i = 0; i < before.length; i++)
            {
                // A table that was dropped takes its reads away.
                long since = Math.max(0, before[i] - (i < last.length ? last[i] : 0));
                all += since;
                if (i > 0 && limits[i - 1] >= micros)
                    slow += since;
            }
        }

        /** Above 1: more than one in a hundred is slow, and more than one. */
        double excess()
        {
            return slow / Math.max(1, all / 100.0);
        }

        void forget()
        {
            all = 0;
            slow = 0;
        }
    }
}
