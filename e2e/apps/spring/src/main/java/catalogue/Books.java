package catalogue;

import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.springframework.data.cassandra.repository.AllowFiltering;
import org.springframework.data.cassandra.repository.CassandraRepository;
import org.springframework.data.cassandra.repository.Query;
import org.springframework.data.domain.Pageable;
import org.springframework.data.domain.Slice;

public interface Books extends CassandraRepository<Book, String> {
    List<Book> findByAuthor(String author);

    Slice<Book> findSliceByAuthor(String author, Pageable page);

    Optional<Book> findFirstByYear(int year);

    List<Book> findByTagsContains(String tag);

    List<Book> findByTranslationsContains(String title);

    @Query("SELECT * FROM books WHERE copies CONTAINS KEY ?0")
    List<Book> findByShop(String shop);

    @AllowFiltering
    List<Book> findByAuthorAndYearGreaterThan(String author, int year);

    @AllowFiltering
    List<Book> findByTitle(String title);

    List<Book> findByTitleIs(String title);

    long countByAuthor(String author);

    boolean existsByAuthor(String author);

    Stream<Book> streamByAuthor(String author);

    List<Named> findNamedByAuthor(String author);

    interface Named {
        String getIsbn();

        String getTitle();
    }
}
