package org.apache.cassandra.cql3.functions.types;

/** A value of a user type. */
public final class UDTValue extends AbstractData<UDTValue> {
    public UDTValue(DataType type) {
        super(type);
    }

    @Override
    int index(String name) {
        boolean quoted = name.length() > 1 && name.startsWith("\"") && name.endsWith("\"");
        String wanted = quoted ? name.substring(1, name.length() - 1) : name;
        int found = type.names().indexOf(wanted);
        for (int i = 0; found < 0 && !quoted && i < type.names().size(); i++)
            if (type.names().get(i).equalsIgnoreCase(wanted))
                found = i;
        if (found < 0)
            throw new IllegalArgumentException(name + " is not a field defined in this UDT");
        return found;
    }

    @Override
    public String toString() {
        return type.format(this);
    }
}
