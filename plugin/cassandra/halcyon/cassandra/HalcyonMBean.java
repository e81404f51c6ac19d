package halcyon.cassandra;

import java.util.Map;

/** What an operator sees and does, by JMX. */
public interface HalcyonMBean
{
    String NAME = "halcyon.cassandra:type=Halcyon";

    /** Whether compactions are handed over. False: Cassandra's own tasks run. */
    boolean isEnabled();

    void setEnabled(boolean enabled);

    /** Whether the agent hands all tables over; false: those that `halcyon compact --node` has set. */
    boolean isForAllTables();

    /** running PID, stopped, or why it does not run. */
    String getService();

    /** Compactions that Halcyon did. */
    long getCompleted();

    /** Compactions that an operator or Cassandra stopped. */
    long getStopped();

    /** Compactions that Halcyon began and Cassandra's own task did. */
    long getFailed();

    long getBytesRead();

    long getBytesWritten();

    /** Milliseconds of Halcyon's compactions. */
    long getMillis();

    /** Milliseconds that they waited for answers about purging, which are part of those. */
    long getPurgeMillis();

    /** Which p99 of this node's reads compaction leaves them: off, or a duration like 10ms. */
    String getLatencyTarget();

    void setLatencyTarget(String target);

    /** Stored bytes of inputs that compaction may read in a second for that target's sake; the largest number without one. */
    long getPaceBytesPerSecond();

    /** The same, and why. */
    String getPace();

    /** Compactions that stayed Cassandra's, by reason. */
    Map<String, Long> getReasons();

    /** Failures, by message; the last few. */
    Map<String, Long> getFailures();

    /** Tables that stay with Cassandra's task after failures are tried again at once. */
    void forgetFailures();
}
