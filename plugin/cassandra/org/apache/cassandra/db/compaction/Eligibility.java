package org.apache.cassandra.db.compaction;

import java.lang.reflect.Field;
import java.util.Set;

import halcyon.cassandra.Plugin;
import org.apache.cassandra.config.Config.CorruptedTombstoneStrategy;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.index.Index;
import org.apache.cassandra.index.sai.StorageAttachedIndex;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.io.sstable.format.Version;
import org.apache.cassandra.schema.ColumnMetadata;
import org.apache.cassandra.schema.CompactionParams.TombstoneOption;
import org.apache.cassandra.schema.CompressionParams;
import org.apache.cassandra.schema.TableMetadata;

/** What stays with Cassandra's own task, and why. */
final class Eligibility
{
    private static final Field WITHOUT_GRACE = keysWithoutGrace();
    private static final String MARSHAL = "org.apache.cassandra.db.marshal.";
    private static final Set<String> READ = Set.of("big-ma", "big-mb", "big-mc", "big-md", "big-me", "big-na", "big-nb", "big-oa", "bti-da");
    private static final Set<String> WRITTEN = Set.of("big-nb", "big-oa", "bti-da");
    private static final Set<String> COMPRESSORS = Set.of("LZ4Compressor", "SnappyCompressor", "DeflateCompressor", "ZstdCompressor");
    private static final Set<String> TYPES = Set.of(
        "AsciiType", "BooleanType", "ByteType", "BytesType", "CounterColumnType", "CompositeType", "DecimalType", "DoubleType", "DurationType",
        "EmptyType", "FloatType", "FrozenType", "InetAddressType", "Int32Type", "IntegerType", "ListType", "LongType", "MapType",
        "ReversedType", "SetType", "ShortType", "SimpleDateType", "TimeType", "TimeUUIDType", "TimestampType", "TupleType", "UTF8Type",
        "UUIDType", "UserType", "VectorType");

    /** Null: the task can be handed over. */
    static String reason(Plugin plugin, ColumnFamilyStore cfs, CompactionTask task)
    {
        if (!plugin.counters.enabled)
            return "switched off";
        if (!plugin.service.isThere())
            return plugin.options.binary + " is not an executable file";
        if (plugin.service.isPaused())
            return "the service has ended, and is not started again yet";
        if (plugin.counters.isGivenUp(name(cfs)))
            return "too many failures in a row";
        if (task.transaction.isOffline() || task.keepOriginals)
            return "it is a tool's";
        if (DatabaseDescriptor.isSnapshotBeforeCompaction())
            return "snapshot_before_compaction";
        if (DatabaseDescriptor.getCorruptedTombstoneStrategy() != CorruptedTombstoneStrategy.disabled)
            return "corrupted_tombstone_strategy";
        String table = ofTable(cfs);
        return table != null ? table : ofFiles(cfs, task.transaction.originals());
    }

    static String name(ColumnFamilyStore cfs)
    {
        return cfs.getKeyspaceName() + '.' + cfs.getTableName();
    }

    private static String ofTable(ColumnFamilyStore cfs)
    {
        TableMetadata table = cfs.metadata();
        if (!(table.partitioner instanceof Murmur3Partitioner))
            return "its partitioner";
        if (table.isCompactTable())
            return "compact storage";
        if (!ignoresNoGrace(cfs))
            return "nodetool forcecompact";
        if (cfs.isRowCacheEnabled())
            return "its row cache";
        if (cfs.getCompactionStrategyManager().getCompactionParams().tombstoneOption() != TombstoneOption.NONE)
            return "provide_overlapping_tombstones";
        for (Index index : cfs.indexManager.listIndexes())
            if (!(index instanceof StorageAttachedIndex))
                return "an index that is not SAI";
        for (ColumnMetadata column : table.columns())
            if (!isKnown(column.type.toString()))
                return "the type of column " + column.name;
        CompressionParams compression = table.params.compression;
        if (compression.isEnabled() && !COMPRESSORS.contains(compression.klass().getSimpleName()))
            return "its compressor";
        return null;
    }

    /** Whether no keys are named whose tombstones go before their grace is over. Without the field nothing is handed over. */
    private static boolean ignoresNoGrace(ColumnFamilyStore cfs)
    {
        try
        {
            return WITHOUT_GRACE != null && ((Set<?>) WITHOUT_GRACE.get(cfs)).isEmpty();
        }
        catch (IllegalAccessException e)
        {
            throw new IllegalStateException(e);
        }
    }

    private static Field keysWithoutGrace()
    {
        try
        {
            Field field = ColumnFamilyStore.class.getDeclaredField("partitionKeySetIgnoreGcGrace");
            field.setAccessible(true);
            return field;
        }
        catch (ReflectiveOperationException | RuntimeException e)
        {
            return null;
        }
    }

    private static String ofFiles(ColumnFamilyStore cfs, Set<SSTableReader> inputs)
    {
        String written = name(DatabaseDescriptor.getSelectedSSTableFormat().getLatestVersion());
        if (!WRITTEN.contains(written))
            return "version " + written;
        for (SSTableReader input : inputs)
        {
            String version = name(input.descriptor.version);
            if (!READ.contains(version))
                return "an input of version " + version;
            // Expirations after 2038 have no room in what is written.
            if (written.equals("big-nb") && (version.equals("big-oa") || version.equals("bti-da")))
                return "an input of a version that is newer than what is written";
        }
        return null;
    }

    private static String name(Version version)
    {
        return version.format.name() + '-' + version.version;
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
