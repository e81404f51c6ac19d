package halcyon.cassandra;

import java.util.List;

/** Why a compaction stays with Cassandra's own task: a word for metrics, which is one of few, and a text for people. */
public final class Reason
{
    public static final Reason EXPIRED = new Reason("Expired", "all its inputs have expired");
    public static final Reason FAILED = new Reason("Failed", "it failed");

    /** Of those that call for a person: each has a metric before it happens. */
    static final List<String> GRAVE = List.of("NoProgram", "ServiceDown", "SelfTest", "FailuresInARow");

    public final String code;
    public final String text;
    /** It holds for all tables. */
    final boolean isOfNode;

    private Reason(String code, String text, boolean isOfNode)
    {
        this.code = code;
        this.text = text;
        this.isOfNode = isOfNode;
    }

    public Reason(String code, String text)
    {
        this(code, text, false);
    }

    public static Reason ofNode(String code, String text)
    {
        return new Reason(code, text, true);
    }

    @Override
    public String toString()
    {
        return text;
    }
}
