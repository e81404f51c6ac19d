package halcyon.cassandra;

import java.util.Set;

/** What this jar was compiled against: internals of Cassandra change in patch releases too. */
final class Releases
{
    private static final Set<String> RELEASES = Set.of("5.0.9");

    private Releases()
    {
    }

    /** Null if the jar runs there. */
    static String refusal(String release)
    {
        return RELEASES.contains(release) ? null : "this jar is for Cassandra " + RELEASES + ", not " + release;
    }
}
