package catalogue;

import org.springframework.data.cassandra.core.mapping.UserDefinedType;

@UserDefinedType("publisher")
public record Publisher(String name, String city) {}
