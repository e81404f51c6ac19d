package halcyon.functions;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import javax.tools.Diagnostic;
import javax.tools.DiagnosticCollector;
import javax.tools.FileObject;
import javax.tools.ForwardingJavaFileManager;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileManager;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.StandardLocation;
import javax.tools.ToolProvider;

/** Compiles source in memory against `java.base` and the classes that bodies may name. */
final class Compiler {
    private final JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
    /** By name with slashes. */
    private final Map<String, byte[]> library;

    Compiler(Map<String, byte[]> library) {
        this.library = library;
    }

    private static final class Text extends SimpleJavaFileObject {
        private final String text;

        Text(String name, String text) {
            super(URI.create("string:///" + name + ".java"), Kind.SOURCE);
            this.text = text;
        }

        @Override
        public CharSequence getCharContent(boolean ignoreEncodingErrors) {
            return text;
        }
    }

    private static final class Binary extends SimpleJavaFileObject {
        final String name;
        final byte[] bytes;
        final ByteArrayOutputStream out = new ByteArrayOutputStream();

        Binary(String name, byte[] bytes) {
            super(URI.create("mem:///" + name + ".class"), Kind.CLASS);
            this.name = name;
            this.bytes = bytes;
        }

        @Override
        public InputStream openInputStream() {
            return new ByteArrayInputStream(bytes);
        }

        @Override
        public OutputStream openOutputStream() {
            return out;
        }
    }

    private final class Files extends ForwardingJavaFileManager<JavaFileManager> {
        final List<Binary> made = new ArrayList<>();

        Files() {
            super(compiler.getStandardFileManager(null, Locale.ENGLISH, null));
        }

        @Override
        public JavaFileObject getJavaFileForOutput(Location location, String name, JavaFileObject.Kind kind, FileObject sibling) {
            Binary binary = new Binary(name.replace('.', '/'), null);
            made.add(binary);
            return binary;
        }

        @Override
        public Iterable<JavaFileObject> list(Location location, String pkg, Set<JavaFileObject.Kind> kinds, boolean recurse)
            throws IOException {
            if (location != StandardLocation.CLASS_PATH)
                return super.list(location, pkg, kinds, recurse);
            String begin = pkg.replace('.', '/') + "/";
            List<JavaFileObject> found = new ArrayList<>();
            for (Map.Entry<String, byte[]> entry : library.entrySet()) {
                String name = entry.getKey();
                if (name.startsWith(begin) && name.indexOf('/', begin.length()) < 0)
                    found.add(new Binary(name, entry.getValue()));
            }
            return found;
        }

        @Override
        public String inferBinaryName(Location location, JavaFileObject file) {
            return file instanceof Binary ? ((Binary) file).name.replace('/', '.') : super.inferBinaryName(location, file);
        }
    }

    /** The bytes of the only class; {@code line} is the last line before the body. */
    byte[] compile(String name, String source, int line) throws Refused {
        DiagnosticCollector<JavaFileObject> problems = new DiagnosticCollector<>();
        Files files = new Files();
        // Strings are joined without `java.lang.invoke`, which bodies may not use.
        List<String> options =
            List.of("-proc:none", "-Xlint:none", "-nowarn", "-g:none", "-XDstringConcat=inline", "--limit-modules", "java.base");
        String simple = name.substring(name.lastIndexOf('.') + 1);
        boolean done = compiler.getTask(null, files, problems, options, null, List.of(new Text(simple, source))).call();
        if (!done)
            throw new Refused("Java source compilation failed:\n" + listed(problems, line));
        if (files.made.size() != 1)
            throw new Refused("Java UDF validation failed: [class declared as inner class]");
        return files.made.get(0).out.toByteArray();
    }

    private static String listed(DiagnosticCollector<JavaFileObject> problems, int line) {
        StringBuilder out = new StringBuilder();
        for (Diagnostic<?> problem : problems.getDiagnostics()) {
            if (problem.getKind() != Diagnostic.Kind.ERROR)
                continue;
            long at = problem.getLineNumber() - line;
            String text = problem.getMessage(Locale.ENGLISH).replaceAll("\\s*\n\\s*", " ");
            if (at < 1)
                out.append("GENERATED SOURCE ERROR: line ").append(problem.getLineNumber()).append(" (in generated source): ");
            else
                out.append("Line ").append(at).append(": ");
            out.append(text).append('\n');
        }
        // One that overflows its stack reports nothing.
        return out.length() > 0 ? out.toString() : "The compiler gave up: the source is nested too deeply, or too large\n";
    }
}
