package halcyon.cassandra;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.time.Duration;

/** What processes of the service have used. */
final class Usage
{
    private static final String RESIDENT = "VmRSS:";

    private long cpuOfEnded;
    private long pid;
    private long cpuOfPid;

    /** Milliseconds of processors: of those that have ended what was seen last, and of this one (0: none runs). */
    synchronized long cpuMillis(long running)
    {
        long used = running == 0 ? 0 : ProcessHandle.of(running).flatMap(process -> process.info().totalCpuDuration()).map(Duration::toMillis).orElse(0L);
        if (running != pid)
        {
            cpuOfEnded += cpuOfPid;
            pid = running;
            cpuOfPid = 0;
        }
        cpuOfPid = Math.max(cpuOfPid, used);
        return cpuOfEnded + cpuOfPid;
    }

    /** Null if it has ended. */
    static Long memoryBytes(long running)
    {
        if (running == 0)
            return null;
        try
        {
            for (String line : Files.readAllLines(Paths.get("/proc/" + running + "/status"), StandardCharsets.ISO_8859_1))
                if (line.startsWith(RESIDENT))
                    return Long.parseLong(line.substring(RESIDENT.length()).replace("kB", "").trim()) << 10;
        }
        catch (IOException e)
        {
            return null;
        }
        return null;
    }
}
