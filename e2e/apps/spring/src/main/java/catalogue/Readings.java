package catalogue;

import java.time.Instant;
import java.util.List;
import org.springframework.data.cassandra.repository.MapIdCassandraRepository;
import org.springframework.data.domain.Pageable;
import org.springframework.data.domain.Slice;

public interface Readings extends MapIdCassandraRepository<Reading> {
    List<Reading> findByReaderAndYear(String reader, int year);

    List<Reading> findByReaderAndYearOrderByAtAsc(String reader, int year);

    List<Reading> findByReaderAndYearAndAtBetween(String reader, int year, Instant since, Instant until);

    List<Reading> findByReaderInAndYear(List<String> readers, int year);

    List<Reading> findByReaderAndYearAndStars(String reader, int year, int stars);

    Slice<Reading> findByYearAndReader(int year, String reader, Pageable page);

    void deleteByReaderAndYear(String reader, int year);
}
