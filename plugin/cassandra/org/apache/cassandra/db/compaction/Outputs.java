package org.apache.cassandra.db.compaction;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.zip.CRC32;

import halcyon.cassandra.Failed;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Directories;
import org.apache.cassandra.db.DiskBoundaries;
import org.apache.cassandra.db.PartitionPosition;
import org.apache.cassandra.db.lifecycle.ILifecycleTransaction;
import org.apache.cassandra.dht.Murmur3Partitioner.LongToken;
import org.apache.cassandra.dht.Token;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.SSTable;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.utils.FBUtilities;
import org.apache.cassandra.utils.Throwables;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The outputs of one compaction: named and tracked before they are written, compared before they are opened, published together. */
final class Outputs
{
    private static final Logger logger = LoggerFactory.getLogger(Outputs.class);

    private final ColumnFamilyStore cfs;
    private final CompactionTask task;
    private final ILifecycleTransaction transaction;
    private final Map<String, SSTable> granted = new HashMap<>();
    private final List<SSTableReader> opened = new ArrayList<>();
    private Set<SSTableReader> inputs;
    private boolean published;

    Outputs(ColumnFamilyStore cfs, CompactionTask task)
    {
        this.cfs = cfs;
        this.task = task;
        transaction = Line.running().transaction(task);
    }

    void of(Set<SSTableReader> inputs)
    {
        this.inputs = inputs;
    }

    boolean arePublished()
    {
        return published;
    }

    /** The path of the next output's Data.db, by its first token. */
    String next(long first, Progress progress)
    {
        org.apache.cassandra.io.util.File directory = task.getDirectories().getLocationForDisk(disk(new LongToken(first)));
        Descriptor descriptor = cfs.newSSTableDescriptor(directory);
        SSTable placeholder = Line.running().placeholder(cfs, descriptor);
        transaction.trackNew(placeholder);
        String path = Line.running().data(descriptor).path();
        granted.put(path, placeholder);
        progress.writesTo(directory.path());
        return path;
    }

    private Directories.DataDirectory disk(Token first)
    {
        DiskBoundaries disks = cfs.getDiskBoundaries();
        List<PartitionPosition> positions = disks.positions;
        if (positions != null)
        {
            int at = 0;
            while (at < positions.size() - 1 && first.compareTo(positions.get(at).getToken()) > 0)
                at++;
            return disks.directories.get(at);
        }
        // As CompactionAwareWriter.getWriteDirectory: where the first input is, if there is room.
        long size = cfs.getExpectedCompactedFileSize(inputs, transaction.opType());
        Directories directories = task.getDirectories();
        Directories.DataDirectory disk = directories.getDataDirectoryForFile(inputs.iterator().next().descriptor);
        if (disk == null)
            disk = directories.getWriteableLocation(size);
        if (disk == null || disk.getAvailableSpace() < size)
            throw new IllegalStateException("not enough space for " + FBUtilities.prettyPrintMemory(size));
        return disk;
    }

    /** The transaction is about to be aborted, which deletes what it tracks. */
    void release()
    {
        opened.forEach(reader -> reader.selfRef().release());
        opened.clear();
    }

    /** Deletes what was written, after its writer has ended, and has the transaction forget it: the transaction continues without. */
    void giveUp() throws IOException
    {
        release();
        for (Map.Entry<String, SSTable> output : granted.entrySet())
        {
            Path data = Paths.get(output.getKey());
            String prefix = prefix(data);
            try (DirectoryStream<Path> files = Files.newDirectoryStream(data.getParent(), file -> file.getFileName().toString().startsWith(prefix)))
            {
                for (Path file : files)
                    Files.delete(file);
            }
            // Only an output without files can be forgotten: Cassandra's record of it counts them.
            transaction.untrackNew(output.getValue());
        }
        granted.clear();
    }

    /** Opens what the service has verified, and has Cassandra make the files of its indexes for them. */
    void open(List<Result.Output> outputs, Progress progress) throws IOException
    {
        for (Result.Output output : outputs)
            compare(output);
        Set<String> written = outputs.stream().map(output -> output.path).collect(Collectors.toSet());
        if (!written.equals(granted.keySet()))
            throw new Failed("DamagedOutput", "the service has not written all outputs that it asked for");
        for (Result.Output output : outputs)
        {
            Descriptor descriptor = granted.get(output.path).descriptor;
            opened.add(Line.running().open(cfs, descriptor));
        }
        for (SSTableReader output : opened)
            Line.running().index(cfs, transaction, output, progress);
    }

    /** Has what is hot of the inputs be hot of the outputs too. */
    void warm(Progress progress) throws IOException
    {
        Line.running().carryOver(cfs, inputs, opened, progress);
    }

    /** They replace the inputs, in one change of the table's view. */
    List<SSTableReader> publish()
    {
        published = true;
        transaction.update(opened, false);
        transaction.obsoleteOriginals();
        transaction.prepareToCommit();
        Throwables.maybeFail(transaction.commit(null));
        return opened;
    }

    /** The files are those that the service has verified. */
    private void compare(Result.Output output) throws IOException
    {
        SSTable placeholder = granted.get(output.path);
        if (placeholder == null)
            throw new Failed("DamagedOutput", output.path + " is not an output of this compaction");
        Path data = Paths.get(output.path);
        for (Result.Part part : output.parts)
        {
            Path file = data.resolveSibling(prefix(data) + part.name);
            long length = Files.size(file);
            if (length != part.length)
                throw new Failed("DamagedOutput", file + " has " + length + " bytes, the service wrote " + part.length);
            if (part.hasChecksum && checksum(file) != part.checksum)
                throw new Failed("DamagedOutput", file + " is not what the service wrote");
        }
    }

    /** What the names of an SSTable's files begin with. */
    private static String prefix(Path data)
    {
        String name = data.getFileName().toString();
        return name.substring(0, name.length() - "Data.db".length());
    }

    private static int checksum(Path file) throws IOException
    {
        CRC32 crc = new CRC32();
        byte[] buffer = new byte[1 << 16];
        try (InputStream from = Files.newInputStream(file))
        {
            for (int read; (read = from.read(buffer)) >= 0;)
                crc.update(buffer, 0, read);
        }
        return (int) crc.getValue();
    }
}
