package catalogue;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.springframework.data.cassandra.core.query.Criteria.where;
import static org.springframework.data.cassandra.core.query.Query.query;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.SimpleStatement;
import java.math.BigDecimal;
import java.time.Instant;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.dao.OptimisticLockingFailureException;
import org.springframework.data.cassandra.CassandraInvalidQueryException;
import org.springframework.data.cassandra.core.CassandraTemplate;
import org.springframework.data.cassandra.core.DeleteOptions;
import org.springframework.data.cassandra.core.InsertOptions;
import org.springframework.data.cassandra.core.UpdateOptions;
import org.springframework.data.cassandra.core.mapping.BasicMapId;
import org.springframework.data.cassandra.core.mapping.MapId;
import org.springframework.data.cassandra.core.query.CassandraPageRequest;
import org.springframework.data.cassandra.core.query.Update;
import org.springframework.data.domain.Slice;

@SpringBootTest
class CatalogueTests {
    private static final Instant NOON = Instant.parse("2026-05-04T12:00:00Z");

    @Autowired Books books;
    @Autowired Readings readings;
    @Autowired CassandraTemplate template;
    @Autowired CqlSession session;

    @Test
    void indexesAreMade() {
        var table = session.refreshSchema().getKeyspace("catalogue").orElseThrow().getTable("books").orElseThrow();
        assertThat(table.getIndexes().values()).extracting(index -> index.getTarget())
                .containsExactlyInAnyOrder("author", "year", "values(tags)", "keys(copies)", "values(translations)");
        assertThat(table.getIndexes().keySet().toString()).contains("books_by_year");
    }

    @Test
    void everyFieldComesBack() {
        Book book = Book.of("f1", "field", 1900);
        book.price = new BigDecimal("12.50");
        book.printed = LocalDate.of(1900, 2, 28);
        book.added = NOON;
        book.tags = Set.of("old", "rare");
        book.copies = Map.of("Wien", 2);
        book.translations = Map.of("de", "Titel");
        book.chapters = List.of("one", "two", "one");
        book.publisher = new Publisher("P", "Graz");
        book.reprints = List.of(new Publisher("Q", "Linz"), new Publisher("R", null));
        books.save(book);
        assertThat(books.findById("f1").orElseThrow()).usingRecursiveComparison().isEqualTo(book);
    }

    @Test
    void indexOfText() {
        books.saveAll(List.of(Book.of("a1", "Ada", 1), Book.of("a2", "Ada", 2), Book.of("a3", "Bob", 1)));
        assertThat(books.findByAuthor("Ada")).extracting(book -> book.isbn).containsExactlyInAnyOrder("a1", "a2");
        assertThat(books.countByAuthor("Ada")).isEqualTo(2);
        assertThat(books.existsByAuthor("Ada")).isTrue();
        assertThat(books.existsByAuthor("Nobody")).isFalse();
    }

    @Test
    void indexOfNumber() {
        books.save(Book.of("n1", "number", 1234));
        assertThat(books.findFirstByYear(1234).orElseThrow().isbn).isEqualTo("n1");
        assertThat(books.findFirstByYear(4321)).isEmpty();
    }

    @Test
    void indexOfSet() {
        Book one = Book.of("s1", "set", 1);
        one.tags = Set.of("gothic", "long");
        Book two = Book.of("s2", "set", 1);
        two.tags = Set.of("gothic");
        books.saveAll(List.of(one, two));
        assertThat(books.findByTagsContains("gothic")).extracting(book -> book.isbn).containsExactlyInAnyOrder("s1", "s2");
        assertThat(books.findByTagsContains("long")).extracting(book -> book.isbn).containsExactly("s1");
    }

    @Test
    void indexOfKeysAndOfValues() {
        Book book = Book.of("m1", "map", 1);
        book.copies = Map.of("Salzburg", 1);
        book.translations = Map.of("fr", "Titre");
        books.save(book);
        assertThat(books.findByShop("Salzburg")).extracting(found -> found.isbn).containsExactly("m1");
        assertThat(books.findByTranslationsContains("Titre")).extracting(found -> found.isbn).containsExactly("m1");
    }

    @Test
    void indexFollowsChanges() {
        Book book = Book.of("c1", "first author", 1);
        books.save(book);
        book.author = "second author";
        books.save(book);
        assertThat(books.findByAuthor("first author")).isEmpty();
        assertThat(books.findByAuthor("second author")).hasSize(1);
        books.delete(book);
        assertThat(books.findByAuthor("second author")).isEmpty();
    }

    @Test
    void indexWithFiltering() {
        for (int year = 0; year < 10; year++) books.save(Book.of("w" + year, "filtered", year));
        assertThat(books.findByAuthorAndYearGreaterThan("filtered", 6)).extracting(book -> book.year).containsExactlyInAnyOrder(7, 8, 9);
        assertThat(books.findByTitle("title of w3")).extracting(book -> book.isbn).containsExactly("w3");
        assertThatThrownBy(() -> books.findByTitleIs("title of w3"))
                .isInstanceOf(CassandraInvalidQueryException.class).hasMessageContaining("ALLOW FILTERING");
    }

    @Test
    void slicesOfAnIndex() {
        for (int place = 0; place < 25; place++) books.save(Book.of("p" + place, "paged", place));
        List<String> seen = new ArrayList<>();
        Slice<Book> slice = books.findSliceByAuthor("paged", CassandraPageRequest.first(10));
        while (true) {
            assertThat(slice.getNumberOfElements()).isLessThanOrEqualTo(10);
            slice.forEach(book -> seen.add(book.isbn));
            if (!slice.hasNext()) break;
            slice = books.findSliceByAuthor("paged", slice.nextPageable());
        }
        assertThat(seen).hasSize(25).doesNotHaveDuplicates();
    }

    @Test
    void slicesOfAPartition() {
        for (int place = 0; place < 23; place++) readings.save(Reading.of("slices", NOON.plusSeconds(place), "x", place));
        List<Integer> seen = new ArrayList<>();
        Slice<Reading> slice = readings.findByYearAndReader(2026, "slices", CassandraPageRequest.first(5));
        while (true) {
            slice.forEach(reading -> seen.add(reading.stars));
            if (!slice.hasNext()) break;
            slice = readings.findByYearAndReader(2026, "slices", slice.nextPageable());
        }
        assertThat(seen).hasSize(23).isSortedAccordingTo((a, b) -> b - a);
    }

    @Test
    void slicesOfAWholeTable() {
        for (int place = 0; place < 12; place++) books.save(Book.of("t" + place, "table", place));
        List<String> seen = new ArrayList<>();
        Slice<Book> slice = books.findAll(CassandraPageRequest.first(4));
        while (true) {
            slice.forEach(book -> seen.add(book.isbn));
            if (!slice.hasNext()) break;
            slice = books.findAll(slice.nextPageable());
        }
        assertThat(seen).doesNotHaveDuplicates().contains("t0", "t11");
        assertThat((long) seen.size()).isEqualTo(books.count());
    }

    @Test
    void streamsAndProjections() {
        for (int place = 0; place < 5; place++) books.save(Book.of("j" + place, "projected", place));
        try (var stream = books.streamByAuthor("projected")) {
            assertThat(stream.map(book -> book.year)).containsExactlyInAnyOrder(0, 1, 2, 3, 4);
        }
        assertThat(books.findNamedByAuthor("projected")).extracting(Books.Named::getTitle).contains("title of j3");
    }

    @Test
    void clusteringOrderAndSlices() {
        for (int place = 0; place < 6; place++) readings.save(Reading.of("order", NOON.plusSeconds(place), "x", place));
        assertThat(readings.findByReaderAndYear("order", 2026)).extracting(r -> r.stars).containsExactly(5, 4, 3, 2, 1, 0);
        assertThat(readings.findByReaderAndYearOrderByAtAsc("order", 2026)).extracting(r -> r.stars).containsExactly(0, 1, 2, 3, 4, 5);
        var between = readings.findByReaderAndYearAndAtBetween("order", 2026, NOON.plusSeconds(1), NOON.plusSeconds(4));
        assertThat(between).extracting(r -> r.stars).isSubsetOf(4, 3, 2, 1).contains(3, 2);
        assertThat(readings.findByReaderInAndYear(List.of("order", "nobody"), 2026)).hasSize(6);
    }

    @Test
    void indexWithinAPartition() {
        for (int place = 0; place < 6; place++) readings.save(Reading.of("stars", NOON.plusSeconds(place), "x", place % 2));
        assertThat(readings.findByReaderAndYearAndStars("stars", 2026, 1)).extracting(r -> r.at)
                .containsExactly(NOON.plusSeconds(5), NOON.plusSeconds(3), NOON.plusSeconds(1));
    }

    @Test
    void staticColumn() {
        Reading one = Reading.of("static", NOON, "x", 1);
        one.name = "Ada";
        readings.save(one);
        Reading two = Reading.of("static", NOON.plusSeconds(1), "y", 2);
        two.name = "Bob";
        readings.save(two);
        assertThat(readings.findByReaderAndYear("static", 2026)).extracting(r -> r.name).containsExactly("Bob", "Bob");
    }

    @Test
    void mapIds() {
        readings.save(Reading.of("ids", NOON, "x", 1));
        MapId id = BasicMapId.id("reader", "ids").with("year", 2026).with("at", NOON).with("isbn", "x");
        assertThat(readings.findById(id).orElseThrow().stars).isEqualTo(1);
        readings.deleteById(id);
        assertThat(readings.existsById(id)).isFalse();
    }

    @Test
    void deletesOfPartitions() {
        for (int place = 0; place < 4; place++) readings.save(Reading.of("gone", NOON.plusSeconds(place), "x", place));
        readings.deleteByReaderAndYear("gone", 2026);
        assertThat(readings.findByReaderAndYear("gone", 2026)).isEmpty();
    }

    @Test
    void insertsIfNotExists() {
        InsertOptions once = InsertOptions.builder().withIfNotExists().build();
        assertThat(template.insert(Book.of("l1", "lwt", 1), once).wasApplied()).isTrue();
        assertThat(template.insert(Book.of("l1", "other", 2), once).wasApplied()).isFalse();
        assertThat(books.findById("l1").orElseThrow().author).isEqualTo("lwt");
    }

    @Test
    void updatesAndDeletesIf() {
        books.save(Book.of("l2", "lwt", 1));
        var byId = query(where("isbn").is("l2"));
        Update update = Update.empty().set("year", 2);
        var never = UpdateOptions.builder().ifCondition(where("author").is("nobody")).build();
        var once = UpdateOptions.builder().ifCondition(where("author").is("lwt")).build();
        assertThat(template.update(byId.queryOptions(never), update, Book.class)).isFalse();
        assertThat(template.update(byId.queryOptions(once), update, Book.class)).isTrue();
        assertThat(books.findById("l2").orElseThrow().year).isEqualTo(2);
        var kept = DeleteOptions.builder().ifCondition(where("year").is(1)).build();
        var gone = DeleteOptions.builder().withIfExists().build();
        assertThat(template.delete(byId.queryOptions(kept), Book.class)).isFalse();
        assertThat(template.delete(byId.queryOptions(gone), Book.class)).isTrue();
        assertThat(template.delete(byId.queryOptions(gone), Book.class)).isFalse();
    }

    @Test
    void optimisticLocking() {
        Member member = new Member();
        member.name = "Ada";
        member.mail = "1";
        template.insert(member);
        Member stale = template.selectOneById("Ada", Member.class);
        Member goes = template.selectOneById("Ada", Member.class);
        Member fresh = template.selectOneById("Ada", Member.class);
        fresh.mail = "2";
        template.update(fresh);
        stale.mail = "3";
        assertThatThrownBy(() -> template.update(stale)).isInstanceOf(OptimisticLockingFailureException.class);
        assertThatThrownBy(() -> template.delete(goes)).isInstanceOf(OptimisticLockingFailureException.class);
        assertThat(template.selectOneById("Ada", Member.class).mail).isEqualTo("2");
        template.delete(template.selectOneById("Ada", Member.class));
        assertThat(template.selectOneById("Ada", Member.class)).isNull();
    }

    @Test
    void collectionsAreChangedInPlace() {
        Book book = Book.of("u1", "update", 1);
        book.tags = Set.of("a");
        book.chapters = List.of("one");
        book.copies = Map.of("Wien", 1);
        books.save(book);
        Update update = Update.empty().addTo("tags").append("b").addTo("chapters").prepend("zero")
                .addTo("copies").entry("Graz", 2).set("title", "new");
        template.update(query(where("isbn").is("u1")), update, Book.class);
        template.update(query(where("isbn").is("u1")), Update.empty().remove("tags", "a").set("chapters").atIndex(1).to("last"), Book.class);
        Book found = books.findById("u1").orElseThrow();
        assertThat(found.tags).containsExactly("b");
        assertThat(found.chapters).containsExactly("zero", "last");
        assertThat(found.copies).isEqualTo(Map.of("Wien", 1, "Graz", 2));
        assertThat(books.findByTagsContains("b")).extracting(row -> row.isbn).contains("u1");
    }

    @Test
    void batches() {
        template.batchOps().insert(Book.of("b1", "batch", 1), Book.of("b2", "batch", 2)).execute();
        assertThat(books.findByAuthor("batch")).hasSize(2);
        template.batchOps().delete(Book.of("b1", "batch", 1)).insert(Book.of("b3", "batch", 3)).execute();
        assertThat(books.findByAuthor("batch")).extracting(book -> book.isbn).containsExactlyInAnyOrder("b2", "b3");
    }

    @Test
    void timeToLiveAndTimestamp() {
        template.insert(Book.of("x1", "ttl", 1), InsertOptions.builder().ttl(500).build());
        int left = session.execute("SELECT ttl(author) FROM books WHERE isbn = 'x1'").one().getInt(0);
        assertThat(left).isBetween(1, 500);
        template.update(Book.of("x1", "older", 1), UpdateOptions.builder().timestamp(1L).build());
        assertThat(books.findById("x1").orElseThrow().author).isEqualTo("ttl");
    }

    @Test
    void counters() {
        session.execute("CREATE TABLE IF NOT EXISTS loans (isbn text PRIMARY KEY, loans counter)");
        for (int step = 0; step < 5; step++) template.getCqlOperations().execute("UPDATE loans SET loans = loans + 2 WHERE isbn = ?", "k");
        assertThat(template.getCqlOperations().queryForObject("SELECT loans FROM loans WHERE isbn = ?", Long.class, "k")).isEqualTo(10L);
    }

    @Test
    void templateQueries() {
        for (int year = 0; year < 6; year++) books.save(Book.of("q" + year, "template", year));
        var of = query(where("author").is("template"));
        assertThat(template.select(of, Book.class)).hasSize(6);
        assertThat(template.count(of, Book.class)).isEqualTo(6);
        assertThat(template.select(of.and(where("year").gte(4)).withAllowFiltering(), Book.class)).hasSize(2);
        assertThat(template.select(query(where("isbn").in("q1", "q2", "zz")), Book.class)).hasSize(2);
        assertThat(template.select(of.limit(3), Book.class)).hasSize(3);
    }

    @Test
    void manyRowsThroughPagesOfTheDriver() {
        for (int place = 0; place < 300; place++) books.save(Book.of("many" + place, "many", place));
        var rows = session.execute(SimpleStatement.newInstance("SELECT isbn FROM books WHERE author = 'many'").setPageSize(17));
        assertThat(rows.all()).hasSize(300);
    }

    @Test
    void truncates() {
        session.execute("CREATE TABLE IF NOT EXISTS notes (id int PRIMARY KEY, t text)");
        session.execute("CREATE INDEX IF NOT EXISTS ON notes (t)");
        session.execute("INSERT INTO notes (id, t) VALUES (1, 'x')");
        session.execute("TRUNCATE notes");
        assertThat(session.execute("SELECT id FROM notes WHERE t = 'x'").all()).isEmpty();
    }
}
