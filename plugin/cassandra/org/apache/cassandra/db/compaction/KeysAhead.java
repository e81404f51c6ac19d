package org.apache.cassandra.db.compaction;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;

import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.io.sstable.ReducingKeyIterator;
import org.apache.cassandra.io.sstable.format.SSTableReader;

/** The keys of the inputs, in their order, from the first question on: the answer for a key has bounds of the following ones too. */
final class KeysAhead implements AutoCloseable
{
    private static final int MOST = 1024;

    private final Set<SSTableReader> inputs;
    private ReducingKeyIterator keys;
    /** The last that was taken out and not told. */
    private DecoratedKey next;

    KeysAhead(Set<SSTableReader> inputs)
    {
        this.inputs = inputs;
    }

    /** At most `count`; keys are asked for in their order, each once. */
    List<DecoratedKey> behind(DecoratedKey key, int wanted)
    {
        if (keys == null)
            keys = new ReducingKeyIterator(inputs);
        while ((next == null || next.compareTo(key) <= 0) && keys.hasNext())
            next = keys.next();
        List<DecoratedKey> behind = new ArrayList<>();
        while (behind.size() < Math.min(wanted, MOST) && next != null && next.compareTo(key) > 0)
        {
            behind.add(next);
            next = keys.hasNext() ? keys.next() : null;
        }
        return behind;
    }

    @Override
    public void close()
    {
        if (keys != null)
            keys.close();
    }
}
