package org.apache.cassandra.cql3.functions;

/** What the class that is made of a function's body extends. */
public abstract class JavaUDF {
    protected final UDFContext udfContext;

    protected JavaUDF(UDFContext udfContext) {
        this.udfContext = udfContext;
    }

    public abstract Object executeImpl(Object[] arguments);
}
