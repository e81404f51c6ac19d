package org.apache.cassandra.cql3.functions.types;

/** A value of a tuple type. */
public final class TupleValue extends AbstractData<TupleValue> {
    public TupleValue(DataType type) {
        super(type);
    }

    @Override
    int index(String name) {
        throw new IllegalArgumentException(name + " is not a field defined in this tuple");
    }

    @Override
    public String toString() {
        return type.format(this);
    }
}
