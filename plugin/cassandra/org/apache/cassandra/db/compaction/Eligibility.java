package org.apache.cassandra.db.compaction;

import java.util.Set;

import halcyon.cassandra.Plugin;
import halcyon.cassandra.Reason;
import org.apache.cassandra.config.Config.CorruptedTombstoneStrategy;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.lifecycle.ILifecycleTransaction;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.index.Index;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.io.sstable.format.Version;
import org.apache.cassandra.schema.ColumnMetadata;
import org.apache.cassandra.schema.CompactionParams.TombstoneOption;
import org.apache.cassandra.schema.CompressionParams;
import org.apache.cassandra.schema.TableMetadata;

/** What stays with Cassandra's own task, and why. */
final class Eligibility
{
    private static final String MARSHAL = "org.apache.cassandra.db.marshal.";
    private static final Set<String> READ = Set.of("big-ma", "big-mb", "big-mc", "big-md", "big-me", "big-na", "big-nb", "big-oa", "bti-da", "big-pa", "bti-ea");
    private static final Set<String> WITH_LONG_TIMES = Set.of("big-oa", "bti-da", "big-pa", "bti-ea");
    private static final Set<String> WRITTEN = Set.of("big-nb", "big-oa", "bti-da", "big-pa", "bti-ea");
    private static final Set<String> COMPRESSORS = Set.of("LZ4Compressor", "SnappyCompressor", "DeflateCompressor", "ZstdCompressor");
    private static final Set<String> TYPES = Set.of(
        "AsciiType", "BooleanType", "ByteType", "BytesType", "CounterColumnType", "CompositeType", "DecimalType", "DoubleType", "DurationType",
        "EmptyType", "FloatType", "FrozenType", "InetAddressType", "Int32Type", "IntegerType", "ListType", "LongType", "MapType",
        "ReversedType", "SetType", "ShortType", "SimpleDateType", "TimeType", "TimeUUIDType", "TimestampType", "TupleType", "UTF8Type",
        "UUIDType", "UserType", "VectorType");

    /** Null: the node hands tasks over. */
    static Reason ofNode(Plugin plugin)
    {
        if (!plugin.counters.enabled)
            return Reason.ofNode("Disabled", "switched off");
        String problem = plugin.service.problem();
        if (problem != null)
            return Reason.ofNode("NoProgram", problem);
        if (plugin.service.isPaused())
            return Reason.ofNode("ServiceDown", "the service has ended, and is not started again yet");
        if (DatabaseDescriptor.isSnapshotBeforeCompaction())
            return Reason.ofNode("SnapshotBeforeCompaction", "snapshot_before_compaction");
        if (DatabaseDescriptor.getCorruptedTombstoneStrategy() != CorruptedTombstoneStrategy.disabled)
            return Reason.ofNode("CorruptedTombstoneStrategy", "corrupted_tombstone_strategy");
        String written = name(Line.running().written());
        if (!WRITTEN.contains(written))
            return Reason.ofNode("Version", "version " + written);
        return plugin.selfTest();
    }

    /** Null: the task can be handed over. */
    static Reason ofTask(Plugin plugin, ColumnFamilyStore cfs, CompactionTask task)
    {
        ILifecycleTransaction transaction = Line.running().transaction(task);
        if (transaction.isOffline() || task.keepOriginals)
            return new Reason("Tool", "it is a tool's");
        return ofInputs(plugin, cfs, transaction.originals());
    }

    static Reason ofInputs(Plugin plugin, ColumnFamilyStore cfs, Set<SSTableReader> inputs)
    {
        if (plugin.counters.isGivenUp(name(cfs)))
            return new Reason("FailuresInARow", "too many failures in a row");
        Reason table = ofTable(cfs);
        return table != null ? table : ofFiles(inputs);
    }

    static String name(ColumnFamilyStore cfs)
    {
        return cfs.keyspace.getName() + '.' + cfs.getTableName();
    }

    private static Reason ofTable(ColumnFamilyStore cfs)
    {
        TableMetadata table = cfs.metadata();
        if (!(table.partitioner instanceof Murmur3Partitioner))
            return new Reason("Partitioner", "its partitioner");
        if (table.isCompactTable())
            return new Reason("CompactStorage", "compact storage");
        if (Line.running().hasKeysWithoutGrace(cfs))
            return new Reason("ForceCompact", "nodetool forcecompact");
        if (cfs.isRowCacheEnabled())
            return new Reason("RowCache", "its row cache");
        if (cfs.getCompactionStrategyManager().getCompactionParams().tombstoneOption() != TombstoneOption.NONE)
            return new Reason("OverlappingTombstones", "provide_overlapping_tombstones");
        for (Index index : cfs.indexManager.listIndexes())
            if (!Line.running().isAttached(index))
                return new Reason("Index", "an index that is not SAI");
        for (ColumnMetadata column : table.columns())
            if (!isKnown(column.type.toString()))
                return new Reason("Type", "the type of column " + column.name);
        CompressionParams compression = table.params.compression;
        if (compression.isEnabled() && !COMPRESSORS.contains(compression.klass().getSimpleName()))
            return new Reason("Compressor", "its compressor");
        return null;
    }

    private static Reason ofFiles(Set<SSTableReader> inputs)
    {
        String written = name(Line.running().written());
        for (SSTableReader input : inputs)
        {
            String version = name(input.descriptor.version);
            if (!READ.contains(version))
                return new Reason("Version", "an input of version " + version);
            // Expirations after 2038 have no room in what is written.
            if (written.equals("big-nb") && WITH_LONG_TIMES.contains(version))
                return new Reason("Version", "an input of a version that is newer than what is written");
        }
        return null;
    }

    private static String name(Version version)
    {
        return Line.running().format(version) + '-' + version;
    }

    /** The classes that a type's name has, all of them Cassandra's. */
    private static boolean isKnown(String type)
    {
        for (String word : type.split("[^A-Za-z0-9_.]+"))
        {
            int dot = word.lastIndexOf('.');
            if (dot >= 0 && !(word.startsWith(MARSHAL) && TYPES.contains(word.substring(MARSHAL.length()))))
                return false;
        }
        return true;
    }
}
