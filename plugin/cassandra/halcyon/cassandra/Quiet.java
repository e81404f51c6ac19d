package halcyon.cassandra;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.turbo.TurboFilter;
import ch.qos.logback.core.spi.FilterReply;
import org.slf4j.ILoggerFactory;
import org.slf4j.LoggerFactory;
import org.slf4j.Marker;

/**
 * While it is open, what a class logs at INFO on this thread is dropped: Cassandra tells of each table whose strategy is set, and a node may
 * have thousands. Other threads and warnings are logged as ever, and so is all with another logger than logback.
 */
final class Quiet implements AutoCloseable
{
    private final Runnable end;

    private Quiet(Runnable end)
    {
        this.end = end;
    }

    static Quiet about(Class<?> one)
    {
        ILoggerFactory factory = LoggerFactory.getILoggerFactory();
        boolean isLogback = factory.getClass().getName().equals("ch.qos.logback.classic.LoggerContext");
        return new Quiet(isLogback ? Filter.install((LoggerContext) factory, one.getName()) : () -> {});
    }

    @Override
    public void close()
    {
        end.run();
    }

    /** A class of its own: without logback it cannot be loaded. */
    private static final class Filter extends TurboFilter
    {
        private final Thread thread = Thread.currentThread();
        private final String name;

        private Filter(String name)
        {
            this.name = name;
        }

        static Runnable install(LoggerContext context, String name)
        {
            Filter filter = new Filter(name);
            context.addTurboFilter(filter);
            return () -> context.getTurboFilterList().remove(filter);
        }

        @Override
        public FilterReply decide(Marker marker, Logger logger, Level level, String format, Object[] parameters, Throwable error)
        {
            boolean isDropped = !level.isGreaterOrEqual(Level.WARN) && Thread.currentThread() == thread && logger.getName().equals(name);
            return isDropped ? FilterReply.DENY : FilterReply.NEUTRAL;
        }
    }
}
