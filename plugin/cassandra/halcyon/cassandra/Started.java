package halcyon.cassandra;

import java.lang.management.ManagementFactory;
import javax.management.MalformedObjectNameException;
import javax.management.ObjectName;

import org.apache.cassandra.service.StorageService;

/** Whether this JVM is a node that has started. Cassandra's offline tools are not, and a node reads its schema before it is one. */
final class Started
{
    static final String STORAGE = "org.apache.cassandra.db:type=StorageService";

    private Started()
    {
    }

    static boolean isNode()
    {
        try
        {
            // First, because the other would make a service where none is running.
            return ManagementFactory.getPlatformMBeanServer().isRegistered(new ObjectName(STORAGE)) && StorageService.instance.isDaemonSetupCompleted();
        }
        catch (MalformedObjectNameException e)
        {
            throw new IllegalStateException(e);
        }
    }
}
