package halcyon.cassandra;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.net.UnknownHostException;
import java.nio.charset.StandardCharsets;
import java.rmi.ConnectIOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import javax.management.InstanceNotFoundException;
import javax.management.JMException;
import javax.management.MBeanServerConnection;
import javax.management.RuntimeMBeanException;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;
import javax.net.ssl.SSLException;
import javax.rmi.ssl.SslRMIClientSocketFactory;

/**
 * {@code halcyon compact --node}: sets the strategies of a node's tables over JMX. It is a process beside {@code halcyon}, which cannot
 * speak JMX, and has no class of Cassandra's.
 *
 * <p>On standard input come requests, on standard output goes an answer to each: a length of four bytes, then that many bytes. Both are
 * texts, each with its length before it: passwords are neither in the arguments nor in the environment, where others see them.
 *
 * <pre>
 * request: set|keep|remove, true|false (only look), host, port, user, password, names of tables and keyspaces, parted by commas, and
 *          properties of the JVM, as name and value. keep: unknown names are not an error, for they may come
 * answer:  done, release, state of the service, true|false (enabled); and for each table its name, what was done, the strategy before and
 *          after, and a reason; the action is set, kept (it was so), left (it cannot be) or unknown
 *          away|denied|release|unknown|refused, and why
 * </pre>
 */
public final class Sidecar
{
    private Sidecar()
    {
    }

    /** Why nothing, or not everything, was done; the kind is an answer's first text. */
    static final class Refusal extends Exception
    {
        private static final long serialVersionUID = 1;

        final String kind;

        Refusal(String kind, String why)
        {
            super(why);
            this.kind = kind;
        }
    }

    public static void main(String[] arguments) throws IOException
    {
        DataInputStream requests = new DataInputStream(new BufferedInputStream(System.in));
        DataOutputStream answers = new DataOutputStream(System.out);
        while (true)
        {
            List<String> request;
            try
            {
                request = texts(requests);
            }
            catch (EOFException e)
            {
                return;
            }
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            for (String text : answer(request))
                Frame.putText(new DataOutputStream(bytes), text);
            answers.writeInt(bytes.size());
            bytes.writeTo(answers);
            answers.flush();
        }
    }

    private static List<String> texts(DataInputStream from) throws IOException
    {
        List<String> texts = new ArrayList<>();
        for (int left = from.readInt(); left > 0;)
        {
            byte[] text = new byte[from.readInt()];
            from.readFully(text);
            texts.add(new String(text, StandardCharsets.UTF_8));
            left -= Integer.BYTES + text.length;
        }
        return texts;
    }

    private static List<String> answer(List<String> request)
    {
        for (int i = 7; i < request.size(); i += 2)
            System.setProperty(request.get(i), request.get(i + 1));
        try (JMXConnector connector = connect(request.get(2), request.get(3), request.get(4), request.get(5)))
        {
            return ask(connector.getMBeanServerConnection(), request);
        }
        catch (Refusal e)
        {
            return List.of(e.kind, e.getMessage());
        }
        catch (IOException e)
        {
            return List.of("away", "the connection is lost: " + innermost(e));
        }
    }

    private static List<String> ask(MBeanServerConnection connection, List<String> request) throws IOException, Refusal
    {
        try
        {
            boolean looksOnly = Boolean.parseBoolean(request.get(1));
            return new NodeTables(connection, request.get(0), looksOnly, request.get(6)).all();
        }
        catch (InstanceNotFoundException e)
        {
            throw new Refusal("away", "no Cassandra, or not yet all of it: it does not have " + e.getMessage());
        }
        catch (SecurityException e)
        {
            throw new Refusal("refused", "its JMX does not permit that to the user: " + e.getMessage());
        }
        catch (RuntimeMBeanException e)
        {
            throw new Refusal("refused", String.valueOf(innermost(e).getMessage()));
        }
        catch (JMException e)
        {
            throw new Refusal("refused", innermost(e).toString());
        }
    }

    private static JMXConnector connect(String host, String port, String user, String password) throws Refusal
    {
        Map<String, Object> how = new HashMap<>();
        if (!user.isEmpty())
            how.put(JMXConnector.CREDENTIALS, new String[]{ user, password });
        if (Boolean.getBoolean("com.sun.management.jmxremote.ssl"))
            how.put("com.sun.jndi.rmi.factory.socket", new SslRMIClientSocketFactory());
        try
        {
            return JMXConnectorFactory.connect(new JMXServiceURL("service:jmx:rmi:///jndi/rmi://" + host + ':' + port + "/jmxrmi"), how);
        }
        catch (SecurityException e)
        {
            throw new Refusal("denied", "its JMX wants a user and a password (--username, --password-file): " + e.getMessage());
        }
        catch (IOException e)
        {
            if (innermost(e) instanceof UnknownHostException)
                throw new Refusal("away", "unknown host");
            String hint = "";
            for (Throwable cause = e; cause != null; cause = cause.getCause())
                if (cause instanceof SSLException || cause instanceof ConnectIOException)
                    hint = "no JMX there, or TLS on one side only, or with other keys (--ssl): ";
            throw new Refusal("away", hint + innermost(e).getMessage());
        }
    }

    static Throwable innermost(Throwable error)
    {
        Throwable cause = error;
        while (cause.getCause() != null)
            cause = cause.getCause();
        return cause;
    }
}
