package halcyon.functions;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.TreeSet;

/** Reads a compiled class and lists what in it is against the rules (Cassandra's {@code UDFByteCodeVerifier}). */
final class Verifier {
    private static final int UTF8 = 1, CLASS = 7, FIELD = 9, METHOD = 10, INTERFACE_METHOD = 11, NAME_AND_TYPE = 12;
    private static final int METHOD_HANDLE = 15, DYNAMIC = 17, INVOKE_DYNAMIC = 18;
    private static final int MONITOR_ENTER = 0xc2, MONITOR_EXIT = 0xc3, TABLE_SWITCH = 0xaa, LOOKUP_SWITCH = 0xab, WIDE = 0xc4;

    private final ByteBuffer in;
    private final String own;
    private final Set<String> errors = new TreeSet<>();
    private int[] tags;
    private int[] first;
    private int[] second;
    private String[] texts;

    private Verifier(String own, byte[] bytes) {
        this.own = own;
        this.in = ByteBuffer.wrap(bytes);
    }

    /** {@code execute} is the method that has the body. */
    static Set<String> verify(String own, byte[] bytes, String execute) {
        Verifier verifier = new Verifier(own, bytes);
        verifier.in.position(8);
        verifier.pool();
        verifier.references();
        verifier.members(execute);
        return verifier.errors;
    }

    private void pool() {
        int count = in.getShort() & 0xffff;
        tags = new int[count];
        first = new int[count];
        second = new int[count];
        texts = new String[count];
        for (int i = 1; i < count; i++) {
            tags[i] = in.get();
            switch (tags[i]) {
                case UTF8: {
                    byte[] bytes = new byte[in.getShort() & 0xffff];
                    in.get(bytes);
                    texts[i] = new String(bytes, StandardCharsets.UTF_8);
                    break;
                }
                case 3: case 4: in.getInt(); break;
                case 5: case 6: in.getLong(); i++; break;
                case CLASS: case 8: case 16: case 19: case 20: first[i] = in.getShort() & 0xffff; break;
                case METHOD_HANDLE: in.get(); in.getShort(); break;
                default:
                    first[i] = in.getShort() & 0xffff;
                    second[i] = in.getShort() & 0xffff;
            }
        }
    }

    private void references() {
        for (int i = 1; i < tags.length; i++) {
            switch (tags[i]) {
                case CLASS: check("L" + texts[first[i]].replaceFirst("^\\[+L?", "").replace(";", "") + ";", texts[first[i]]); break;
                case NAME_AND_TYPE: check(texts[second[i]], null); break;
                case METHOD: case INTERFACE_METHOD: call(texts[first[first[i]]], texts[first[second[i]]]); break;
                case METHOD_HANDLE: case DYNAMIC: case INVOKE_DYNAMIC: errors.add("use of java.lang.invoke"); break;
                default: break;
            }
        }
    }

    private void call(String owner, String name) {
        if (!Rules.allowsCall(owner, name))
            errors.add("call to " + owner.replace('/', '.') + "." + name + "()");
    }

    /** All classes of a descriptor. */
    private void check(String descriptor, String array) {
        if (array != null && array.startsWith("[") && !array.contains("L"))
            return;
        for (int at = descriptor.indexOf('L'); at >= 0; ) {
            int end = descriptor.indexOf(';', at);
            if (end < 0)
                return;
            String name = descriptor.substring(at + 1, end);
            if (!name.equals(own) && !Rules.allowsClass(name))
                errors.add("use of " + name.replace('/', '.'));
            at = descriptor.indexOf('L', end);
        }
    }

    private void members(String execute) {
        in.position(in.position() + 6);
        int interfaces = in.getShort() & 0xffff;
        in.position(in.position() + 2 * interfaces);
        for (int i = in.getShort() & 0xffff; i > 0; i--) {
            in.getShort();
            errors.add("field declared: " + texts[in.getShort() & 0xffff]);
            in.getShort();
            attributes(false);
        }
        int constructors = 0;
        for (int i = in.getShort() & 0xffff; i > 0; i--) {
            in.getShort();
            String name = texts[in.getShort() & 0xffff];
            String descriptor = texts[in.getShort() & 0xffff];
            if (name.equals("<init>"))
                constructors++;
            else if (name.equals("<clinit>"))
                errors.add("static initializer declared");
            else if (!name.equals("executeImpl") && !name.equals(execute))
                errors.add("not allowed method declared: " + name + descriptor);
            attributes(true);
        }
        if (constructors != 1)
            errors.add("constructor declared");
    }

    private void attributes(boolean ofMethod) {
        for (int i = in.getShort() & 0xffff; i > 0; i--) {
            String name = texts[in.getShort() & 0xffff];
            int length = in.getInt();
            int end = in.position() + length;
            if (ofMethod && name.equals("Code")) {
                in.getInt();
                code(in.getInt());
            }
            in.position(end);
        }
    }

    private void code(int length) {
        int start = in.position();
        while (in.position() < start + length) {
            int at = in.position() - start;
            int opcode = in.get() & 0xff;
            if (opcode == MONITOR_ENTER || opcode == MONITOR_EXIT)
                errors.add("use of synchronized");
            if (opcode == TABLE_SWITCH || opcode == LOOKUP_SWITCH) {
                in.position(start + (at / 4 + 1) * 4 + 4);
                int low = in.getInt();
                int more = opcode == LOOKUP_SWITCH ? 8 * low : 4 * (in.getInt() - low + 1);
                in.position(in.position() + more);
            } else if (opcode == WIDE) {
                int wide = in.get() & 0xff;
                in.position(in.position() + (wide == 0x84 ? 4 : 2));
            } else {
                in.position(in.position() + operands(opcode));
            }
        }
    }

    private static int operands(int opcode) {
        if (opcode == 0x10 || opcode == 0x12 || opcode >= 0x15 && opcode <= 0x19 || opcode >= 0x36 && opcode <= 0x3a
            || opcode == 0xa9 || opcode == 0xbc)
            return 1;
        if (opcode == 0x11 || opcode == 0x13 || opcode == 0x14 || opcode == 0x84 || opcode >= 0x99 && opcode <= 0xa8
            || opcode >= 0xb2 && opcode <= 0xb8 || opcode == 0xbb || opcode == 0xbd || opcode == 0xc0 || opcode == 0xc1
            || opcode == 0xc6 || opcode == 0xc7)
            return 2;
        if (opcode == 0xc5)
            return 3;
        if (opcode == 0xb9 || opcode == 0xba || opcode == 0xc8 || opcode == 0xc9)
            return 4;
        return 0;
    }
}
