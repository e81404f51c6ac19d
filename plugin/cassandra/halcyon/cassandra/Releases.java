package halcyon.cassandra;

import java.io.IOException;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.apache.cassandra.db.compaction.Line;

/** The releases of Cassandra that this jar runs on: those that it was tested with, and each other that has what a line of it touches. */
final class Releases
{
    private static final List<String> TESTED = List.of("4.1.10", "5.0.0", "5.0.1", "5.0.2", "5.0.3", "5.0.4", "5.0.5", "5.0.6", "5.0.7", "5.0.8", "5.0.9",
                                                        "6.0-alpha2");
    /** The first that a line is for. */
    private static final String OLDEST = "4.1";

    private Releases()
    {
    }

    static boolean isTested(String release)
    {
        return TESTED.contains(release);
    }

    /** Without its classes, as by JMX: whether there is no use in looking at them. */
    static boolean isTooOld(String release)
    {
        int[] found = numbers(release);
        int[] oldest = numbers(OLDEST);
        return found[0] < oldest[0] || found[0] == oldest[0] && found[1] < oldest[1];
    }

    /** Major and minor; of what has none, so high that it is looked at. */
    private static int[] numbers(String release)
    {
        Matcher matcher = Pattern.compile("(\\d+)\\.(\\d+).*").matcher(release);
        if (!matcher.matches())
            return new int[]{ Integer.MAX_VALUE, 0 };
        return new int[]{ Integer.parseInt(matcher.group(1)), Integer.parseInt(matcher.group(2)) };
    }

    /** What the line that comes nearest does not find here. Nothing: it fits, and is chosen. */
    static Set<String> missing() throws IOException
    {
        Set<String> fewest = null;
        for (Linkage line : Linkage.ofLines(Options.ownJar(), Releases.class.getClassLoader()))
        {
            Set<String> missing = line.missing();
            if (missing.isEmpty())
            {
                Line.choose(line.name);
                return missing;
            }
            if (fewest == null || missing.size() < fewest.size())
                fewest = missing;
        }
        return fewest;
    }

    /** Null if the jar runs here. */
    static String refusal(String release) throws IOException
    {
        Set<String> missing = missing();
        return missing.isEmpty() ? null : "this jar does not fit Cassandra " + release + ", which lacks " + String.join("; ", missing);
    }
}
