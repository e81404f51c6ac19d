package halcyon.functions;

import java.lang.reflect.Method;
import java.lang.reflect.Modifier;

/**
 * What a body may name: the lists of Cassandra's {@code UDFunction} and {@code JavaBasedUDFunction}, and beside them what only its
 * security manager refuses, which newer JVMs do not have.
 */
final class Rules {
    private static final String[] ALLOWED = {
        "java/io/IOException", "java/io/Serializable", "java/lang/", "java/math/", "java/net/InetAddress", "java/net/Inet4Address",
        "java/net/Inet6Address", "java/net/UnknownHostException", "java/nio/Buffer", "java/nio/ByteBuffer", "java/text/", "java/time/",
        "java/util/", "org/apache/cassandra/cql3/functions/types/", "org/apache/cassandra/cql3/functions/JavaUDF",
        "org/apache/cassandra/cql3/functions/UDFContext",
    };

    /** Prefixes; one that ends in a dot is a whole name. */
    private static final String[] REFUSED = {
        "java/lang/Compiler.", "java/lang/InheritableThreadLocal.", "java/lang/Package.", "java/lang/Process", "java/lang/Runnable.",
        "java/lang/Runtime.", "java/lang/RuntimePermission", "java/lang/Shutdown.", "java/lang/Thread", "java/lang/instrument/", "java/lang/invoke/",
        "java/lang/management/", "java/lang/ref/", "java/lang/reflect/", "java/util/ServiceLoader", "java/util/Timer",
        "java/util/concurrent/", "java/util/function/", "java/util/jar/", "java/util/logging/", "java/util/prefs/", "java/util/spi/",
        "java/util/stream/", "java/util/zip/",
        // By the security manager.
        "java/lang/ClassLoader", "java/lang/Module", "java/lang/ScopedValue", "java/lang/StackWalker", "java/lang/VirtualThread",
        "java/lang/classfile/", "java/lang/constant/", "java/lang/foreign/", "java/lang/module/", "java/lang/runtime/",
        "java/util/Properties", "java/util/ResourceBundle", "java/util/Scanner", "java/util/Formatter.", "java/text/spi/",
        "java/time/zone/ZoneRulesProvider",
    };

    private static final String[] REFUSED_CALLS = {
        "java/lang/Object.clone", "java/lang/Object.finalize", "java/lang/Object.notify", "java/lang/Object.notifyAll",
        "java/lang/Object.wait", "java/nio/ByteBuffer.allocateDirect",
        // By the security manager, or because they change what other functions see.
        "java/lang/Boolean.getBoolean", "java/lang/Integer.getInteger", "java/lang/Long.getLong", "java/util/Locale.setDefault",
        "java/util/TimeZone.setDefault",
    };

    private static final String[] ADDRESS_CALLS = {
        "getByAddress", "getAllByName", "getByName", "getLocalHost", "getHostName", "getCanonicalHostName", "isReachable",
        "getLoopbackAddress",
    };

    private static final String[] SYSTEM_CALLS = { "arraycopy", "currentTimeMillis", "identityHashCode", "lineSeparator", "nanoTime" };

    private static final String[] CLASS_CALLS = {
        "cast", "desiredAssertionStatus", "equals", "getName", "getSimpleName", "hashCode", "isArray", "isInstance", "toString",
    };

    private Rules() {}

    static boolean allowsClass(String name) {
        String whole = name + ".";
        for (String allowed : ALLOWED)
            if (name.startsWith(allowed)) {
                for (String refused : REFUSED)
                    if (whole.startsWith(refused))
                        return false;
                return true;
            }
        return false;
    }

    /** {@code owner} is the class that is named: it may have the method from another one. */
    static boolean allowsCall(String owner, String method) {
        if (!allowsOwn(owner, method))
            return false;
        Class<?> named;
        try {
            named = Class.forName(owner.replace('/', '.'), false, Rules.class.getClassLoader());
        } catch (ClassNotFoundException | LinkageError e) {
            // The body's own class; what its loader refuses is refused there.
            return true;
        }
        for (Method known : named.getMethods()) {
            String declaring = known.getDeclaringClass().getName().replace('.', '/');
            if (!Modifier.isStatic(known.getModifiers()) || !known.getName().equals(method) || declaring.equals(owner))
                continue;
            if (!allowsClass(declaring) || !allowsOwn(declaring, method))
                return false;
        }
        return true;
    }

    private static boolean allowsOwn(String owner, String method) {
        if (owner.equals("java/lang/System"))
            return isOneOf(method, SYSTEM_CALLS);
        if (owner.equals("java/lang/Class"))
            return isOneOf(method, CLASS_CALLS);
        if (owner.startsWith("java/net/Inet"))
            return !isOneOf(method, ADDRESS_CALLS);
        return !isOneOf(owner + "." + method, REFUSED_CALLS);
    }

    private static boolean isOneOf(String wanted, String[] names) {
        for (String name : names)
            if (name.equals(wanted))
                return true;
        return false;
    }
}
