package catalogue;

import java.math.BigDecimal;
import java.time.Instant;
import java.time.LocalDate;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.springframework.data.annotation.Id;
import org.springframework.data.cassandra.core.mapping.Indexed;
import org.springframework.data.cassandra.core.mapping.Table;

/** Indexes on texts, numbers, a set, the keys of one map and the values of another. */
@Table("books")
public class Book {
    @Id public String isbn;
    @Indexed public String author;
    @Indexed("books_by_year") public Integer year;
    public String title;
    public BigDecimal price;
    public LocalDate printed;
    public Instant added;
    @Indexed public Set<String> tags;
    public Map<@Indexed String, Integer> copies;
    public Map<String, @Indexed String> translations;
    public List<String> chapters;
    public Publisher publisher;
    public List<Publisher> reprints;

    public static Book of(String isbn, String author, Integer year) {
        Book book = new Book();
        book.isbn = isbn;
        book.author = author;
        book.year = year;
        book.title = "title of " + isbn;
        return book;
    }
}
