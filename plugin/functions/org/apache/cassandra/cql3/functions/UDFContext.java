package org.apache.cassandra.cql3.functions;

import java.util.List;
import org.apache.cassandra.cql3.functions.types.DataType;
import org.apache.cassandra.cql3.functions.types.TupleValue;
import org.apache.cassandra.cql3.functions.types.UDTValue;

/** Makes values of user types and tuples for a function's body. */
public final class UDFContext {
    private final String keyspace;
    private final List<String> names;
    private final List<DataType> arguments;
    private final DataType returns;

    public UDFContext(String keyspace, List<String> names, List<DataType> arguments, DataType returns) {
        this.keyspace = keyspace;
        this.names = names;
        this.arguments = arguments;
        this.returns = returns;
    }

    public UDTValue newArgUDTValue(String argName) {
        return udt(argument(argName));
    }

    public UDTValue newArgUDTValue(int argNum) {
        return udt(argument(argNum));
    }

    public UDTValue newReturnUDTValue() {
        return udt(returns);
    }

    /** Of the types that the function's own types name. */
    public UDTValue newUDTValue(String udtName) {
        for (DataType type : arguments) {
            DataType found = type.find(udtName);
            if (found != null)
                return udt(found);
        }
        DataType found = returns.find(udtName);
        if (found == null)
            throw new IllegalArgumentException("No UDT named " + udtName + " in keyspace " + keyspace);
        return udt(found);
    }

    public TupleValue newArgTupleValue(String argName) {
        return tuple(argument(argName));
    }

    public TupleValue newArgTupleValue(int argNum) {
        return tuple(argument(argNum));
    }

    public TupleValue newReturnTupleValue() {
        return tuple(returns);
    }

    private DataType argument(int index) {
        if (index < 0 || index >= arguments.size())
            throw new IllegalArgumentException("Function does not declare an argument with index " + index);
        return arguments.get(index);
    }

    private DataType argument(String name) {
        int index = names.indexOf(name);
        if (index < 0)
            throw new IllegalArgumentException("Function does not declare an argument named '" + name + "'");
        return arguments.get(index);
    }

    private static UDTValue udt(DataType type) {
        if (!type.isUdt())
            throw new IllegalStateException("Function argument is not a UDT but a " + type.javaName());
        return new UDTValue(type);
    }

    private static TupleValue tuple(DataType type) {
        if (!type.isTuple())
            throw new IllegalStateException("Function argument is not a tuple type but a " + type.javaName());
        return new TupleValue(type);
    }
}
