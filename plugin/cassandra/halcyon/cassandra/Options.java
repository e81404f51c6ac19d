package halcyon.cassandra;

import java.io.IOException;
import java.io.Reader;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;

/**
 * Options: {@code -Dhalcyon.NAME=VALUE}, else {@code NAME=VALUE} in the file that {@code -Dhalcyon.config} names, or in {@code
 * halcyon.properties} beside the jar.
 */
public final class Options
{
    private static final Set<String> NAMES = Set.of("binary", "enabled", "idle", "include", "exclude", "latency_target", "memory_mib", "verify", "failures",
                                                    "retry_minutes", "hung_seconds", "cgroup", "tables");

    /** The program. */
    public final Path binary;
    public final boolean enabled;
    /** Whether compactions run at idle priority: docs/operate/cassandra-plugin.md. */
    public final Idle idle;
    /** Which tables the agent hands over at the start. */
    final Names include;
    final Names exclude;
    /** Of some tables. */
    final String tables;
    /** Of reads, for the pace of compaction: see {@link Pace}. */
    public final String latencyTarget;
    /** Bytes that the program may hold. */
    public final long memory;
    /** Control groups that the program is put into. */
    public final List<Path> groups;
    /** Decode every row of the outputs before they are taken. */
    public final boolean verifyRows;
    /** Failures in a row after which a table stays with Cassandra's task, and for how many minutes. */
    public final int failures;
    public final long retryMinutes;
    /** How long the process may say nothing of a task that it is to do. */
    public final long hungSeconds;

    private Options(Properties given)
    {
        binary = Paths.get(given.getProperty("binary", usualBinary()));
        enabled = isTrue(given, "enabled", true);
        idle = Idle.of(given.getProperty("idle", "auto"));
        include = new Names(given.getProperty("include", "*"));
        exclude = new Names(given.getProperty("exclude", ""));
        tables = given.getProperty("tables", "");
        new TableOptions(tables);
        latencyTarget = given.getProperty("latency_target", "off");
        Pace.micros(latencyTarget);
        memory = number(given, "memory_mib", 256, 64, 1 << 20) << 20;
        groups = paths(given.getProperty("cgroup", ""));
        String verify = given.getProperty("verify", "checksums");
        if (!verify.equals("checksums") && !verify.equals("rows"))
            throw new IllegalArgumentException("halcyon.verify is checksums or rows, not " + verify);
        verifyRows = verify.equals("rows");
        failures = (int) number(given, "failures", 3, 1, 1000);
        retryMinutes = number(given, "retry_minutes", 30, 1, 1 << 20);
        hungSeconds = number(given, "hung_seconds", 600, 1, 1 << 20);
    }

    static Options read() throws IOException
    {
        Properties given = new Properties();
        String named = System.getProperty("halcyon.config");
        Path file = named != null ? Paths.get(named) : besideJar("halcyon.properties");
        if (file != null)
        {
            try (Reader reader = Files.newBufferedReader(file, StandardCharsets.UTF_8))
            {
                given.load(reader);
            }
            catch (IOException e)
            {
                throw new IOException("the options in " + file + " cannot be read: " + e, e);
            }
        }
        for (String name : System.getProperties().stringPropertyNames())
            if (name.startsWith("halcyon.") && !name.equals("halcyon.config"))
                given.setProperty(name.substring("halcyon.".length()), System.getProperty(name));
        Set<String> unknown = new TreeSet<>(given.stringPropertyNames());
        unknown.removeAll(NAMES);
        if (!unknown.isEmpty())
            throw new IllegalArgumentException("no options: " + unknown + "; there are " + new TreeSet<>(NAMES));
        return new Options(given);
    }

    private static String usualBinary()
    {
        Path beside = besideJar("halcyon");
        return beside != null ? beside.toString() : "/usr/bin/halcyon";
    }

    /** Null without a file. If the jar is a link, the file lies beside the target of the link. */
    private static Path besideJar(String name)
    {
        try
        {
            Path file = ownJar().resolveSibling(name);
            return Files.exists(file) ? file : null;
        }
        catch (IOException e)
        {
            // The jar was taken away while the node runs.
            return null;
        }
    }

    static Path ownJar() throws IOException
    {
        try
        {
            return Paths.get(Options.class.getProtectionDomain().getCodeSource().getLocation().toURI()).toRealPath();
        }
        catch (URISyntaxException e)
        {
            throw new IOException(e);
        }
    }

    private static List<Path> paths(String text)
    {
        return Arrays.stream(text.split(",")).map(String::trim).filter(path -> !path.isEmpty()).map(Paths::get).collect(Collectors.toList());
    }

    private static boolean isTrue(Properties given, String name, boolean usual)
    {
        String text = given.getProperty(name, Boolean.toString(usual));
        if (!text.equals("true") && !text.equals("false"))
            throw new IllegalArgumentException("halcyon." + name + " is true or false, not " + text);
        return text.equals("true");
    }

    private static long number(Properties given, String name, long usual, long least, long most)
    {
        return number(name, given.getProperty(name, Long.toString(usual)), least, most);
    }

    static long number(String name, String text, long least, long most)
    {
        long number;
        try
        {
            number = Long.parseLong(text.trim());
        }
        catch (NumberFormatException e)
        {
            number = least - 1;
        }
        if (number < least || number > most)
            throw new IllegalArgumentException("halcyon." + name + " is a number from " + least + " to " + most + ", not " + text);
        return number;
    }
}
