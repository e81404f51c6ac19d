package halcyon.cassandra;

/** Whether compactions run at idle priority of the processor; in the order of the protocol's numbers. */
public enum Idle
{
    NEVER,
    ALWAYS,
    /** As long as that leaves them a share. */
    WITH_A_SHARE;

    static Idle of(String given)
    {
        switch (given)
        {
            case "false":
                return NEVER;
            case "true":
                return ALWAYS;
            case "auto":
                return WITH_A_SHARE;
            default:
                throw new IllegalArgumentException("halcyon.idle is auto, true or false, not " + given);
        }
    }
}
