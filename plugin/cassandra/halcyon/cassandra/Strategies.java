package halcyon.cassandra;

import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The names of Cassandra's strategies, and of ours that are made of them: of each line of releases its own. Names, because {@link Sidecar} runs
 * without Cassandra's classes.
 */
final class Strategies
{
    private static final String PACKAGE = "org.apache.cassandra.db.compaction.";
    private static final List<String> STOCK = List.of("SizeTieredCompactionStrategy", "TimeWindowCompactionStrategy", "LeveledCompactionStrategy",
                                                      "UnifiedCompactionStrategy");
    /** What the names of ours begin with, by the major number of the releases. */
    private static final Map<String, String> OURS = Map.of("4", "Halcyon41", "5", "Halcyon", "6", "Halcyon60");
    private static final String NEWEST = "6";
    private static final Pattern NAME = Pattern.compile(Pattern.quote(PACKAGE) + "Halcyon\\d*(\\D+)");

    private Strategies()
    {
    }

    /** Of one of Cassandra's, in a line of releases or a release of it; null if its tasks are not handed over. */
    static String ours(String stock, String release)
    {
        boolean isKnown = stock.startsWith(PACKAGE) && STOCK.contains(stock.substring(PACKAGE.length()));
        String prefix = OURS.getOrDefault(release.split("\\.")[0], OURS.get(NEWEST));
        return isKnown ? PACKAGE + prefix + stock.substring(PACKAGE.length()) : null;
    }

    /** Of one of ours; null for another class. */
    static String stock(String ours)
    {
        Matcher matcher = NAME.matcher(ours);
        return matcher.matches() && STOCK.contains(matcher.group(1)) ? PACKAGE + matcher.group(1) : null;
    }
}
