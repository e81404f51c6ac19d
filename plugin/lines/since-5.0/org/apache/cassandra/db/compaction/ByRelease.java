package org.apache.cassandra.db.compaction;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Collection;
import java.util.Set;

import org.apache.cassandra.io.sstable.SSTableFlushObserver;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.utils.TimeUUID;

/** The few members that differ among the releases of a line. All others are linked to. */
final class ByRelease
{
    private static final MethodHandles.Lookup LOOKUP = MethodHandles.lookup();
    /** From 5.0.9 on, with the stored bytes of all inputs. */
    private static final MethodHandle INFO_WITH_STORED = constructor(CompactionInfo.class, TableMetadata.class, OperationType.class, long.class, long.class, long.class,
                                                                     TimeUUID.class, Collection.class, String.class);
    private static final MethodHandle INFO = constructor(CompactionInfo.class, TableMetadata.class, OperationType.class, long.class, long.class, TimeUUID.class,
                                                         Collection.class, String.class);
    /** From 5.0.6 on. */
    private static final MethodHandle WRITER_SWITCHED = method(SSTableFlushObserver.class, "onSSTableWriterSwitched");

    private ByRelease()
    {
    }

    private static MethodHandle constructor(Class<?> of, Class<?>... parameters)
    {
        try
        {
            return LOOKUP.findConstructor(of, MethodType.methodType(void.class, parameters));
        }
        catch (ReflectiveOperationException e)
        {
            return null;
        }
    }

    private static MethodHandle method(Class<?> of, String name)
    {
        try
        {
            return LOOKUP.findVirtual(of, name, MethodType.methodType(void.class));
        }
        catch (ReflectiveOperationException e)
        {
            return null;
        }
    }

    /** What this release has in none of the forms that are known. */
    static Set<String> missing()
    {
        return INFO_WITH_STORED == null && INFO == null ? Set.of("new CompactionInfo in a known form") : Set.of();
    }

    static CompactionInfo info(TableMetadata table, OperationType type, long read, long total, long stored, TimeUUID id, Set<SSTableReader> inputs,
                               String directory)
    {
        try
        {
            if (INFO_WITH_STORED != null)
                return (CompactionInfo) INFO_WITH_STORED.invoke(table, type, read, total, stored, id, inputs, directory);
            return (CompactionInfo) INFO.invoke(table, type, read, total, id, inputs, directory);
        }
        catch (Throwable e)
        {
            throw new IllegalStateException(e);
        }
    }

    static void writerSwitched(SSTableFlushObserver observer)
    {
        if (WRITER_SWITCHED == null)
            return;
        try
        {
            WRITER_SWITCHED.invoke(observer);
        }
        catch (RuntimeException | Error e)
        {
            throw e;
        }
        catch (Throwable e)
        {
            throw new IllegalStateException(e);
        }
    }
}
