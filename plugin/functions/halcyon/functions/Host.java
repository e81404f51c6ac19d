package halcyon.functions;

import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.FileOutputStream;
import java.io.FileDescriptor;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Runs user-defined functions for a node, which starts this program and talks to it through its standard streams.
 *
 * A request is its length, an operation and an id; an answer its length, a status and a value or a text. One request is done after the
 * other; who waits too long ends this process.
 */
public final class Host {
    private static final int DEFINE = 1, CALL = 2, FOLD = 3, BEGIN = 4;
    private static final byte VALUE = 0, FAILED = 1, REFUSED = 2, ENDS = 3;

    private final Map<Integer, Function> functions = new HashMap<>();
    private final Compiler compiler;

    private Host(Compiler compiler) {
        this.compiler = compiler;
    }

    public static void main(String[] arguments) throws IOException {
        DataInputStream in = new DataInputStream(System.in);
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(new FileOutputStream(FileDescriptor.out)));
        System.setOut(new PrintStream(new FileOutputStream(FileDescriptor.err)));
        Host host = new Host(new Compiler(library(Path.of(arguments[0]))));
        answer(out, VALUE, null);
        while (true) {
            ByteBuffer request;
            try {
                byte[] bytes = new byte[in.readInt()];
                in.readFully(bytes);
                request = ByteBuffer.wrap(bytes);
            } catch (EOFException end) {
                return;
            }
            host.serve(request, out);
        }
    }

    /** Everything that bodies may name beside the JVM's own classes; the files are not needed afterwards. */
    private static Map<String, byte[]> library(Path root) throws IOException {
        Map<String, byte[]> library = new HashMap<>();
        try (Stream<Path> paths = Files.walk(root)) {
            for (Path path : paths.filter(path -> path.toString().endsWith(".class")).collect(Collectors.toList())) {
                String name = root.relativize(path).toString();
                library.put(name.substring(0, name.length() - ".class".length()), Files.readAllBytes(path));
            }
        }
        for (String name : library.keySet())
            try {
                Class.forName(name.replace('/', '.'));
            } catch (ClassNotFoundException e) {
                throw new IOException(e);
            }
        return library;
    }

    private void serve(ByteBuffer request, DataOutputStream out) throws IOException {
        try {
            answer(out, VALUE, serve(request));
        } catch (Refused refused) {
            answer(out, REFUSED, refused.getMessage().getBytes(StandardCharsets.UTF_8));
        } catch (VirtualMachineError error) {
            // What else it has damaged nobody knows.
            functions.clear();
            answer(out, ENDS, error.toString().getBytes(StandardCharsets.UTF_8));
            Runtime.getRuntime().halt(1);
        } catch (Throwable thrown) {
            answer(out, FAILED, String.valueOf(thrown).getBytes(StandardCharsets.UTF_8));
        }
    }

    private byte[] serve(ByteBuffer request) throws Refused {
        int operation = request.get();
        int id = request.getInt();
        if (operation == DEFINE) {
            functions.put(id, Function.read(request, compiler, id));
            return null;
        }
        if (operation == BEGIN) {
            functions.get(id).begin();
            return null;
        }
        if (operation == FOLD)
            return functions.get(id).fold(request);
        if (operation != CALL)
            throw new IllegalArgumentException("operation " + operation);
        return functions.get(id).call(request);
    }

    private static void answer(DataOutputStream out, byte status, byte[] value) throws IOException {
        out.writeInt(5 + (value == null ? 0 : value.length));
        out.writeByte(status);
        out.writeInt(value == null ? -1 : value.length);
        if (value != null)
            out.write(value);
        out.flush();
    }
}
