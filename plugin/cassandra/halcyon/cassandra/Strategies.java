package halcyon.cassandra;

import java.util.List;

/** The names of Cassandra's strategies, and of ours that are made of them. Names, because {@link Sidecar} runs without Cassandra's classes. */
final class Strategies
{
    private static final String PACKAGE = "org.apache.cassandra.db.compaction.";
    private static final String OURS = PACKAGE + "Halcyon";
    private static final List<String> STOCK = List.of("SizeTieredCompactionStrategy", "TimeWindowCompactionStrategy", "LeveledCompactionStrategy",
                                                      "UnifiedCompactionStrategy");

    private Strategies()
    {
    }

    /** Of one of Cassandra's; null if its tasks are not handed over. */
    static String ours(String stock)
    {
        boolean isKnown = stock.startsWith(PACKAGE) && STOCK.contains(stock.substring(PACKAGE.length()));
        return isKnown ? OURS + stock.substring(PACKAGE.length()) : null;
    }

    /** Of one of ours; null for another class. */
    static String stock(String ours)
    {
        boolean isOurs = ours.startsWith(OURS) && STOCK.contains(ours.substring(OURS.length()));
        return isOurs ? PACKAGE + ours.substring(OURS.length()) : null;
    }
}
