package org.apache.cassandra.db.compaction;

import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

import com.codahale.metrics.Metric;

import halcyon.cassandra.Plugin;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Directories;
import org.apache.cassandra.db.Keyspace;
import org.apache.cassandra.db.lifecycle.ILifecycleTransaction;
import org.apache.cassandra.db.lifecycle.LifecycleTransaction;
import org.apache.cassandra.index.Index;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.ISSTableScanner;
import org.apache.cassandra.io.sstable.SSTable;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.io.sstable.format.Version;
import org.apache.cassandra.io.util.File;
import org.apache.cassandra.metrics.CassandraMetricsRegistry;
import org.apache.cassandra.metrics.CassandraMetricsRegistry.MetricName;
import org.apache.cassandra.schema.SchemaChangeListener;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.utils.TimeUUID;

/**
 * What differs between lines of releases. A line is a folder of plugin/lines, compiled against a release of its own: its adapter, {@code
 * LineNN}, and its subclasses of Cassandra's strategies and tasks. All other classes of the jar link to what all lines have.
 *
 * <p>The line that runs is the one all of whose classes fit the running Cassandra, not the one of its number.
 */
public abstract class Line
{
    private static volatile Line running;

    /** By its name: 5.0. */
    public static Line of(String name)
    {
        try
        {
            Class<?> adapter = Class.forName(Line.class.getName() + name.replace(".", ""));
            return (Line) adapter.getDeclaredConstructor().newInstance();
        }
        catch (ReflectiveOperationException e)
        {
            throw new IllegalStateException(e);
        }
    }

    public static void choose(String name)
    {
        running = of(name);
    }

    /** Null before the plug-in starts. */
    public static Line running()
    {
        return running;
    }

    /**
     * Options of a strategy that are not understood: those that Cassandra's does not, and, as one more, why this node cannot hand
     * compactions over. An exception would lose its message on the way to who sets the strategy.
     */
    static Map<String, String> notUnderstood(String line, Map<String, String> byStock)
    {
        String refusal = Plugin.start();
        if (refusal == null && running != null && !running.name().equals(line))
            refusal = "this strategy is for releases like Cassandra " + line + ", and this one is like " + running.name();
        if (refusal == null)
            return byStock;
        Map<String, String> all = new HashMap<>(byStock);
        all.put(refusal, "");
        return all;
    }

    public abstract String name();

    /** What the release has in none of the forms that are known, among what is not linked to. */
    public Set<String> missing()
    {
        return Set.of();
    }

    /** For JMX, beside Cassandra's own. */
    public <T extends Metric> T publish(MetricName name, T metric)
    {
        return CassandraMetricsRegistry.Metrics.register(name, metric);
    }

    public abstract void listen(SchemaChangeListener listener);

    /** Of a table that no schema has. */
    abstract ColumnFamilyStore store(Keyspace keyspace, TableMetadata table, Directories directories);

    /** Cassandra's own, of a kind that no strategy needs. */
    abstract CompactionTask task(ColumnFamilyStore cfs, LifecycleTransaction transaction, long gcBefore);

    /** Cassandra's own. */
    abstract CompactionIterator merge(List<ISSTableScanner> inputs, CompactionController controller, long now, TimeUUID id);

    abstract CompactionController controller(ColumnFamilyStore cfs, Set<SSTableReader> inputs, long gcBefore);

    abstract boolean neverPurges();

    /** nodetool forcecompact names keys of the table, whose tombstones go before their grace is over. */
    abstract boolean hasKeysWithoutGrace(ColumnFamilyStore cfs);

    abstract ILifecycleTransaction transaction(CompactionTask task);

    abstract TimeUUID id(ILifecycleTransaction transaction);

    abstract long gcBefore(CompactionTask task);

    /** Those that have not expired; those that the disk has no room for are taken out of the transaction. */
    abstract Set<SSTableReader> inputs(CompactionTask task, CompactionController controller);

    abstract CompactionInfo info(TableMetadata table, OperationType type, long read, long total, long stored, TimeUUID id,
                                 Set<SSTableReader> inputs, String directory);

    /** Writes it into the compaction history; says how many partitions were in how many inputs. */
    abstract String record(TimeUUID id, ColumnFamilyStore cfs, OperationType type, long[] merged, long before, long after);

    /** What this node writes. */
    abstract Version written();

    /** `big` or `bti`. */
    abstract String format(Version version);

    /** Bytes of a block of rows; 0: the format's. */
    abstract long columnIndexSize();

    abstract File data(Descriptor sstable);

    /** Names an SSTable that is yet to be written. */
    abstract SSTable placeholder(ColumnFamilyStore cfs, Descriptor descriptor);

    abstract SSTableReader open(ColumnFamilyStore cfs, Descriptor descriptor);

    abstract boolean isAttached(Index index);

    /** Has Cassandra write the files of storage-attached indexes for an output. */
    abstract void index(ColumnFamilyStore cfs, ILifecycleTransaction transaction, SSTableReader output, Progress progress) throws IOException;

    /** What the key cache has of the inputs it gets of the outputs. */
    abstract void carryOver(ColumnFamilyStore cfs, Set<SSTableReader> inputs, List<SSTableReader> outputs, Progress progress) throws IOException;
}
