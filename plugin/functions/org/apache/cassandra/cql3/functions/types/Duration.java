package org.apache.cassandra.cql3.functions.types;

import java.util.Objects;

/** Months, days and nanoseconds, of one sign. */
public final class Duration {
    private final int months;
    private final int days;
    private final long nanoseconds;

    private Duration(int months, int days, long nanoseconds) {
        this.months = months;
        this.days = days;
        this.nanoseconds = nanoseconds;
    }

    public static Duration newInstance(int months, int days, long nanoseconds) {
        boolean negative = months < 0 || days < 0 || nanoseconds < 0;
        boolean positive = months > 0 || days > 0 || nanoseconds > 0;
        if (negative && positive)
            throw new IllegalArgumentException(String.format(
                "All values must be either negative or positive, got %d months, %d days, %d nanoseconds", months, days, nanoseconds));
        return new Duration(months, days, nanoseconds);
    }

    public int getMonths() {
        return months;
    }

    public int getDays() {
        return days;
    }

    public long getNanoseconds() {
        return nanoseconds;
    }

    @Override
    public boolean equals(Object other) {
        if (!(other instanceof Duration))
            return false;
        Duration that = (Duration) other;
        return months == that.months && days == that.days && nanoseconds == that.nanoseconds;
    }

    @Override
    public int hashCode() {
        return Objects.hash(months, days, nanoseconds);
    }

    @Override
    public String toString() {
        StringBuilder out = new StringBuilder(months < 0 || days < 0 || nanoseconds < 0 ? "-" : "");
        long left = put(out, Math.abs((long) months), 12, "y");
        put(out, left, 1, "mo");
        put(out, Math.abs((long) days), 1, "d");
        left = Math.abs(nanoseconds);
        left = put(out, left, 3_600_000_000_000L, "h");
        left = put(out, left, 60_000_000_000L, "m");
        left = put(out, left, 1_000_000_000L, "s");
        left = put(out, left, 1_000_000L, "ms");
        left = put(out, left, 1_000L, "us");
        put(out, left, 1, "ns");
        return out.toString();
    }

    /** Writes the whole units of it, and gives the rest. */
    private static long put(StringBuilder out, long value, long unit, String name) {
        if (value >= unit)
            out.append(value / unit).append(name);
        return value % unit;
    }
}
