package org.apache.cassandra.db.compaction;

import java.util.HashSet;
import java.util.Set;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.dht.Murmur3Partitioner.LongToken;
import org.apache.cassandra.dht.Token;
import org.apache.cassandra.io.sstable.format.SSTableReader;

/** The shards of a compaction by UCS. */
final class Shards
{
    private Shards()
    {
    }

    static Split of(ColumnFamilyStore cfs, UnifiedCompactionStrategy strategy, Set<SSTableReader> inputs)
    {
        ShardManager shards = strategy.getShardManager();
        double density = ((Since50) Line.running()).density(shards, inputs);
        int count = strategy.getController().getNumShards(density * shards.shardSetCoverage());
        ShardTracker tracker = shards.boundaries(count);
        Set<Long> tokens = new HashSet<>();
        tracker.advanceTo(new LongToken(Long.MIN_VALUE + 1));
        for (Token end; (end = tracker.shardEnd()) != null && !end.isMinimum() && !Split.isLast(end);)
        {
            tokens.add(Split.after(end));
            tracker.advanceTo(new LongToken(Split.after(end)));
        }
        return Split.at(cfs, tokens);
    }
}
