package halcyon.cassandra;

import java.io.IOException;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** A compaction that was handed over has failed, and Cassandra's own task is to do it: a word for metrics, and a text for people. */
public final class Failed extends IOException
{
    private static final long serialVersionUID = 1;

    /** A kind of the protocol's that counts as stopped. */
    private static final String STOPPED = "Stopped";
    /** By the protocol's kinds of failure. */
    private static final List<String> CODES = List.of("Other", STOPPED, "DamagedInput", "DiskFull", "Task", "DamagedOutput");
    /** What this side finds. */
    private static final List<String> FOUND_HERE = List.of("ServiceEnded", "Hung", "Protocol");

    public final String code;

    public Failed(String code, String message)
    {
        super(message);
        this.code = code;
    }

    /** All, so that each has a metric before it happens. */
    static List<String> codes()
    {
        return Stream.concat(CODES.stream(), FOUND_HERE.stream()).filter(code -> !code.equals(STOPPED)).collect(Collectors.toList());
    }

    /** By a kind of the protocol. */
    public static String code(byte kind)
    {
        return CODES.get(kind > 0 && kind < CODES.size() ? kind : 0);
    }

    /** Of what another exception says there is no more to tell. */
    public static String code(Exception failure)
    {
        return failure instanceof Failed ? ((Failed) failure).code : "Other";
    }
}
