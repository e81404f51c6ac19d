package halcyon.cassandra;

import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.invoke.MethodType;
import java.lang.reflect.Executable;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Predicate;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;

import org.apache.cassandra.db.compaction.Line;

/**
 * Whether a release of Cassandra has what a line of this jar touches of it, member by member, before a class that needs it is used.
 *
 * <ol>
 * <li>The constant pool of each class of the jar, but for those of other lines, names the classes, fields and methods that it links to.
 * <li>Each of Cassandra's is searched for as the JVM does: by name and exact types, in the class and what it extends.
 * <li>Our classes are then loaded: one that overrides a final method, or leaves an abstract one without a body, does not fit either.
 * </ol>
 * No list of members is kept by hand, so none can be forgotten.
 */
final class Linkage
{
    private static final String CASSANDRA = "org/apache/cassandra/";
    private static final String CLASS_FILE = ".class";
    /** Of each line a file: the names of the classes that are its own. */
    private static final String LINES = "halcyon/lines/";
    private static final int UTF8 = 1, INTEGER = 3, FLOAT = 4, LONG = 5, DOUBLE = 6, CLASS = 7, STRING = 8, FIELD = 9, METHOD = 10,
                             INTERFACE_METHOD = 11, NAME_AND_TYPE = 12, HANDLE = 15, METHOD_TYPE = 16, INVOKE_DYNAMIC = 18;

    /** Of the line. */
    final String name;
    private final Path jar;
    private final ClassLoader loader;
    /** All classes of the jar. */
    private final Set<String> ours;
    /** Those that run if this line does. */
    private final Set<String> running;
    private final Set<String> missing = new TreeSet<>();

    private Linkage(String name, Path jar, ClassLoader loader, Set<String> ours, Set<String> running)
    {
        this.name = name;
        this.jar = jar;
        this.loader = loader;
        this.ours = ours;
        this.running = running;
    }

    /** Of each line of the jar. */
    static List<Linkage> ofLines(Path jar, ClassLoader loader) throws IOException
    {
        Set<String> ours = new HashSet<>();
        Map<String, Set<String>> lines = new TreeMap<>();
        try (JarFile content = new JarFile(jar.toFile()))
        {
            for (JarEntry entry : Collections.list(content.entries()))
            {
                String path = entry.getName();
                if (path.endsWith(CLASS_FILE))
                    ours.add(path.substring(0, path.length() - CLASS_FILE.length()));
                else if (path.startsWith(LINES) && !entry.isDirectory())
                    lines.put(path.substring(LINES.length()), names(content, entry));
            }
        }
        Set<String> common = new HashSet<>(ours);
        lines.values().forEach(common::removeAll);
        List<Linkage> all = new ArrayList<>();
        lines.forEach((name, own) -> {
            Set<String> running = new HashSet<>(common);
            running.addAll(own);
            all.add(new Linkage(name, jar, loader, ours, running));
        });
        return all;
    }

    private static Set<String> names(JarFile content, JarEntry entry) throws IOException
    {
        try (InputStream from = content.getInputStream(entry))
        {
            return Set.of(new String(from.readAllBytes(), StandardCharsets.UTF_8).split("\n"));
        }
    }

    /** What the loader's Cassandra lacks; empty if the line fits. */
    Set<String> missing() throws IOException
    {
        try (JarFile classes = new JarFile(jar.toFile()))
        {
            for (String name : running)
                try (DataInputStream code = new DataInputStream(classes.getInputStream(classes.getEntry(name + CLASS_FILE))))
                {
                    check(new Pool(code));
                }
        }
        if (missing.isEmpty())
            running.forEach(this::load);
        if (missing.isEmpty())
            missing.addAll(Line.of(name).missing());
        return missing;
    }

    private void check(Pool pool)
    {
        for (int i = 1; i < pool.tags.length; i++)
        {
            if (pool.tags[i] == CLASS)
                isThere(pool.className(i));
            else if (pool.tags[i] == FIELD || pool.tags[i] == METHOD || pool.tags[i] == INTERFACE_METHOD)
                member(pool.className(pool.first[i]), pool.text(pool.first[pool.second[i]]), pool.text(pool.second[pool.second[i]]));
        }
    }

    private boolean isOfCassandra(String owner)
    {
        return owner.startsWith(CASSANDRA) && !ours.contains(owner);
    }

    private Class<?> isThere(String name)
    {
        if (!isOfCassandra(name))
            return null;
        try
        {
            return Class.forName(dotted(name), false, loader);
        }
        catch (ClassNotFoundException | LinkageError e)
        {
            missing.add("class " + dotted(name));
            return null;
        }
    }

    private void member(String owner, String name, String type)
    {
        Class<?> of = isThere(owner);
        if (of == null)
            return;
        try
        {
            boolean isField = !type.startsWith("(");
            MethodType types = MethodType.fromMethodDescriptorString(isField ? "()" + type : type, loader);
            boolean found = isField ? hasField(of, name, types.returnType()) : hasMethod(of, name, types);
            if (!found)
                missing.add(shown(owner, name, types, isField));
        }
        catch (TypeNotPresentException e)
        {
            missing.add("class " + e.typeName());
        }
        catch (LinkageError e)
        {
            missing.add(dotted(owner) + '.' + name + ": " + e);
        }
    }

    private static boolean hasField(Class<?> of, String name, Class<?> type)
    {
        return inHierarchy(of, one -> {
            for (Field field : one.getDeclaredFields())
                if (field.getName().equals(name) && field.getType() == type && !Modifier.isPrivate(field.getModifiers()))
                    return true;
            return false;
        });
    }

    private static boolean hasMethod(Class<?> of, String name, MethodType types)
    {
        if (name.equals("<init>"))
        {
            for (Executable one : of.getDeclaredConstructors())
                if (MethodType.methodType(void.class, one.getParameterTypes()).equals(types) && !Modifier.isPrivate(one.getModifiers()))
                    return true;
            return false;
        }
        return inHierarchy(of, one -> declares(one, name, types));
    }

    private static boolean declares(Class<?> one, String name, MethodType types)
    {
        for (Method method : one.getDeclaredMethods())
            if (method.getName().equals(name) && typesOf(method).equals(types) && !Modifier.isPrivate(method.getModifiers()))
                return true;
        return false;
    }

    private static MethodType typesOf(Method method)
    {
        return MethodType.methodType(method.getReturnType(), method.getParameterTypes());
    }

    private static boolean inHierarchy(Class<?> of, Predicate<Class<?>> has)
    {
        return hierarchy(of).stream().anyMatch(has);
    }

    /** A class, and all that it extends and implements. */
    private static Set<Class<?>> hierarchy(Class<?> of)
    {
        Set<Class<?>> all = new LinkedHashSet<>();
        for (Class<?> one = of; one != null; one = one.getSuperclass())
        {
            all.add(one);
            for (Class<?> declared : one.getInterfaces())
                all.addAll(hierarchy(declared));
        }
        if (of.isInterface())
            all.add(Object.class);
        return all;
    }

    private void load(String name)
    {
        try
        {
            Class<?> one = Class.forName(dotted(name), false, loader);
            if (!one.isInterface() && !Modifier.isAbstract(one.getModifiers()))
                hasBodies(one);
        }
        catch (NoClassDefFoundError e)
        {
            // Of Cassandra's all were found; a library that it need not have is asked for where it is used.
            assert !String.valueOf(e.getMessage()).startsWith(CASSANDRA) : e;
        }
        catch (ClassNotFoundException | LinkageError e)
        {
            missing.add(dotted(name) + ": " + e.getMessage());
        }
    }

    private void hasBodies(Class<?> of)
    {
        Set<Class<?>> all = hierarchy(of);
        for (Class<?> one : all)
            for (Method method : one.getDeclaredMethods())
                if (Modifier.isAbstract(method.getModifiers()) && all.stream().noneMatch(other -> hasBody(other, method)))
                    missing.add("a body for " + one.getName() + '.' + method.getName() + " in " + of.getName());
    }

    private static boolean hasBody(Class<?> in, Method wanted)
    {
        for (Method method : in.getDeclaredMethods())
            if (!Modifier.isAbstract(method.getModifiers()) && method.getName().equals(wanted.getName())
                && typesOf(method).parameterList().equals(typesOf(wanted).parameterList()))
                return true;
        return false;
    }

    private static String shown(String owner, String name, MethodType types, boolean isField)
    {
        String of = owner.substring(owner.lastIndexOf('/') + 1).replace('$', '.');
        if (isField)
            return of + '.' + name + ": " + types.returnType().getSimpleName();
        // As a MethodType shows itself: simple names of classes.
        String shown = types.toString();
        String parameters = shown.substring(0, shown.lastIndexOf(')') + 1);
        return name.equals("<init>") ? "new " + of + parameters : of + '.' + name + parameters + ": " + types.returnType().getSimpleName();
    }

    private static String dotted(String name)
    {
        return name.replace('/', '.');
    }

    /** A class file's constant pool: by index a tag, and the one or two indexes or the text that follow it. */
    private static final class Pool
    {
        final int[] tags;
        final int[] first;
        final int[] second;
        private final String[] texts;

        Pool(DataInputStream code) throws IOException
        {
            // The magic number and the version.
            code.readLong();
            int count = code.readUnsignedShort();
            tags = new int[count];
            first = new int[count];
            second = new int[count];
            texts = new String[count];
            // A number of eight bytes has two indexes.
            for (int i = 1; i < count; i += tags[i] == LONG || tags[i] == DOUBLE ? 2 : 1)
            {
                tags[i] = code.readUnsignedByte();
                read(code, i);
            }
        }

        private void read(DataInputStream code, int i) throws IOException
        {
            switch (tags[i])
            {
                case UTF8: texts[i] = code.readUTF(); break;
                case INTEGER: case FLOAT: code.readInt(); break;
                case LONG: case DOUBLE: code.readLong(); break;
                case CLASS: case STRING: case METHOD_TYPE: first[i] = code.readUnsignedShort(); break;
                case HANDLE: code.readUnsignedByte(); first[i] = code.readUnsignedShort(); break;
                case FIELD: case METHOD: case INTERFACE_METHOD: case NAME_AND_TYPE: case INVOKE_DYNAMIC:
                    first[i] = code.readUnsignedShort();
                    second[i] = code.readUnsignedShort();
                    break;
                default: throw new IOException("a constant of kind " + tags[i]);
            }
        }

        String text(int i)
        {
            return texts[i];
        }

        /** Of an array, its elements'. */
        String className(int i)
        {
            String name = texts[first[i]];
            boolean isArray = name.startsWith("[");
            return isArray && name.endsWith(";") ? name.substring(name.indexOf('L') + 1, name.length() - 1) : name;
        }
    }
}
