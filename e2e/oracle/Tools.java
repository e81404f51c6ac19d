import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Directories;
import org.apache.cassandra.db.Keyspace;
import org.apache.cassandra.io.sstable.Component;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.IVerifier;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.io.util.File;
import org.apache.cassandra.schema.Schema;
import org.apache.cassandra.tools.INodeProbeFactory;
import org.apache.cassandra.tools.NodeProbe;
import org.apache.cassandra.tools.NodeTool;
import org.apache.cassandra.tools.Output;
import org.apache.cassandra.tools.Util;
import org.apache.cassandra.utils.OutputHandler;
import org.apache.cassandra.utils.TimeUUID;

/**
 * Runs many of Cassandra's offline tools in one JVM, because starting a JVM costs more than a dump.
 *
 * One command per line on stdin, fields separated by tabs; one answer line per command on stdout:
 *
 *   main   CLASS OUT ARG...   calls CLASS.main(ARG...) with its output in file OUT   -> exit N
 *   nodetool OUT ERR ARG...   nodetool with its output in two files                  -> exit N
 *   verify KEYSPACE TABLE     what StandaloneVerifier --extended does to each SSTable of the table
 *                             in the data directory of -Dcassandra.storagedir        -> ok N | failed MESSAGE
 *   pending FILE SESSION TRUE|FALSE   an SSTable, by its Data.db, becomes one of a repair session, as of a full or of a
 *                             transient replica                                      -> ok | failed MESSAGE
 *
 * A tool's System.exit is turned into an exception, hence the security manager.
 */
public class Tools
{
    private static final class Exit extends SecurityException
    {
        final int status;
        Exit(int status) { this.status = status; }
    }

    @SuppressWarnings("removal")
    private static final class TrapExit extends SecurityManager
    {
        boolean armed = true;
        @Override public void checkExit(int status) { if (armed) throw new Exit(status); }
        @Override public void checkPermission(java.security.Permission permission) {}
        @Override public void checkPermission(java.security.Permission permission, Object context) {}
    }

    private static final class Probes implements INodeProbeFactory
    {
        @Override public NodeProbe create(String host, int port) throws IOException
        {
            return new NodeProbe(host, port);
        }

        @Override public NodeProbe create(String host, int port, String username, String password) throws IOException
        {
            return new NodeProbe(host, port, username, password);
        }
    }

    private static boolean schemaLoaded = false;

    @SuppressWarnings("removal")
    public static void main(String[] arguments) throws Exception
    {
        TrapExit trap = new TrapExit();
        System.setSecurityManager(trap);
        PrintStream answers = System.out;
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = commands.readLine()) != null;)
        {
            String[] fields = line.split("\t", -1);
            String answer;
            switch (fields[0])
            {
                case "main": answer = "exit " + runMain(fields); break;
                case "nodetool": answer = "exit " + nodetool(fields); break;
                case "verify": answer = verifyTable(fields[1], fields[2]); break;
                case "pending": answer = pending(fields[1], fields[2], fields[3]); break;
                default: answer = "failed unknown command " + fields[0];
            }
            answers.println(answer);
            answers.flush();
        }
        trap.armed = false;
        System.exit(0);
    }

    private static int runMain(String[] fields) throws Exception
    {
        PrintStream stdout = System.out;
        PrintStream stderr = System.err;
        try (PrintStream file = new PrintStream(new FileOutputStream(fields[2]), false, "UTF-8"))
        {
            System.setOut(file);
            String[] arguments = Arrays.copyOfRange(fields, 3, fields.length);
            Class.forName(fields[1]).getMethod("main", String[].class).invoke(null, (Object) arguments);
            return 0;
        }
        catch (InvocationTargetException e)
        {
            for (Throwable cause = e.getCause(); cause != null; cause = cause.getCause())
                if (cause instanceof Exit)
                    return ((Exit) cause).status;
            stderr.println(fields[1] + ": " + e.getCause());
            return 1;
        }
        finally
        {
            System.setOut(stdout);
            System.setErr(stderr);
        }
    }

    private static int nodetool(String[] fields) throws Exception
    {
        try (PrintStream out = new PrintStream(new FileOutputStream(fields[1]), false, "UTF-8");
             PrintStream err = new PrintStream(new FileOutputStream(fields[2]), false, "UTF-8"))
        {
            String[] arguments = Arrays.copyOfRange(fields, 3, fields.length);
            return new NodeTool(new Probes(), new Output(out, err)).execute(arguments);
        }
        catch (Exit e)
        {
            return e.status;
        }
    }

    private static String pending(String file, String session, String isTransient)
    {
        try
        {
            Util.initDatabaseDescriptor();
            Descriptor descriptor = Descriptor.fromFileWithComponent(new File(file), false).left;
            descriptor.getMetadataSerializer().mutateRepairMetadata(descriptor, 0, TimeUUID.fromString(session), Boolean.parseBoolean(isTransient));
            return "ok";
        }
        catch (Exception e)
        {
            e.printStackTrace();
            return "failed " + String.valueOf(e).replace('\n', ' ');
        }
    }

    private static String verifyTable(String keyspace, String table)
    {
        try
        {
            if (!schemaLoaded)
            {
                loadSchema();
            }
            ColumnFamilyStore store = Keyspace.openWithoutSSTables(keyspace).getColumnFamilyStore(table);
            Directories.SSTableLister lister =
                store.getDirectories().sstableLister(Directories.OnTxnErr.THROW).skipTemporary(true);
            int verified = 0;
            for (Map.Entry<Descriptor, java.util.Set<Component>> sstable : lister.list().entrySet())
            {
                SSTableReader reader = SSTableReader.openNoValidation(sstable.getKey(), sstable.getValue(), store);
                verifySSTable(reader, store);
                reader.selfRef().release();
                verified++;
            }
            return "ok " + verified;
        }
        catch (Throwable e)
        {
            e.printStackTrace();
            return "failed " + String.valueOf(e).replace('\n', ' ');
        }
    }

    /** 6.0 keeps its schema in the cluster metadata log, 5.0 in system_schema. */
    private static void loadSchema() throws Exception
    {
        Util.initDatabaseDescriptor();
        try
        {
            Class<?> metadata = Class.forName("org.apache.cassandra.tcm.ClusterMetadataService");
            metadata.getMethod("initializeForTools", boolean.class).invoke(null, false);
        }
        catch (ClassNotFoundException e)
        {
            Schema.class.getMethod("loadFromDisk").invoke(Schema.instance);
        }
        schemaLoaded = true;
    }

    private static void verifySSTable(SSTableReader reader, ColumnFamilyStore store) throws Exception
    {
        IVerifier.Options options = IVerifier.options().extendedVerification(true).build();
        OutputHandler quiet = new OutputHandler.LogOutput();
        try (IVerifier verifier = reader.getVerifier(store, quiet, true, options))
        {
            verifier.verify();
        }
    }
}
