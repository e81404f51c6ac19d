package halcyon.cassandra;

import java.util.List;
import java.util.Map;

/** What an operator sees and does, by JMX. The types are open ones, which every client reads; what is not known is null. */
public interface HalcyonMBean
{
    String NAME = "halcyon.cassandra:type=Halcyon";

    /** Whether compactions are handed over. False: Cassandra's own tasks run. */
    boolean isEnabled();

    void setEnabled(boolean enabled);

    /** Whether the agent has handed all tables over; false: those that `halcyon compact --node` has set. */
    boolean isForAllTables();

    /** running PID, or why it does not run: exit status, and what it said on standard error. */
    String getService();

    /** Of the process; null if none runs. */
    Long getServicePid();

    /** Of the process that ended last; null if none has. */
    Integer getServiceExitStatus();

    /** The last lines on standard error of the process that ended last. */
    List<String> getServiceOutput();

    /** Starts of the process after the first. */
    long getRestarts();

    /** Of the process, resident; null if none runs. */
    Long getMemoryBytes();

    /** Milliseconds of processors that all processes have used. */
    long getCpuMillis();

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

    /** Options of some tables, by pattern and name. */
    Map<String, String> getTableOptions();

    /** Sets latency_target or throughput_mib of the tables that a pattern names, until the node stops; none takes it away. */
    void setTableOption(String pattern, String name, String value);

    /** Which tables the agent hands over, until the node stops: keyspace.table or keyspace, parted by commas, with * for any letters. */
    String getInclude();

    void setInclude(String names);

    String getExclude();

    void setExclude(String names);

    /** Stored bytes of inputs that compaction may read in a second for that target's sake; null without one. */
    Long getPaceBytesPerSecond();

    /** The same, and why. */
    String getPace();

    /** Compactions that stayed Cassandra's, by reason. */
    Map<String, Long> getReasons();

    /** Failures, by message; the last few. */
    Map<String, Long> getFailures();

    /** What stays with Cassandra's task after failures is tried again at once: tables, the start of the process, the self-test. */
    void forgetFailures();
}
