package halcyon.cassandra;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;

/**
 * Whether the machine keeps a process from its work: a thread of it waits for a device, as a long fsync does, or at idle priority for a
 * processor. The kernel says so in {@code /proc/PID/task/TID/stat}: {@code TID (NAME) STATE …}.
 */
final class HeldUp
{
    private HeldUp()
    {
    }

    static boolean is(long pid, boolean idle)
    {
        try (DirectoryStream<Path> threads = Files.newDirectoryStream(Paths.get("/proc/" + pid + "/task")))
        {
            for (Path thread : threads)
            {
                char state = state(thread);
                if (state == 'D' || idle && state == 'R')
                    return true;
            }
        }
        catch (IOException e)
        {
            // It has ended, which the reader of its messages tells.
            return false;
        }
        return false;
    }

    /** A blank if the thread has ended meanwhile. */
    private static char state(Path thread)
    {
        try
        {
            String said = new String(Files.readAllBytes(thread.resolve("stat")), StandardCharsets.ISO_8859_1);
            // A name may have brackets too.
            int name = said.lastIndexOf(") ");
            return name >= 0 && name + 2 < said.length() ? said.charAt(name + 2) : ' ';
        }
        catch (IOException e)
        {
            return ' ';
        }
    }
}
