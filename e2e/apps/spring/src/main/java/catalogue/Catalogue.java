package catalogue;

import com.datastax.oss.driver.api.core.CqlSession;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.autoconfigure.cassandra.CqlSessionBuilderCustomizer;
import org.springframework.context.annotation.Bean;

/** An application of Spring Data on tables that it makes itself, from its entities. */
@SpringBootApplication
public class Catalogue {
    /** Spring Boot makes tables, not their keyspace. */
    @Bean
    CqlSessionBuilderCustomizer keyspace(org.springframework.boot.autoconfigure.cassandra.CassandraProperties properties) {
        return builder -> {
            String[] address = properties.getContactPoints().get(0).split(":");
            var contact = new java.net.InetSocketAddress(address[0], Integer.parseInt(address[1]));
            var first = CqlSession.builder().addContactPoint(contact).withLocalDatacenter(properties.getLocalDatacenter());
            try (CqlSession session = first.build()) {
                session.execute(
                        "CREATE KEYSPACE IF NOT EXISTS " + properties.getKeyspaceName()
                                + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
            }
        };
    }
}
