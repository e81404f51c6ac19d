package org.apache.cassandra.db.compaction;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import halcyon.cassandra.Failed;
import halcyon.cassandra.Plugin;
import org.apache.cassandra.cql3.statements.schema.CreateTableStatement;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Directories;
import org.apache.cassandra.db.Keyspace;
import org.apache.cassandra.db.lifecycle.LifecycleTransaction;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.io.sstable.ISSTableScanner;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.io.util.File;
import org.apache.cassandra.schema.SchemaConstants;
import org.apache.cassandra.schema.TableMetadata;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import static org.apache.cassandra.utils.Clock.Global.currentTimeMillis;

/**
 * Whether this Cassandra, this jar and this program compact together as Cassandra alone does: three tiny SSTables that lie in the jar, with
 * deletions of each kind, are handed over as any are, in a table that no schema has and a folder that is deleted. What Cassandra's own merge
 * makes of them is compared with the output, cell for cell.
 */
public final class SelfTest
{
    private static final Logger logger = LoggerFactory.getLogger(SelfTest.class);
    private static final String TABLE = "halcyon_self_test";
    private static final String SCHEMA = "CREATE TABLE " + TABLE + " (k int, c int, v int, w text, PRIMARY KEY (k, c))";
    private static final String FILES = "/halcyon/selftest/";
    private static final int SSTABLES = 3;
    private static final String[] COMPONENTS = { "CompressionInfo.db", "Data.db", "Digest.crc32", "Filter.db", "Index.db", "Statistics.db", "Summary.db", "TOC.txt" };

    private final Plugin plugin;
    private final ColumnFamilyStore cfs;

    private SelfTest(Plugin plugin, ColumnFamilyStore cfs)
    {
        this.plugin = plugin;
        this.cfs = cfs;
    }

    /** Fails if the result differs, or there is none. */
    public static void run(Plugin plugin) throws Exception
    {
        Path folder = Files.createTempDirectory("halcyon-self-test");
        try
        {
            TableMetadata table = CreateTableStatement.parse(SCHEMA, SchemaConstants.SYSTEM_KEYSPACE_NAME).build();
            Directories directories = new Directories(table, new Directories.DataDirectory[]{ new Directories.DataDirectory(folder) });
            unpack(directories.getDirectoryForNewSSTables());
            Keyspace keyspace = Keyspace.open(SchemaConstants.SYSTEM_KEYSPACE_NAME);
            ColumnFamilyStore cfs = Line.running().store(keyspace, table, directories);
            try
            {
                new SelfTest(plugin, cfs).compare();
            }
            finally
            {
                cfs.invalidate(false, true);
                // Which does so only where there is an MBean of the table.
                cfs.metric.release();
            }
        }
        finally
        {
            delete(folder);
        }
    }

    private static void unpack(File to) throws IOException
    {
        for (int number = 1; number <= SSTABLES; number++)
            for (String component : COMPONENTS)
            {
                String name = "nb-" + number + "-big-" + component;
                try (InputStream from = SelfTest.class.getResourceAsStream(FILES + name))
                {
                    Files.copy(from, to.toPath().resolve(name));
                }
            }
    }

    private static void delete(Path folder)
    {
        try (Stream<Path> files = Files.walk(folder))
        {
            for (Path file : files.sorted(Comparator.reverseOrder()).collect(Collectors.toList()))
                Files.deleteIfExists(file);
        }
        catch (IOException | UncheckedIOException e)
        {
            // Cassandra deletes obsolete files of it meanwhile. What stays says nothing about the service.
            logger.debug("Halcyon: {} is not deleted", folder, e);
        }
    }

    private void compare() throws Exception
    {
        Set<SSTableReader> inputs = cfs.getLiveSSTables();
        long now = TimeUnit.MILLISECONDS.toSeconds(currentTimeMillis());
        try (LifecycleTransaction transaction = cfs.getTracker().tryModify(inputs, OperationType.COMPACTION))
        {
            if (transaction == null || inputs.size() != SSTABLES)
                throw new Failed("SelfTest", "of the " + SSTABLES + " SSTables " + inputs.size() + " were read");
            // All tombstones can be purged: nothing is outside of this compaction.
            CompactionTask task = Line.running().task(cfs, transaction, now);
            List<String> expected = merged(transaction, now);
            new HandOver(cfs, task, some -> Split.of(cfs, task)).forItself(plugin);
            List<String> found = stored();
            if (!found.equals(expected))
                throw new Failed("SelfTest", "the service made " + found + " of what Cassandra makes " + expected);
        }
    }

    /** By Cassandra alone. */
    private List<String> merged(LifecycleTransaction transaction, long now)
    {
        List<String> shown = new ArrayList<>();
        try (CompactionController controller = Line.running().controller(cfs, transaction.originals(), now);
             AbstractCompactionStrategy.ScannerList scanners = cfs.getCompactionStrategyManager().getScanners(transaction.originals());
             CompactionIterator merge = Line.running().merge(scanners.scanners, controller, now, transaction.opId()))
        {
            while (merge.hasNext())
                show(merge.next(), shown);
        }
        return shown;
    }

    private List<String> stored()
    {
        List<String> shown = new ArrayList<>();
        for (SSTableReader output : cfs.getLiveSSTables())
            try (ISSTableScanner partitions = output.getScanner())
            {
                while (partitions.hasNext())
                    show(partitions.next(), shown);
            }
        return shown;
    }

    private void show(UnfilteredRowIterator partition, List<String> to)
    {
        try (UnfilteredRowIterator rows = partition)
        {
            to.add(rows.partitionKey() + " " + rows.partitionLevelDeletion() + ' ' + rows.staticRow().toString(cfs.metadata(), true));
            while (rows.hasNext())
                to.add(rows.next().toString(cfs.metadata(), true));
        }
    }
}
