package halcyon.cassandra;

/** What one compaction has had of processors and holds of memory, as its ticks say: in its table's metrics. */
public final class Using implements AutoCloseable
{
    /** Null: it is of no table of the node's. */
    private final Figures table;
    private long cpuMicros;
    private long memoryBytes;

    Using(Figures table)
    {
        this.table = table;
    }

    public static Using ofNoTable()
    {
        return new Using(null);
    }

    /** So far, and now. */
    public void tick(long cpuMicros, long memoryBytes)
    {
        if (table == null)
            return;
        table.cpuMicros.add(cpuMicros - this.cpuMicros);
        table.memoryBytes.add(memoryBytes - this.memoryBytes);
        this.cpuMicros = cpuMicros;
        this.memoryBytes = memoryBytes;
    }

    /** It has ended, and holds nothing. */
    @Override
    public void close()
    {
        tick(cpuMicros, 0);
    }
}
