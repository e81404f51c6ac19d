package halcyon.cassandra;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.compaction.CompactionStrategyManager;
import org.apache.cassandra.db.compaction.Line;
import org.apache.cassandra.schema.CompactionParams;
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

    private final Plugin plugin;
    private final Options options;
    private volatile Names include;
    private volatile Names exclude;
    private volatile boolean hasLooked;
    private final ScheduledExecutorService executor = Executors.newSingleThreadScheduledExecutor(work -> {
        Thread thread = new Thread(work, "halcyon-overlay");
        thread.setDaemon(true);
        return thread;
    });

    Overlay(Plugin plugin)
    {
        this.plugin = plugin;
        options = plugin.options;
        include = options.include;
        exclude = options.exclude;
    }

    void start()
    {
        Line.running().listen(this);
        executor.scheduleWithFixedDelay(this::look, 0, EVERY_SECONDS, TimeUnit.SECONDS);
    }

    /** The tables that were there at the start are handed over. */
    boolean hasLooked()
    {
        return hasLooked;
    }

    Names include()
    {
        return include;
    }

    Names exclude()
    {
        return exclude;
    }

    /** Tables that are no longer meant get Cassandra's own strategies back. */
    void select(Names include, Names exclude)
    {
        this.include = include;
        this.exclude = exclude;
        executor.execute(this::look);
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

    @Override
    public void onDropTable(TableMetadata table, boolean dropData)
    {
        plugin.counters.forget(table.keyspace + '.' + table.name);
    }

    private void look()
    {
        int changed = 0;
        try (Quiet quiet = Quiet.about(CompactionStrategyManager.class))
        {
            for (ColumnFamilyStore store : ColumnFamilyStore.all())
                if (isSet(store))
                    changed++;
        }
        if (!hasLooked)
            logger.info("Halcyon: {} tables of this node are handed over to {}: {}", changed, options.binary, plugin.service.state());
        else if (changed > 0)
            logger.info("Halcyon: {} tables of this node are handed over, or no longer", changed);
        hasLooked = true;
    }

    private boolean isSet(ColumnFamilyStore store)
    {
        try
        {
            return apply(store);
        }
        catch (Throwable e)
        {
            logger.warn("Halcyon: compactions of {}.{} stay Cassandra's", store.keyspace.getName(), store.getTableName(), e);
            return false;
        }
    }

    private boolean apply(ColumnFamilyStore store)
    {
        String keyspace = store.keyspace.getName();
        String table = store.getTableName();
        CompactionParams now = store.getCompactionStrategyManager().getCompactionParams();
        String strategy = now.klass().getName();
        boolean isMeant = !SchemaConstants.isSystemKeyspace(keyspace) && include.have(keyspace, table) && !exclude.have(keyspace, table);
        String wanted = isMeant ? Strategies.ours(strategy, Line.running().name()) : Strategies.stock(strategy);
        if (wanted == null)
            return false;
        // New parameters switch compaction on and off, which an operator may have done otherwise.
        boolean isDisabled = store.isAutoCompactionDisabled();
        Map<String, String> parameters = new HashMap<>(now.asMap());
        parameters.put(CompactionParams.Option.CLASS.toString(), wanted);
        store.setCompactionParameters(parameters);
        if (isDisabled && !store.isAutoCompactionDisabled())
            store.disableAutoCompaction();
        else if (!isDisabled && store.isAutoCompactionDisabled())
            store.enableAutoCompaction();
        return true;
    }
}
