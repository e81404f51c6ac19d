package catalogue;

import java.time.Instant;
import org.springframework.data.cassandra.core.cql.Ordering;
import org.springframework.data.cassandra.core.cql.PrimaryKeyType;
import org.springframework.data.cassandra.core.mapping.Column;
import org.springframework.data.cassandra.core.mapping.Indexed;
import org.springframework.data.cassandra.core.mapping.PrimaryKeyColumn;
import org.springframework.data.cassandra.core.mapping.Table;

/** Rows of a partition, newest first, with a static column and an index. */
@Table("readings")
public class Reading {
    @PrimaryKeyColumn(ordinal = 0, type = PrimaryKeyType.PARTITIONED) public String reader;
    @PrimaryKeyColumn(ordinal = 1, type = PrimaryKeyType.PARTITIONED) public int year;
    @PrimaryKeyColumn(ordinal = 2, ordering = Ordering.DESCENDING) public Instant at;
    @PrimaryKeyColumn(ordinal = 3) public String isbn;
    @Column(isStatic = true) public String name;
    @Indexed public Integer stars;

    public static Reading of(String reader, Instant at, String isbn, Integer stars) {
        Reading reading = new Reading();
        reading.reader = reader;
        reading.year = 2026;
        reading.at = at;
        reading.isbn = isbn;
        reading.stars = stars;
        return reading;
    }
}
