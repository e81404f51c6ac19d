package halcyon.cassandra;

import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.schema.CompactionParams;
import org.apache.cassandra.schema.Schema;
import org.apache.cassandra.schema.SchemaChangeListener;
import org.apache.cassandra.schema.SchemaConstants;
import org.apache.cassandra.schema.TableMetadata;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Gives each table of this node a strategy that hands its tasks over, by Cassandra's local compaction parameters: the schema never names
 * our classes, or a node without the jar could not read it.
 *
 * <p>An ALTER of a table's compaction resets its parameters, so the tables are looked at after each change of the schema.
 */
final class Overlay implements SchemaChangeListener
{
    private static final Logger logger = LoggerFactory.getLogger(Overlay.class);
    /** Changes are looked for as often, should one not have been told. */
    private static final long EVERY_SECONDS = 30;

    private final Options options;
    private final ScheduledExecutorService executor = Executors.newSingleThreadScheduledExecutor(work -> {
        Thread thread = new Thread(work, "halcyon-overlay");
        thread.setDaemon(true);
        return thread;
    });

    Overlay(Options options)
    {
        this.options = options;
    }

    void start()
    {
        Schema.instance.registerListener(this);
        executor.scheduleWithFixedDelay(this::look, 0, EVERY_SECONDS, TimeUnit.SECONDS);
    }

    @Override
    public void onCreateTable(TableMetadata table)
    {
        executor.execute(this::look);
    }

    @Override
    public void onAlterTable(TableMetadata before, TableMetadata after, boolean affectStatements)
    {
        executor.execute(this::look);
    }

    private void look()
    {
        int changed = 0;
        for (ColumnFamilyStore store : ColumnFamilyStore.all())
        {
            try
            {
                if (apply(store))
                    changed++;
            }
            catch (Throwable e)
            {
                logger.warn("Halcyon: compactions of {}.{} stay Cassandra's", store.getKeyspaceName(), store.getTableName(), e);
            }
        }
        if (changed > 0)
            logger.info("Halcyon: compacts {} more tables of this node with {}", changed, options.binary);
    }

    private boolean apply(ColumnFamilyStore store)
    {
        String keyspace = store.getKeyspaceName();
        String table = store.getTableName();
        if (SchemaConstants.isSystemKeyspace(keyspace) || !options.include.have(keyspace, table) || options.exclude.have(keyspace, table))
            return false;
        CompactionParams now = store.getCompactionStrategyManager().getCompactionParams();
        String ours = Strategies.ours(now.klass().getName());
        if (ours == null)
            return false;
        // New parameters switch compaction on and off, which an operator may have done otherwise.
        boolean isDisabled = store.isAutoCompactionDisabled();
        store.getCompactionStrategyManager().overrideLocalParams(CompactionParams.create(CompactionParams.classFromName(ours), now.options()));
        if (isDisabled && !store.isAutoCompactionDisabled())
            store.disableAutoCompaction();
        else if (!isDisabled && store.isAutoCompactionDisabled())
            store.enableAutoCompaction();
        return true;
    }
}
