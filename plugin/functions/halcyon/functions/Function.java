package halcyon.functions;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.cassandra.cql3.functions.JavaUDF;
import org.apache.cassandra.cql3.functions.UDFContext;
import org.apache.cassandra.cql3.functions.types.DataType;

/** A function that has been compiled. */
final class Function {
    /** Nanoseconds of rows that are folded at once. */
    private static final long SLICE = 100_000_000;

    private final List<DataType> types;
    private final DataType returns;
    private final boolean calledOnNull;
    private final String shown;
    private final Class<?> made;
    private final UDFContext context;
    /** Null until {@link #begin}. */
    private JavaUDF udf;

    private Function(List<DataType> types, DataType returns, boolean calledOnNull, String shown, Class<?> made, UDFContext context) {
        this.types = types;
        this.returns = returns;
        this.calledOnNull = calledOnNull;
        this.shown = shown;
        this.made = made;
        this.context = context;
    }

    /** A body sees only what the rules allow, and no other body. */
    private static final class Gate extends ClassLoader {
        private final String name;
        private final byte[] bytes;

        Gate(String name, byte[] bytes) {
            super(Function.class.getClassLoader());
            this.name = name;
            this.bytes = bytes;
        }

        @Override
        protected Class<?> loadClass(String wanted, boolean resolve) throws ClassNotFoundException {
            if (wanted.equals(name)) {
                Class<?> known = findLoadedClass(wanted);
                return known != null ? known : defineClass(wanted, bytes, 0, bytes.length);
            }
            if (!Rules.allowsClass(wanted.replace('.', '/')))
                throw new ClassNotFoundException(wanted);
            return super.loadClass(wanted, resolve);
        }
    }

    static Function read(ByteBuffer in, Compiler compiler, int id) throws Refused {
        String keyspace = DataType.string(in);
        String name = DataType.string(in);
        boolean calledOnNull = in.get() != 0;
        List<String> names = new ArrayList<>();
        List<DataType> types = new ArrayList<>();
        for (int i = in.getInt(); i > 0; i--) {
            names.add(DataType.string(in));
            types.add(DataType.read(in));
        }
        DataType returns = DataType.read(in);
        String body = DataType.string(in).replace("com.datastax.driver.core.", "org.apache.cassandra.cql3.functions.types.");

        StringBuilder own = new StringBuilder();
        for (char c : (keyspace + "." + name).toCharArray())
            own.append(Character.isJavaIdentifierPart(c) ? String.valueOf(c) : Integer.toHexString(c));
        String pkg = "org.apache.cassandra.cql3.udf.gen.p" + own + "_" + id;
        String cls = "C" + own;
        String execute = "x" + own + "_" + id;
        String before = source(pkg, cls, execute, names, types, returns, !calledOnNull);
        int line = (int) before.chars().filter(c -> c == '\n').count();
        String full = pkg + "." + cls;
        byte[] bytes = compiler.compile(full, before + body + "\n    }\n}\n", line);
        Set<String> errors = Verifier.verify(full.replace('.', '/'), bytes, execute);
        if (!errors.isEmpty())
            throw new Refused("Java UDF validation failed: " + errors);
        String shown = keyspace + "." + name;
        try {
            Class<?> made = new Gate(full, bytes).loadClass(full);
            return new Function(types, returns, calledOnNull, shown, made, new UDFContext(keyspace, names, types, returns));
        } catch (ReflectiveOperationException | LinkageError e) {
            throw refused(shown, e);
        }
    }

    private static Refused refused(String shown, Throwable why) {
        return new Refused("Could not compile function '" + shown + "' from Java source: " + why);
    }

    /** Makes the instance: what is in braces of the class itself runs, for as long as it likes. */
    void begin() throws Refused {
        try {
            udf = (JavaUDF) made.getConstructor(UDFContext.class).newInstance(context);
        } catch (ReflectiveOperationException | LinkageError e) {
            throw refused(shown, e);
        }
    }

    /** What stands before the body. */
    private static String source(
        String pkg, String cls, String execute, List<String> names, List<DataType> types, DataType returns, boolean primitive) {
        StringBuilder arguments = new StringBuilder();
        StringBuilder parameters = new StringBuilder();
        for (int i = 0; i < types.size(); i++) {
            arguments.append(i == 0 ? "" : ", ").append('(').append(types.get(i).javaName(primitive)).append(") arguments[").append(i);
            arguments.append(']');
            parameters.append(i == 0 ? "" : ", ").append(types.get(i).javaName(primitive)).append(' ').append(names.get(i));
        }
        return "package " + pkg + ";\n"
            + "import java.nio.ByteBuffer;\nimport java.util.*;\n"
            + "import org.apache.cassandra.cql3.functions.JavaUDF;\nimport org.apache.cassandra.cql3.functions.UDFContext;\n"
            + "import org.apache.cassandra.cql3.functions.types.TupleValue;\n"
            + "import org.apache.cassandra.cql3.functions.types.UDTValue;\n"
            + "public final class " + cls + " extends JavaUDF {\n"
            + "    public " + cls + "(UDFContext udfContext) {\n        super(udfContext);\n    }\n"
            + "    @SuppressWarnings(\"unchecked\")\n"
            + "    public Object executeImpl(Object[] arguments) {\n        return " + execute + "(" + arguments + ");\n    }\n"
            + "    private " + returns.javaName(primitive) + " " + execute + "(" + parameters + ") {\n";
    }

    /** Applies it to the values that stand next. */
    byte[] call(ByteBuffer in) {
        Object[] arguments = arguments(in);
        return arguments == null ? null : returns.decompose(udf.executeImpl(arguments));
    }

    /** Null if it is not called for them. */
    private Object[] arguments(ByteBuffer in) {
        Object[] arguments = new Object[types.size()];
        return read(in, arguments, 0) ? arguments : null;
    }

    /** Whether it is called for the arguments that have been read. */
    private boolean read(ByteBuffer in, Object[] arguments, int from) {
        boolean hasNull = false;
        for (int i = from; i < arguments.length; i++) {
            arguments[i] = types.get(i).compose(DataType.framed(in));
            hasNull |= arguments[i] == null;
        }
        return !hasNull || calledOnNull;
    }

    /**
     * Applies it to a state and the arguments of row after row: as many rows as it can until others would wait too long. Their number
     * and the last state.
     */
    byte[] fold(ByteBuffer in) {
        long end = System.nanoTime() + SLICE;
        int rows = in.getInt();
        Object[] arguments = new Object[types.size()];
        Object state = types.get(0).compose(DataType.framed(in));
        int done = 0;
        for (; done < rows && (done == 0 || System.nanoTime() < end); done++) {
            if (!read(in, arguments, 1))
                continue;
            arguments[0] = state;
            state = state == null && !calledOnNull ? null : udf.executeImpl(arguments);
        }
        byte[] last = returns.decompose(state);
        ByteBuffer out = ByteBuffer.allocate(8 + (last == null ? 0 : last.length));
        out.putInt(done).putInt(last == null ? -1 : last.length);
        return (last == null ? out : out.put(last)).array();
    }
}
