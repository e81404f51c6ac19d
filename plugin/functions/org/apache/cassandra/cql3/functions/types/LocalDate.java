package org.apache.cassandra.cql3.functions.types;

/** A date without a time, by days since 1970-01-01. */
public final class LocalDate {
    private final int days;

    private LocalDate(int days) {
        this.days = days;
    }

    public static LocalDate fromDaysSinceEpoch(int daysSinceEpoch) {
        return new LocalDate(daysSinceEpoch);
    }

    public static LocalDate fromMillisSinceEpoch(long millisSinceEpoch) {
        return new LocalDate(Math.toIntExact(Math.floorDiv(millisSinceEpoch, 86400000L)));
    }

    public static LocalDate fromYearMonthDay(int year, int month, int dayOfMonth) {
        return new LocalDate(Math.toIntExact(java.time.LocalDate.of(year, month, dayOfMonth).toEpochDay()));
    }

    private java.time.LocalDate date() {
        return java.time.LocalDate.ofEpochDay(days);
    }

    public int getDaysSinceEpoch() {
        return days;
    }

    public long getMillisSinceEpoch() {
        return days * 86400000L;
    }

    public int getYear() {
        return date().getYear();
    }

    public int getMonth() {
        return date().getMonthValue();
    }

    public int getDay() {
        return date().getDayOfMonth();
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof LocalDate && ((LocalDate) other).days == days;
    }

    @Override
    public int hashCode() {
        return days;
    }

    @Override
    public String toString() {
        return date().toString();
    }
}
