package halcyon.cassandra;

import java.io.IOException;
import java.util.List;
import java.util.Set;

/** The releases of Cassandra that this jar runs on: those that it was tested with, and each other that has what it touches. */
final class Releases
{
    private static final List<String> TESTED = List.of("5.0.0", "5.0.1", "5.0.2", "5.0.3", "5.0.4", "5.0.5", "5.0.6", "5.0.7", "5.0.8", "5.0.9");
    /** The first with the interface that the strategies have. */
    private static final int OLDEST = 5;

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
        String major = release.split("\\.")[0];
        return major.chars().allMatch(Character::isDigit) && !major.isEmpty() && Integer.parseInt(major) < OLDEST;
    }

    /** Null if the jar runs here. */
    static String refusal(String release) throws IOException
    {
        Set<String> missing = Linkage.missing(Options.ownJar(), Releases.class.getClassLoader());
        return missing.isEmpty() ? null : "this jar does not fit Cassandra " + release + ", which lacks " + String.join("; ", missing);
    }
}
