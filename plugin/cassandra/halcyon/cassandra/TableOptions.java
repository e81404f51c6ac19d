package halcyon.cassandra;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;

import com.google.common.util.concurrent.RateLimiter;

/**
 * What holds for some tables only: {@code PATTERN:NAME=VALUE,NAME=VALUE;PATTERN:…}. Of several patterns that match a table, the last that has
 * the name wins. A client of JMX changes them while compactions run.
 */
public final class TableOptions
{
    static final String LATENCY_TARGET = "latency_target", THROUGHPUT = "throughput_mib", NONE = "none";
    private static final Set<String> NAMES = Set.of(LATENCY_TARGET, THROUGHPUT);
    private static final long MOST_MIB = 1 << 20;

    /** By pattern, in their order; replaced as a whole. */
    private volatile Map<String, Matched> byPattern = Map.of();
    private final Map<String, RateLimiter> limiters = new ConcurrentHashMap<>();

    /** What a pattern matches has these. */
    private static final class Matched
    {
        final Names names;
        final Map<String, String> options;

        Matched(Names names, Map<String, String> options)
        {
            this.names = names;
            this.options = options;
        }
    }

    TableOptions(String given)
    {
        for (String part : given.split(";"))
        {
            if (part.trim().isEmpty())
                continue;
            int colon = part.indexOf(':');
            if (colon < 0)
                throw new IllegalArgumentException("halcyon.tables is PATTERN:NAME=VALUE,…;…, not " + given);
            for (String option : part.substring(colon + 1).split(","))
            {
                String[] words = option.split("=", 2);
                set(part.substring(0, colon).trim(), words[0].trim(), words.length == 2 ? words[1].trim() : "");
            }
        }
    }

    /** The value {@link #NONE} takes it away. */
    synchronized void set(String pattern, String name, String value)
    {
        boolean isSet = !value.equals(NONE);
        if (!NAMES.contains(name))
            throw new IllegalArgumentException("no option of tables: " + name + "; there are " + new TreeSet<>(NAMES));
        if (isSet)
            check(name, value);
        Names names = new Names(pattern);
        if (names.isEmpty())
            throw new IllegalArgumentException("a pattern is keyspace.table or keyspace, with * for any letters, not " + pattern);
        Map<String, Matched> next = new LinkedHashMap<>(byPattern);
        Map<String, String> changed = next.containsKey(pattern) ? new TreeMap<>(next.get(pattern).options) : new TreeMap<>();
        if (isSet)
            changed.put(name, value);
        else
            changed.remove(name);
        if (changed.isEmpty())
            next.remove(pattern);
        else
            next.put(pattern, new Matched(names, changed));
        byPattern = next;
    }

    private static void check(String name, String value)
    {
        if (name.equals(LATENCY_TARGET))
            Pace.micros(value);
        else
            Options.number("tables: " + name, value, 1, MOST_MIB);
    }

    boolean have(String name)
    {
        return byPattern.values().stream().anyMatch(matched -> matched.options.containsKey(name));
    }

    /** Null without one. */
    String of(String keyspace, String table, String name)
    {
        String found = null;
        for (Matched matched : byPattern.values())
        {
            String value = matched.options.get(name);
            if (value != null && matched.names.have(keyspace, table))
                found = value;
        }
        return found;
    }

    /** What all compactions of a table have together of stored bytes of inputs in a second; null: no limit of its own. */
    public RateLimiter throughput(String keyspace, String table)
    {
        String mib = have(THROUGHPUT) ? of(keyspace, table, THROUGHPUT) : null;
        String key = keyspace + '.' + table;
        if (mib == null)
        {
            limiters.remove(key);
            return null;
        }
        double rate = Long.parseLong(mib) << 20;
        RateLimiter limiter = limiters.computeIfAbsent(key, name -> RateLimiter.create(rate));
        if (limiter.getRate() != rate)
            limiter.setRate(rate);
        return limiter;
    }

    Map<String, String> shown()
    {
        Map<String, String> shown = new TreeMap<>();
        byPattern.forEach((pattern, matched) -> matched.options.forEach((name, value) -> shown.put(pattern + ' ' + name, value)));
        return shown;
    }
}
