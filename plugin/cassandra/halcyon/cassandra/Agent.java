package halcyon.cassandra;

import java.lang.instrument.Instrumentation;

/**
 * {@code -javaagent:halcyon-cassandra.jar}: hands this node's compactions to Halcyon. It changes no bytecode.
 *
 * <p>It waits until Cassandra has started, and touches none of its classes before. On a release that it was not compiled against it says
 * so once and does nothing.
 */
public final class Agent
{
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
            while (!Started.isNode())
                Thread.sleep(200);
            Plugin.startForAllTables();
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
