package halcyon.cassandra;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The process that compacts: started at the first task, started again after it has died, killed when it is silent.
 *
 * <p>The thread that starts it lives as long as it does: the kernel kills it with that thread.
 */
public final class Service
{
    private static final Logger logger = LoggerFactory.getLogger(Service.class);
    private static final long PING_SECONDS = 5;
    private static final long SILENT_SECONDS = 60;
    private static final long START_SECONDS = 30;
    private static final long LONGEST_PAUSE_SECONDS = 60;
    /** A process whose pipe is closed ends by itself, with a status of its own. */
    private static final long END_SECONDS = 2;
    private static final int MOST_LINES = 20, LONGEST_LINE = 500;

    /** A message that the process has ended. */
    private static final Frame END = Frame.end();

    private final Options options;
    private final AtomicLong ids = new AtomicLong();
    /** Read without the lock too: a collector of metrics does not wait for a start. */
    private volatile Running running;
    private String why = "not started yet: no compaction was handed over";
    private Integer exitStatus;
    private List<String> lastWords = List.of();
    private volatile long starts;
    private long pauseSeconds;
    private long notBefore = System.nanoTime();
    /** Why it did not start, as was logged last. */
    private String told;

    Service(Options options)
    {
        this.options = options;
    }

    /** Why there is no program to start; null if there is one. */
    public String problem()
    {
        if (!Files.exists(options.binary))
            return options.binary + " does not exist, or this user may not look there";
        if (!Files.isRegularFile(options.binary))
            return options.binary + " is not a file";
        return Files.isExecutable(options.binary) ? null : options.binary + " is not an executable file for the user that runs this node";
    }

    /** It has ended, and is not restarted for a moment. */
    public synchronized boolean isPaused()
    {
        return running == null && System.nanoTime() - notBefore < 0;
    }

    synchronized void retryAtOnce()
    {
        pauseSeconds = 0;
        notBefore = System.nanoTime();
    }

    synchronized String state()
    {
        if (running != null)
            return "running " + running.process.pid();
        String problem = problem();
        return problem == null ? why : problem;
    }

    /** Of the program that runs, or would: another one after it was replaced. */
    String identity()
    {
        Running now = running;
        return now == null ? identityOfFile() : now.identity;
    }

    private String identityOfFile()
    {
        try
        {
            return Files.getLastModifiedTime(options.binary) + " " + Files.size(options.binary);
        }
        catch (IOException e)
        {
            return "";
        }
    }

    /** Its name and release, as it says. */
    String program()
    {
        Running now = running;
        return now == null ? "" : now.program;
    }

    /** 0: none runs. */
    long pid()
    {
        Running now = running;
        return now == null ? 0 : now.process.pid();
    }

    /** Of the process that ended last; null if none has. */
    synchronized Integer exitStatus()
    {
        return exitStatus;
    }

    /** The last lines on standard error of the process that ended last. */
    synchronized List<String> lastWords()
    {
        return lastWords;
    }

    /** After the first start. */
    long restarts()
    {
        return Math.max(0, starts - 1);
    }

    /** Starts it before there is work, so that the log of the node's start says why it cannot be. */
    void startAhead() throws InterruptedException
    {
        try
        {
            running();
        }
        catch (IOException e)
        {
            logger.debug("Halcyon: not started ahead", e);
        }
    }

    /** A conversation about one task with a process that runs. */
    public Conversation begin() throws IOException, InterruptedException
    {
        Conversation conversation = new Conversation(running(), ids.incrementAndGet());
        conversation.process.conversations.put(conversation.id, conversation);
        if (conversation.process.ended)
            conversation.heard.add(END);
        return conversation;
    }

    private synchronized Running running() throws IOException, InterruptedException
    {
        if (running != null)
            return running;
        if (isPaused())
            throw new NotStarted("the service has ended, and is not started again yet");
        String problem = problem();
        if (problem != null)
            throw new NotStarted(problem);
        Running started = new Running();
        started.start();
        if (!started.welcomed())
        {
            paused(started);
            tellOnce();
            throw new NotStarted("the service does not start");
        }
        told = null;
        starts = starts + 1;
        if (starts > 1)
            logger.info("Halcyon: {} is started again, pid {}", started.program, started.process.pid());
        running = started;
        return started;
    }

    /** It is tried again and again, and mostly fails as before. */
    private void tellOnce()
    {
        if (why.equals(told))
            return;
        told = why;
        logger.warn("Halcyon: {} does not start as a service ({}); compactions stay Cassandra's until it does", options.binary, why);
    }

    private void paused(Running ended)
    {
        why = ended.end;
        exitStatus = ended.exitStatus;
        lastWords = ended.lastWords();
        pauseSeconds = Math.min(LONGEST_PAUSE_SECONDS, Math.max(1, 2 * pauseSeconds));
        notBefore = System.nanoTime() + TimeUnit.SECONDS.toNanos(pauseSeconds);
    }

    private synchronized void over(Running ended)
    {
        if (running != ended)
            return;
        running = null;
        paused(ended);
        logger.warn("Halcyon: the service ended ({}); its compactions are done by Cassandra, the next starts it again", ended.end);
    }

    /** A task has succeeded. */
    synchronized void works()
    {
        pauseSeconds = 0;
    }

    /** No compaction was handed over, and none has failed. */
    public static final class NotStarted extends IOException
    {
        private static final long serialVersionUID = 1;

        NotStarted(String reason)
        {
            super(reason);
        }
    }

    private final class Running
    {
        final Map<Long, Conversation> conversations = new ConcurrentHashMap<>();
        private final BlockingQueue<Boolean> greeted = new LinkedBlockingQueue<>();
        private final Object writing = new Object();
        private final Deque<String> said = new ArrayDeque<>();
        /** Before its start: a program that is replaced meanwhile is taken for the old one, and tested once more later. */
        final String identity = identityOfFile();
        private DataOutputStream to;
        volatile Process process;
        volatile String program = "";
        volatile boolean ended;
        volatile String end = "";
        volatile Integer exitStatus;
        private volatile long lastHeard = System.nanoTime();
        private volatile boolean welcome;
        private volatile boolean isSilent;

        void start()
        {
            daemon("halcyon-service", this::run);
        }

        boolean welcomed() throws InterruptedException
        {
            Boolean answer = greeted.poll(START_SECONDS, TimeUnit.SECONDS);
            if (answer != null)
                return answer;
            isSilent = true;
            kill();
            // Until it is known how it ended.
            greeted.poll(2 * END_SECONDS, TimeUnit.SECONDS);
            return false;
        }

        private void run()
        {
            Thread log = null;
            String problem = "";
            try
            {
                ProcessBuilder builder = new ProcessBuilder(options.binary.toString(), "compact", "--service");
                builder.environment().keySet().removeIf(name -> !name.equals("HALCYON_IO_ENGINE"));
                process = builder.start();
                log = daemon("halcyon-service-log", this::log);
                confine();
                converse();
            }
            catch (Throwable e)
            {
                // Of a broken pipe the process itself says more.
                boolean isPipe = process != null && e instanceof IOException && !(e instanceof Failed);
                problem = isPipe ? "" : e instanceof IOException ? e.getMessage() : e.toString();
            }
            try
            {
                if (process != null)
                    bury(log, problem);
                else
                    end = problem;
            }
            catch (InterruptedException e)
            {
                Thread.currentThread().interrupt();
            }
            finally
            {
                gone();
            }
        }

        /** Returns when the process has closed its end. */
        private void converse() throws IOException
        {
            to = new DataOutputStream(new BufferedOutputStream(process.getOutputStream(), 1 << 16));
            hello();
            DataInputStream from = new DataInputStream(new BufferedInputStream(process.getInputStream(), 1 << 16));
            daemon("halcyon-service-pulse", this::pulse);
            for (Frame frame; (frame = Frame.read(from)) != null;)
                heard(frame);
        }

        /** Why it ended: its own status and words before what became of the pipe, which says the least. */
        private void bury(Thread log, String problem) throws InterruptedException
        {
            boolean endedItself = process.waitFor(END_SECONDS, TimeUnit.SECONDS);
            if (!endedItself)
                process.destroyForcibly();
            int status = process.waitFor();
            log.join(TimeUnit.SECONDS.toMillis(1));
            exitStatus = status;
            // As a shell counts: the JVM adds the signal to 128.
            String how = "exit status " + status + (status > 128 ? ", signal " + (status - 128) : "");
            List<String> words = lastWords();
            if (isSilent)
                how = "it did not answer within " + START_SECONDS + " s and was killed";
            else if (!problem.isEmpty())
                how = endedItself ? how + ": " + problem : problem;
            end = words.isEmpty() || welcome ? how : how + "; it said: " + String.join(" | ", words);
        }

        /** Into the control groups that an operator has made, before it has work. Without them it works too. */
        private void confine()
        {
            for (Path group : options.groups)
            {
                try
                {
                    Files.write(group.resolve("cgroup.procs"), Long.toString(process.pid()).getBytes(StandardCharsets.US_ASCII), StandardOpenOption.WRITE);
                }
                catch (IOException e)
                {
                    logger.warn("Halcyon: the service runs outside of the control group {}: {}", group, e.toString());
                }
            }
        }

        private void gone()
        {
            kill();
            // Reported only now: the listener may delete the files that the process wrote.
            ended = true;
            greeted.add(false);
            over(this);
            conversations.values().forEach(conversation -> conversation.heard.add(END));
        }

        private void hello() throws IOException
        {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            DataOutputStream body = new DataOutputStream(bytes);
            body.writeInt(Frame.MAGIC);
            body.writeShort(Frame.VERSION);
            body.writeShort(Frame.VERSION);
            Frame.putText(body, "Cassandra");
            body.writeLong(options.memory);
            body.writeByte(options.idle.ordinal());
            send(Frame.HELLO, 0, bytes.toByteArray());
        }

        private void heard(Frame frame) throws IOException
        {
            lastHeard = System.nanoTime();
            if (frame.kind == Frame.WELCOME)
            {
                if (frame.body.getInt() != Frame.MAGIC || frame.body.getShort() != Frame.VERSION)
                    throw new Failed("Protocol", "it speaks another protocol");
                program = frame.text();
                welcome = true;
                greeted.add(true);
                return;
            }
            Conversation conversation = conversations.get(frame.task);
            if (conversation != null)
                conversation.heard.add(frame);
            else if (frame.kind != Frame.PONG)
                logger.debug("Halcyon: a message about task {}, which has ended", frame.task);
        }

        void send(byte kind, long task, byte[] body) throws IOException
        {
            synchronized (writing)
            {
                Frame.write(to, kind, task, body);
            }
        }

        private void pulse()
        {
            try
            {
                for (long number = 1; process.isAlive(); number++)
                {
                    send(Frame.PING, 0, java.nio.ByteBuffer.allocate(8).putLong(number).array());
                    Thread.sleep(TimeUnit.SECONDS.toMillis(PING_SECONDS));
                    if (System.nanoTime() - lastHeard > TimeUnit.SECONDS.toNanos(SILENT_SECONDS))
                    {
                        logger.warn("Halcyon: the service is silent for {} s and is killed", SILENT_SECONDS);
                        process.destroyForcibly();
                        return;
                    }
                }
            }
            catch (IOException e)
            {
                // The reader tells of its end.
                logger.debug("Halcyon: the pipe to the service is closed", e);
            }
            catch (InterruptedException e)
            {
                Thread.currentThread().interrupt();
            }
        }

        private void log()
        {
            try (BufferedReader lines = new BufferedReader(new InputStreamReader(process.getErrorStream(), StandardCharsets.UTF_8)))
            {
                for (String line; (line = lines.readLine()) != null;)
                {
                    keep(line);
                    if (welcome)
                        logger.warn("Halcyon: {}", line);
                }
            }
            catch (IOException e)
            {
                logger.debug("Halcyon: the service's log ended", e);
            }
        }

        private void keep(String line)
        {
            synchronized (said)
            {
                if (said.size() == MOST_LINES)
                    said.removeFirst();
                said.addLast(line.substring(0, Math.min(line.length(), LONGEST_LINE)));
            }
        }

        List<String> lastWords()
        {
            synchronized (said)
            {
                return List.copyOf(said);
            }
        }

        /** Returns when it has ended. */
        void kill()
        {
            Process killed = process;
            if (killed == null)
                return;
            killed.destroyForcibly();
            while (true)
            {
                try
                {
                    killed.waitFor();
                    return;
                }
                catch (InterruptedException e)
                {
                    // Its files may be deleted next: it must be gone.
                    continue;
                }
            }
        }
    }

    private static Thread daemon(String name, Runnable body)
    {
        Thread thread = new Thread(body, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    /** The messages about one task. */
    public final class Conversation implements AutoCloseable
    {
        public final long id;
        private final Running process;
        private final BlockingQueue<Frame> heard = new LinkedBlockingQueue<>();

        private Conversation(Running process, long id)
        {
            this.process = process;
            this.id = id;
        }

        public void send(byte kind, byte[] body) throws IOException
        {
            process.send(kind, id, body);
        }

        /** The next message; null after the timeout. Fails when the process has ended. */
        public Frame poll(long millis) throws IOException, InterruptedException
        {
            Frame frame = heard.poll(millis, TimeUnit.MILLISECONDS);
            if (frame == END)
                throw new Failed("ServiceEnded", "the service ended: " + process.end);
            return frame;
        }

        public void succeeded()
        {
            works();
        }

        /** The machine keeps the process from its work. */
        public boolean isHeldUp()
        {
            return HeldUp.is(process.process.pid(), options.idle == Idle.ALWAYS);
        }

        /** The process does not obey. Returns when it has ended. */
        public void kill()
        {
            process.kill();
        }

        @Override
        public void close()
        {
            process.conversations.remove(id);
        }
    }
}
