package org.apache.cassandra.db.compaction;

import java.util.Set;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.dht.AbstractBounds;
import org.apache.cassandra.dht.Token;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.SSTable;
import org.apache.cassandra.io.sstable.format.SSTableFormat.Components;

/** Names an SSTable that is yet to be written. */
final class Placeholder extends SSTable
{
    private Placeholder(Builder<?, ?> builder, Owner owner)
    {
        super(builder, owner);
    }

    static Placeholder of(Descriptor descriptor, ColumnFamilyStore cfs)
    {
        Naming naming = new Naming(descriptor);
        naming.setComponents(Set.of(Components.DATA)).setTableMetadataRef(cfs.metadata);
        return new Placeholder(naming, cfs);
    }

    @Override
    public DecoratedKey getFirst()
    {
        throw new UnsupportedOperationException();
    }

    @Override
    public DecoratedKey getLast()
    {
        throw new UnsupportedOperationException();
    }

    @Override
    public AbstractBounds<Token> getBounds()
    {
        throw new UnsupportedOperationException();
    }

    private static final class Naming extends SSTable.Builder<Placeholder, Naming>
    {
        Naming(Descriptor descriptor)
        {
            super(descriptor);
        }
    }
}
