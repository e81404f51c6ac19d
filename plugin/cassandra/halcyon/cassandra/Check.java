package halcyon.cassandra;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/**
 * {@code halcyon plugin check}: what this jar would find on a node, before it is there. It runs with the node's class path, and starts none
 * of its classes.
 *
 * <p>The argument is the node's release; options are properties, as the node would have them. On standard output goes a length of four
 * bytes, then as many bytes: texts, each with its length before it, by two: {@code ok}, {@code warning} or {@code problem}, and what.
 */
public final class Check
{
    private final List<String> found = new ArrayList<>();

    private Check()
    {
    }

    public static void main(String[] arguments) throws IOException, InterruptedException
    {
        PrintStream answers = System.out;
        // Where a logger without a configuration writes.
        System.setOut(System.err);
        Check check = new Check();
        check.release(arguments[0]);
        check.service();
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        for (String text : check.found)
            Frame.putText(new DataOutputStream(bytes), text);
        DataOutputStream to = new DataOutputStream(answers);
        to.writeInt(bytes.size());
        bytes.writeTo(to);
        to.flush();
        // The process of the service is a child of a thread that never ends.
        System.exit(0);
    }

    private void tell(String kind, String what)
    {
        found.add(kind);
        found.add(what);
    }

    private void release(String release) throws IOException
    {
        Set<String> missing = Releases.missing();
        for (String one : missing)
            tell("problem", "the jar does not fit this release, which lacks " + one);
        if (!missing.isEmpty())
            return;
        if (Releases.isTested(release))
            tell("ok", "the jar was tested with this release, and finds all that it uses of it");
        else
            tell("warning", "the jar was not tested with this release, but finds all that it uses of it");
    }

    private void service() throws InterruptedException
    {
        Options options;
        try
        {
            options = Options.read();
        }
        catch (IOException | IllegalArgumentException e)
        {
            tell("problem", e.getMessage());
            return;
        }
        Service service = new Service(options);
        service.startAhead();
        if (service.pid() == 0)
            tell("problem", options.binary + " does not start as a service: " + service.state());
        else
            tell("ok", options.binary + " starts as a service: " + service.program());
    }
}
