package org.apache.cassandra.cql3.functions.types;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Date;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;

/** A type of CQL: which Java class its values have, and how they are serialized. */
public final class DataType {
    /** In the order of the tags that `functions/types.rs` writes. */
    enum Kind {
        ASCII(String.class), BIGINT(Long.class), BLOB(ByteBuffer.class), BOOLEAN(Boolean.class), COUNTER(Long.class),
        DATE(LocalDate.class), DECIMAL(BigDecimal.class), DOUBLE(Double.class), DURATION(Duration.class),
        FLOAT(Float.class), INET(InetAddress.class), INT(Integer.class), SMALLINT(Short.class), TEXT(String.class),
        TIME(Long.class), TIMESTAMP(Date.class), TIMEUUID(UUID.class), TINYINT(Byte.class), UUID(UUID.class),
        VARINT(BigInteger.class), LIST(List.class), SET(Set.class), MAP(Map.class), TUPLE(TupleValue.class),
        UDT(UDTValue.class), VECTOR(List.class);

        final Class<?> of;

        Kind(Class<?> of) {
            this.of = of;
        }
    }

    private final Kind kind;
    private final String name;
    private final List<String> names = new ArrayList<>();
    private final List<DataType> parts = new ArrayList<>();
    private int dimension;
    private int fixed;

    private DataType(Kind kind, String name) {
        this.kind = kind;
        this.name = name;
    }

    public static DataType read(ByteBuffer in) {
        Kind kind = Kind.values()[in.get()];
        DataType type = new DataType(kind, kind == Kind.UDT ? string(in) : kind.name().toLowerCase());
        int count = 0;
        switch (kind) {
            case LIST: case SET: case VECTOR: count = 1; break;
            case MAP: count = 2; break;
            case TUPLE: case UDT: count = in.getInt(); break;
            default: break;
        }
        for (int i = 0; i < count; i++) {
            if (kind == Kind.UDT)
                type.names.add(string(in));
            type.parts.add(read(in));
        }
        if (kind == Kind.VECTOR) {
            type.dimension = in.getInt();
            type.fixed = in.getInt();
        }
        return type;
    }

    public static String string(ByteBuffer in) {
        byte[] bytes = new byte[in.getInt()];
        in.get(bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }

    List<DataType> parts() {
        return parts;
    }

    List<String> names() {
        return names;
    }

    Class<?> javaClass() {
        return kind.of;
    }

    String cqlName() {
        return name;
    }

    public boolean isUdt() {
        return kind == Kind.UDT;
    }

    public boolean isTuple() {
        return kind == Kind.TUPLE;
    }

    public DataType find(String udt) {
        if (kind == Kind.UDT && name.equals(udt))
            return this;
        for (DataType part : parts) {
            DataType found = part.find(udt);
            if (found != null)
                return found;
        }
        return null;
    }

    /** As source text spells the class of values, or the primitive type where no value is null. */
    public String javaName(boolean primitive) {
        if (primitive) {
            switch (kind) {
                case BIGINT: case COUNTER: case TIME: return "long";
                case BOOLEAN: return "boolean";
                case DOUBLE: return "double";
                case FLOAT: return "float";
                case INT: return "int";
                case SMALLINT: return "short";
                case TINYINT: return "byte";
                default: break;
            }
        }
        String own = kind.of.getName().replace("java.lang.", "");
        switch (kind) {
            case LIST: case SET: case VECTOR: return own + "<" + parts.get(0).javaName() + ">";
            case MAP: return own + "<" + parts.get(0).javaName() + ", " + parts.get(1).javaName() + ">";
            default: return own;
        }
    }

    public String javaName() {
        return javaName(false);
    }

    /** Of tuples and user types, the one whose fields are all missing. */
    private boolean hasEmpty() {
        return kind == Kind.ASCII || kind == Kind.TEXT || kind == Kind.BLOB || kind == Kind.TUPLE || kind == Kind.UDT;
    }

    /** Null for a missing value, or an empty one of a type that has no empty value. */
    public Object compose(ByteBuffer in) {
        if (in == null || (in.remaining() == 0 && !hasEmpty()))
            return null;
        switch (kind) {
            case ASCII: case TEXT: return StandardCharsets.UTF_8.decode(in).toString();
            case BIGINT: case COUNTER: case TIME: return in.getLong();
            case BLOB: return in.slice();
            case BOOLEAN: return in.get() != 0;
            case DATE: return LocalDate.fromDaysSinceEpoch(in.getInt() - Integer.MIN_VALUE);
            case DECIMAL: {
                int scale = in.getInt();
                return new BigDecimal(new BigInteger(rest(in)), scale);
            }
            case DOUBLE: return in.getDouble();
            case DURATION: {
                int months = (int) vint(in);
                int days = (int) vint(in);
                return Duration.newInstance(months, days, vint(in));
            }
            case FLOAT: return in.getFloat();
            case INET: return address(rest(in));
            case INT: return in.getInt();
            case SMALLINT: return in.getShort();
            case TIMESTAMP: return new Date(in.getLong());
            case TIMEUUID: case UUID: return new UUID(in.getLong(), in.getLong());
            case TINYINT: return in.get();
            case VARINT: return new BigInteger(rest(in));
            default: return composeParts(in);
        }
    }

    /** What a part shows that is null: for collections an empty one. */
    Object ofNull() {
        switch (kind) {
            case LIST: return new ArrayList<>();
            case SET: return new LinkedHashSet<>();
            case MAP: return new LinkedHashMap<>();
            default: return null;
        }
    }

    private Object composeParts(ByteBuffer in) {
        switch (kind) {
            case LIST: {
                List<Object> list = new ArrayList<>();
                for (int i = in.getInt(); i > 0; i--)
                    list.add(parts.get(0).compose(framed(in)));
                return list;
            }
            case SET: {
                Set<Object> set = new LinkedHashSet<>();
                for (int i = in.getInt(); i > 0; i--)
                    set.add(parts.get(0).compose(framed(in)));
                return set;
            }
            case MAP: {
                Map<Object, Object> map = new LinkedHashMap<>();
                for (int i = in.getInt(); i > 0; i--) {
                    Object key = parts.get(0).compose(framed(in));
                    map.put(key, parts.get(1).compose(framed(in)));
                }
                return map;
            }
            case VECTOR: {
                List<Object> list = new ArrayList<>();
                for (int i = 0; i < dimension; i++)
                    list.add(parts.get(0).compose(slice(in, fixed > 0 ? fixed : (int) unsigned(in))));
                return list;
            }
            default: {
                AbstractData<?> data = kind == Kind.UDT ? new UDTValue(this) : new TupleValue(this);
                for (int i = 0; i < parts.size() && in.hasRemaining(); i++)
                    data.values[i] = framed(in);
                return data;
            }
        }
    }

    private static byte[] rest(ByteBuffer in) {
        byte[] bytes = new byte[in.remaining()];
        in.get(bytes);
        return bytes;
    }

    private static InetAddress address(byte[] bytes) {
        try {
            return InetAddress.getByAddress(bytes);
        } catch (UnknownHostException e) {
            throw new IllegalArgumentException(e.getMessage());
        }
    }

    public static ByteBuffer framed(ByteBuffer in) {
        int length = in.getInt();
        return length < 0 ? null : slice(in, length);
    }

    private static ByteBuffer slice(ByteBuffer in, int length) {
        ByteBuffer slice = in.slice();
        slice.limit(length);
        in.position(in.position() + length);
        return slice;
    }

    /** The bytes of a value; null for null. */
    public byte[] decompose(Object value) {
        if (value == null)
            return null;
        if (!kind.of.isInstance(value))
            throw new IllegalArgumentException("Invalid value for CQL type " + name);
        switch (kind) {
            case ASCII: case TEXT: return ((String) value).getBytes(StandardCharsets.UTF_8);
            case BIGINT: case COUNTER: case TIME: return longs((Long) value);
            case BLOB: return rest(((ByteBuffer) value).duplicate());
            case BOOLEAN: return new byte[] { (byte) ((Boolean) value ? 1 : 0) };
            case DATE: return ints(((LocalDate) value).getDaysSinceEpoch() + Integer.MIN_VALUE);
            case DECIMAL: {
                byte[] digits = ((BigDecimal) value).unscaledValue().toByteArray();
                return ByteBuffer.allocate(4 + digits.length).putInt(((BigDecimal) value).scale()).put(digits).array();
            }
            case DOUBLE: return longs(Double.doubleToRawLongBits((Double) value));
            case DURATION: {
                Duration duration = (Duration) value;
                Bytes out = new Bytes();
                out.vint(duration.getMonths());
                out.vint(duration.getDays());
                out.vint(duration.getNanoseconds());
                return out.toByteArray();
            }
            case FLOAT: return ints(Float.floatToRawIntBits((Float) value));
            case INET: return ((InetAddress) value).getAddress();
            case INT: return ints((Integer) value);
            case SMALLINT: return ByteBuffer.allocate(2).putShort((Short) value).array();
            case TIMESTAMP: return longs(((Date) value).getTime());
            case TIMEUUID: case UUID: {
                UUID uuid = (UUID) value;
                return ByteBuffer.allocate(16).putLong(uuid.getMostSignificantBits()).putLong(uuid.getLeastSignificantBits()).array();
            }
            case TINYINT: return new byte[] { (Byte) value };
            case VARINT: return ((BigInteger) value).toByteArray();
            default: return decomposeParts(value);
        }
    }

    private byte[] decomposeParts(Object value) {
        Bytes out = new Bytes();
        switch (kind) {
            case LIST: case SET: {
                Collection<?> elements = (Collection<?>) value;
                out.int32(elements.size());
                for (Object element : elements)
                    out.framed(parts.get(0).element(element));
                break;
            }
            case MAP: {
                Map<?, ?> map = (Map<?, ?>) value;
                out.int32(map.size());
                for (Map.Entry<?, ?> entry : map.entrySet()) {
                    out.framed(parts.get(0).element(entry.getKey()));
                    out.framed(parts.get(1).element(entry.getValue()));
                }
                break;
            }
            case VECTOR: {
                List<?> elements = (List<?>) value;
                if (elements.size() != dimension)
                    throw new IllegalArgumentException("Expected " + dimension + " elements in a vector, got " + elements.size());
                for (Object element : elements) {
                    byte[] bytes = parts.get(0).element(element);
                    if (fixed <= 0)
                        out.unsigned(bytes.length);
                    out.writeBytes(bytes);
                }
                break;
            }
            default: {
                AbstractData<?> data = (AbstractData<?>) value;
                for (int i = 0; i < parts.size(); i++)
                    out.framed(data.values[i] == null ? null : rest(data.values[i].duplicate()));
            }
        }
        return out.toByteArray();
    }

    private byte[] element(Object element) {
        if (element == null)
            throw new NullPointerException("Collection elements cannot be null");
        return decompose(element);
    }

    private static byte[] ints(int value) {
        return ByteBuffer.allocate(4).putInt(value).array();
    }

    private static byte[] longs(long value) {
        return ByteBuffer.allocate(8).putLong(value).array();
    }

    /** A length: the number of ones before the first zero says how many bytes follow. */
    static long unsigned(ByteBuffer in) {
        int first = in.get() & 0xff;
        int more = Integer.numberOfLeadingZeros(~(first << 24));
        long value = more >= 8 ? 0 : first & (0xff >> more);
        for (int i = 0; i < more; i++)
            value = value << 8 | (in.get() & 0xff);
        return value;
    }

    static long vint(ByteBuffer in) {
        long zigzag = unsigned(in);
        return zigzag >>> 1 ^ -(zigzag & 1);
    }

    /** Bytes that are being written. */
    private static final class Bytes extends java.io.ByteArrayOutputStream {
        void int32(int value) {
            writeBytes(ints(value));
        }

        void framed(byte[] bytes) {
            int32(bytes == null ? -1 : bytes.length);
            if (bytes != null)
                writeBytes(bytes);
        }

        void unsigned(long value) {
            int more = 0;
            while (more < 8 && value >>> (7 * (more + 1)) != 0)
                more++;
            if (more == 8)
                write(0xff);
            else
                write((int) (value >>> (8 * more)) | (0xff00 >> more & 0xff));
            for (int i = more - 1; i >= 0; i--)
                write((int) (value >>> (8 * i)));
        }

        void vint(long value) {
            unsigned(value << 1 ^ value >> 63);
        }
    }

    String format(AbstractData<?> data) {
        StringBuilder out = new StringBuilder();
        for (int i = 0; i < parts.size(); i++) {
            out.append(i == 0 ? "" : ",");
            if (isUdt())
                out.append(names.get(i)).append(':');
            Object value = data.getObject(i);
            out.append(value instanceof String ? "'" + value + "'" : value == null ? "NULL" : value.toString());
        }
        return isUdt() ? "{" + out + "}" : "(" + out + ")";
    }
}
