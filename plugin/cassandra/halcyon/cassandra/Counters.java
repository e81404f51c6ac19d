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

    public volatile boolean enabled;
    public final AtomicLong completed = new AtomicLong();
    public final AtomicLong stopped = new AtomicLong();
    public final AtomicLong failed = new AtomicLong();
    public final AtomicLong bytesRead = new AtomicLong();
    public final AtomicLong bytesWritten = new AtomicLong();
    public final AtomicLong nanos = new AtomicLong();
    public final AtomicLong purgeNanos = new AtomicLong();

    private final Options options;
    private final Map<String, Long> reasons = new ConcurrentHashMap<>();
    private final Map<String, Boolean> told = new ConcurrentHashMap<>();
    private final Map<String, Long> messages = new ConcurrentHashMap<>();
    private final Map<String, Failures> byTable = new ConcurrentHashMap<>();

    private static final class Failures
    {
        int inARow;
        long last;
    }

    Counters(Options options)
    {
        this.options = options;
        enabled = options.enabled;
    }

    /** A compaction stays Cassandra's. Each table's reason is logged once. */
    public void stays(String table, String reason)
    {
        reasons.merge(reason, 1L, Long::sum);
        if (told.putIfAbsent(table + ' ' + reason, true) == null)
            logger.info("Halcyon: compactions of {} stay Cassandra's: {}", table, reason);
    }

    public void done(String table)
    {
        completed.incrementAndGet();
        byTable.remove(table);
    }

    /** Cassandra's task takes over. */
    public void failed(String table, String message)
    {
        failed.incrementAndGet();
        if (messages.size() < MOST_MESSAGES || messages.containsKey(message))
            messages.merge(message, 1L, Long::sum);
        Failures failures = byTable.computeIfAbsent(table, name -> new Failures());
        synchronized (failures)
        {
            failures.inARow++;
            failures.last = System.nanoTime();
            logger.warn("Halcyon: a compaction of {} failed and is done by Cassandra's own task ({} in a row): {}",
                        table, failures.inARow, message);
            if (failures.inARow == options.failures)
                logger.warn("Halcyon: compactions of {} stay Cassandra's for {} minutes", table, options.retryMinutes);
        }
    }

    public boolean isGivenUp(String table)
    {
        Failures failures = byTable.get(table);
        if (failures == null)
            return false;
        synchronized (failures)
        {
            long since = System.nanoTime() - failures.last;
            return failures.inARow >= options.failures && since < TimeUnit.MINUTES.toNanos(options.retryMinutes);
        }
    }

    void forgetFailures()
    {
        byTable.clear();
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
