package halcyon.cassandra;

import java.lang.instrument.Instrumentation;
import java.lang.management.ManagementFactory;
import javax.management.ObjectName;

/**
 * {@code -javaagent:halcyon-cassandra.jar}: hands this node's compactions to Halcyon. It changes no bytecode.
 *
 * <p>It waits until Cassandra has started, and touches none of its classes before. On a release that it was not compiled against it says
 * so once and does nothing.
 */
public final class Agent
{
    private static final String NODE = "org.apache.cassandra.db:type=StorageService";

    public static void premain(String arguments, Instrumentation instrumentation)
    {
        Thread thread = new Thread(Agent::run, "halcyon-start");
        thread.setDaemon(true);
        thread.start();
    }

    private static void run()
    {
        try
        {
            ObjectName node = new ObjectName(NODE);
            while (!ManagementFactory.getPlatformMBeanServer().isRegistered(node))
                Thread.sleep(200);
            Plugin.start();
        }
        catch (InterruptedException e)
        {
            Thread.currentThread().interrupt();
        }
        catch (Throwable e)
        {
            // The log may be what is missing.
            System.err.println("halcyon: not started, compactions stay Cassandra's: " + e);
        }
    }
}
