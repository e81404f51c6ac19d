package halcyon.cassandra;

import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What was done, and why what was not. */
public final class Counters
{
    private static final Logger logger = LoggerFactory.getLogger(Counters.class);
    private static final int MOST_MESSAGES = 50;
    private static final String HANDED_BACK = "HandedBackBy", FAILURES = "FailuresBy";

    public volatile boolean enabled;
    public final AtomicLong purgeNanos = new AtomicLong();
    final Figures node = Figures.ofNode();

    private final Options options;
    private final Map<String, Long> reasons = new ConcurrentHashMap<>();
    private final Map<String, Boolean> told = new ConcurrentHashMap<>();
    private final Map<String, Long> messages = new ConcurrentHashMap<>();
    private final Map<String, OfTable> byTable = new ConcurrentHashMap<>();

    private static final class OfTable
    {
        final Figures figures;
        int failuresInARow;
        long lastFailure;

        OfTable(String keyspace, String table)
        {
            figures = Figures.ofTable(keyspace, table);
        }
    }

    Counters(Options options)
    {
        this.options = options;
        enabled = options.enabled;
        Failed.codes().forEach(code -> node.counter(FAILURES, code));
        Reason.GRAVE.forEach(code -> node.counter(HANDED_BACK, code));
    }

    private OfTable of(String name)
    {
        int dot = name.indexOf('.');
        return byTable.computeIfAbsent(name, key -> new OfTable(name.substring(0, dot), name.substring(dot + 1)));
    }

    /** A compaction stays Cassandra's. The reason is logged once for each table, or once at all if it holds for all of them. */
    public void stays(String table, Reason reason)
    {
        reasons.merge(reason.text, 1L, Long::sum);
        node.handedBack.inc();
        node.counter(HANDED_BACK, reason.code).inc();
        of(table).figures.handedBack.inc();
        String who = reason.isOfNode ? "" : " of " + table;
        if (told.putIfAbsent(who + ' ' + reason, true) == null)
            logger.info("Halcyon: compactions{} stay Cassandra's: {}", who, reason);
    }

    /** For one compaction of the table. */
    public Using using(String table)
    {
        return new Using(of(table).figures);
    }

    public void done(String table, long bytesRead, long bytesWritten, long nanos)
    {
        OfTable one = of(table);
        for (Figures figures : new Figures[]{ node, one.figures })
        {
            figures.completed.inc();
            figures.bytesRead.inc(bytesRead);
            figures.bytesWritten.inc(bytesWritten);
            figures.millis.inc(TimeUnit.NANOSECONDS.toMillis(nanos));
        }
        synchronized (one)
        {
            one.failuresInARow = 0;
        }
    }

    public void stopped(String table)
    {
        node.stopped.inc();
        of(table).figures.stopped.inc();
    }

    /** Cassandra's task takes over. */
    public void failed(String table, String code, String message)
    {
        node.failed.inc();
        node.counter(FAILURES, code).inc();
        if (messages.size() < MOST_MESSAGES || messages.containsKey(message))
            messages.merge(message, 1L, Long::sum);
        OfTable one = of(table);
        one.figures.failed.inc();
        synchronized (one)
        {
            one.failuresInARow++;
            one.lastFailure = System.nanoTime();
            logger.warn("Halcyon: a compaction of {} failed and is done by Cassandra's own task ({} in a row): {}",
                        table, one.failuresInARow, message);
            if (one.failuresInARow == options.failures)
                logger.warn("Halcyon: compactions of {} stay Cassandra's for {} minutes", table, options.retryMinutes);
        }
    }

    public boolean isGivenUp(String table)
    {
        OfTable one = byTable.get(table);
        if (one == null)
            return false;
        synchronized (one)
        {
            long since = System.nanoTime() - one.lastFailure;
            return one.failuresInARow >= options.failures && since < TimeUnit.MINUTES.toNanos(options.retryMinutes);
        }
    }

    void forgetFailures()
    {
        for (OfTable one : byTable.values())
            synchronized (one)
            {
                one.failuresInARow = 0;
            }
    }

    /** The table was dropped. */
    void forget(String table)
    {
        OfTable one = byTable.remove(table);
        if (one != null)
            one.figures.remove();
    }

    Map<String, Long> reasons()
    {
        return new TreeMap<>(reasons);
    }

    Map<String, Long> failures()
    {
        return new TreeMap<>(messages);
    }
}
