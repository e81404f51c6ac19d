package org.apache.cassandra.cql3.functions.types;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;

/**
 * Values of several types in a fixed order: the parts of a tuple or user type.
 *
 * They stay as they are serialized, for an empty one is not null, and is returned as it came.
 */
public abstract class AbstractData<T extends AbstractData<T>> {
    final DataType type;
    final ByteBuffer[] values;

    AbstractData(DataType type) {
        this.type = type;
        this.values = new ByteBuffer[type.parts().size()];
    }

    @SuppressWarnings("unchecked")
    private T put(int i, Object value) {
        DataType part = type.parts().get(check(i));
        if (value != null && !part.javaClass().isInstance(value))
            throw new IllegalArgumentException("Invalid value for CQL type " + part.cqlName());
        values[i] = value == null ? null : ByteBuffer.wrap(part.decompose(value));
        return (T) this;
    }

    private int check(int i) {
        if (i < 0 || i >= values.length)
            throw new ArrayIndexOutOfBoundsException("Cannot get or set value at index " + i + " of " + values.length);
        return i;
    }

    abstract int index(String name);

    private <V> V of(int i, Class<V> wanted) {
        return wanted.cast(getObject(i));
    }

    private <V extends Number> V number(int i, Class<V> wanted, V zero) {
        V value = of(i, wanted);
        return value == null ? zero : value;
    }

    public boolean isNull(int i) {
        return values[check(i)] == null;
    }

    public boolean isNull(String name) {
        return isNull(index(name));
    }

    public T setToNull(int i) {
        return put(i, null);
    }

    public T setToNull(String name) {
        return put(index(name), null);
    }

    public Object getObject(int i) {
        ByteBuffer value = values[check(i)];
        DataType part = type.parts().get(i);
        Object composed = value == null ? null : part.compose(value.duplicate());
        return composed == null ? part.ofNull() : composed;
    }

    public Object getObject(String name) {
        return getObject(index(name));
    }

    public boolean getBool(int i) {
        Boolean value = of(i, Boolean.class);
        return value != null && value;
    }

    public byte getByte(int i) {
        return number(i, Byte.class, (byte) 0);
    }

    public short getShort(int i) {
        return number(i, Short.class, (short) 0);
    }

    public int getInt(int i) {
        return number(i, Integer.class, 0);
    }

    public long getLong(int i) {
        return number(i, Long.class, 0L);
    }

    public long getTime(int i) {
        return number(i, Long.class, 0L);
    }

    public float getFloat(int i) {
        return number(i, Float.class, 0F);
    }

    public double getDouble(int i) {
        return number(i, Double.class, 0D);
    }

    public Date getTimestamp(int i) {
        return of(i, Date.class);
    }

    public LocalDate getDate(int i) {
        return of(i, LocalDate.class);
    }

    public String getString(int i) {
        return of(i, String.class);
    }

    public ByteBuffer getBytes(int i) {
        return of(i, ByteBuffer.class);
    }

    public BigInteger getVarint(int i) {
        return of(i, BigInteger.class);
    }

    public BigDecimal getDecimal(int i) {
        return of(i, BigDecimal.class);
    }

    public UUID getUUID(int i) {
        return of(i, UUID.class);
    }

    public InetAddress getInet(int i) {
        return of(i, InetAddress.class);
    }

    public UDTValue getUDTValue(int i) {
        return of(i, UDTValue.class);
    }

    public TupleValue getTupleValue(int i) {
        return of(i, TupleValue.class);
    }

    @SuppressWarnings("unchecked")
    public <E> List<E> getList(int i, Class<E> elementsClass) {
        return of(i, List.class);
    }

    @SuppressWarnings("unchecked")
    public <E> Set<E> getSet(int i, Class<E> elementsClass) {
        return of(i, Set.class);
    }

    @SuppressWarnings("unchecked")
    public <K, V> Map<K, V> getMap(int i, Class<K> keysClass, Class<V> valuesClass) {
        return of(i, Map.class);
    }

    public boolean getBool(String name) {
        return getBool(index(name));
    }

    public byte getByte(String name) {
        return getByte(index(name));
    }

    public short getShort(String name) {
        return getShort(index(name));
    }

    public int getInt(String name) {
        return getInt(index(name));
    }

    public long getLong(String name) {
        return getLong(index(name));
    }

    public long getTime(String name) {
        return getTime(index(name));
    }

    public float getFloat(String name) {
        return getFloat(index(name));
    }

    public double getDouble(String name) {
        return getDouble(index(name));
    }

    public Date getTimestamp(String name) {
        return getTimestamp(index(name));
    }

    public LocalDate getDate(String name) {
        return getDate(index(name));
    }

    public String getString(String name) {
        return getString(index(name));
    }

    public ByteBuffer getBytes(String name) {
        return getBytes(index(name));
    }

    public BigInteger getVarint(String name) {
        return getVarint(index(name));
    }

    public BigDecimal getDecimal(String name) {
        return getDecimal(index(name));
    }

    public UUID getUUID(String name) {
        return getUUID(index(name));
    }

    public InetAddress getInet(String name) {
        return getInet(index(name));
    }

    public UDTValue getUDTValue(String name) {
        return getUDTValue(index(name));
    }

    public TupleValue getTupleValue(String name) {
        return getTupleValue(index(name));
    }

    public <E> List<E> getList(String name, Class<E> elementsClass) {
        return getList(index(name), elementsClass);
    }

    public <E> Set<E> getSet(String name, Class<E> elementsClass) {
        return getSet(index(name), elementsClass);
    }

    public <K, V> Map<K, V> getMap(String name, Class<K> keysClass, Class<V> valuesClass) {
        return getMap(index(name), keysClass, valuesClass);
    }

    public T setBool(int i, boolean v) {
        return put(i, v);
    }

    public T setBool(String name, boolean v) {
        return put(index(name), v);
    }

    public T setByte(int i, byte v) {
        return put(i, v);
    }

    public T setByte(String name, byte v) {
        return put(index(name), v);
    }

    public T setShort(int i, short v) {
        return put(i, v);
    }

    public T setShort(String name, short v) {
        return put(index(name), v);
    }

    public T setInt(int i, int v) {
        return put(i, v);
    }

    public T setInt(String name, int v) {
        return put(index(name), v);
    }

    public T setLong(int i, long v) {
        return put(i, v);
    }

    public T setLong(String name, long v) {
        return put(index(name), v);
    }

    public T setTime(int i, long v) {
        return put(i, v);
    }

    public T setTime(String name, long v) {
        return put(index(name), v);
    }

    public T setFloat(int i, float v) {
        return put(i, v);
    }

    public T setFloat(String name, float v) {
        return put(index(name), v);
    }

    public T setDouble(int i, double v) {
        return put(i, v);
    }

    public T setDouble(String name, double v) {
        return put(index(name), v);
    }

    public T setTimestamp(int i, Date v) {
        return put(i, v);
    }

    public T setTimestamp(String name, Date v) {
        return put(index(name), v);
    }

    public T setDate(int i, LocalDate v) {
        return put(i, v);
    }

    public T setDate(String name, LocalDate v) {
        return put(index(name), v);
    }

    public T setString(int i, String v) {
        return put(i, v);
    }

    public T setString(String name, String v) {
        return put(index(name), v);
    }

    public T setBytes(int i, ByteBuffer v) {
        return put(i, v);
    }

    public T setBytes(String name, ByteBuffer v) {
        return put(index(name), v);
    }

    public T setVarint(int i, BigInteger v) {
        return put(i, v);
    }

    public T setVarint(String name, BigInteger v) {
        return put(index(name), v);
    }

    public T setDecimal(int i, BigDecimal v) {
        return put(i, v);
    }

    public T setDecimal(String name, BigDecimal v) {
        return put(index(name), v);
    }

    public T setUUID(int i, UUID v) {
        return put(i, v);
    }

    public T setUUID(String name, UUID v) {
        return put(index(name), v);
    }

    public T setInet(int i, InetAddress v) {
        return put(i, v);
    }

    public T setInet(String name, InetAddress v) {
        return put(index(name), v);
    }

    public T setUDTValue(int i, UDTValue v) {
        return put(i, v);
    }

    public T setUDTValue(String name, UDTValue v) {
        return put(index(name), v);
    }

    public T setTupleValue(int i, TupleValue v) {
        return put(i, v);
    }

    public T setTupleValue(String name, TupleValue v) {
        return put(index(name), v);
    }

    public T setList(int i, List<?> v) {
        return put(i, v);
    }

    public T setList(String name, List<?> v) {
        return put(index(name), v);
    }

    public T setSet(int i, Set<?> v) {
        return put(i, v);
    }

    public T setSet(String name, Set<?> v) {
        return put(index(name), v);
    }

    public T setMap(int i, Map<?, ?> v) {
        return put(i, v);
    }

    public T setMap(String name, Map<?, ?> v) {
        return put(index(name), v);
    }

    public T setVector(int i, List<?> v) {
        return put(i, v);
    }

    public T setVector(String name, List<?> v) {
        return put(index(name), v);
    }

    @Override
    public boolean equals(Object other) {
        if (!(other instanceof AbstractData))
            return false;
        AbstractData<?> that = (AbstractData<?>) other;
        return getClass() == that.getClass() && type == that.type && Arrays.equals(values, that.values);
    }

    @Override
    public int hashCode() {
        return Arrays.hashCode(values);
    }
}
