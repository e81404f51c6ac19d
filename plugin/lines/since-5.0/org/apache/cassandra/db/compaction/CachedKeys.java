package org.apache.cassandra.db.compaction;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

import org.apache.cassandra.cache.KeyCacheKey;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.SSTableReadsListener;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.io.sstable.format.big.BigTableReader;
import org.apache.cassandra.io.sstable.format.big.RowIndexEntry;
import org.apache.cassandra.io.util.FileDataInput;
import org.apache.cassandra.service.CacheService;

/**
 * What the key cache has of the inputs, it gets of the outputs before they are live (key_cache_migrate_during_compaction): else each hot key
 * is searched in an index on the disk once more. Where the row begins is read too, for nothing of the outputs is in the page cache.
 *
 * <p>Cassandra asks the cache for each key that it writes. Here the cache's entries are visited instead, for they are fewer, and looked up in
 * the order of the outputs. What takes too long is left.
 */
final class CachedKeys
{
    private static final long MOST_NANOS = TimeUnit.SECONDS.toNanos(10);

    private final Progress progress;
    private final long end = System.nanoTime() + MOST_NANOS;

    private CachedKeys(Progress progress)
    {
        this.progress = progress;
    }

    static void carryOver(ColumnFamilyStore cfs, Set<SSTableReader> inputs, List<SSTableReader> outputs, Progress progress) throws IOException
    {
        if (!DatabaseDescriptor.shouldMigrateKeycacheOnCompaction() || !cfs.metadata().params.caching.cacheKeys())
            return;
        CachedKeys carried = new CachedKeys(progress);
        TreeSet<DecoratedKey> keys = carried.of(cfs, inputs);
        for (SSTableReader output : outputs)
        {
            // A trie has no key cache.
            if (!keys.isEmpty() && output instanceof BigTableReader)
                carried.put((BigTableReader) output, keys);
        }
    }

    private TreeSet<DecoratedKey> of(ColumnFamilyStore cfs, Set<SSTableReader> inputs)
    {
        Set<Descriptor> descriptors = inputs.stream().map(input -> input.descriptor).collect(Collectors.toSet());
        TreeSet<DecoratedKey> keys = new TreeSet<>();
        for (Iterator<KeyCacheKey> all = CacheService.instance.keyCache.keyIterator(); all.hasNext() && goesOn();)
        {
            KeyCacheKey key = all.next();
            if (descriptors.contains(key.desc))
                keys.add(cfs.decorateKey(ByteBuffer.wrap(key.key)));
        }
        return keys;
    }

    private void put(BigTableReader output, TreeSet<DecoratedKey> keys) throws IOException
    {
        for (DecoratedKey key : keys.subSet(output.getFirst(), true, output.getLast(), true))
        {
            if (!goesOn())
                return;
            RowIndexEntry entry = output.getRowIndexEntry(key, SSTableReader.Operator.EQ, false, SSTableReadsListener.NOOP_LISTENER);
            // Its partition may have been purged.
            if (entry == null)
                continue;
            output.cacheKey(key, entry);
            try (FileDataInput data = output.getFileDataInput(entry.position))
            {
                data.readByte();
            }
        }
    }

    private boolean goesOn()
    {
        if (progress.isStopRequested())
            throw new CompactionInterruptedException(progress.getCompactionInfo());
        return System.nanoTime() - end < 0;
    }
}
