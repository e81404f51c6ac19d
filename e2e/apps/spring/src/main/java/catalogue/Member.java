package catalogue;

import org.springframework.data.annotation.Id;
import org.springframework.data.annotation.Version;
import org.springframework.data.cassandra.core.mapping.Table;

/** A version makes each save a lightweight transaction. */
@Table("members")
public class Member {
    @Id public String name;
    @Version public Long version;
    public String mail;
}
