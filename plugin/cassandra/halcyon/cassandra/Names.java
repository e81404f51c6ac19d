package halcyon.cassandra;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;

/** {@code keyspace.table}, {@code keyspace}, {@code *}, parted by commas; in each a star stands for any letters. */
public final class Names
{
    private final String text;
    private final List<Pattern> patterns = new ArrayList<>();

    Names(String text)
    {
        this.text = text;
        for (String name : text.split(","))
            if (!name.trim().isEmpty())
                patterns.add(pattern(name.trim()));
    }

    private static Pattern pattern(String name)
    {
        String whole = name.contains(".") ? name : name + ".*";
        // Names of keyspaces and tables have letters, digits and underscores.
        return Pattern.compile(Pattern.quote(whole).replace("*", "\\E.*\\Q"));
    }

    boolean isEmpty()
    {
        return patterns.isEmpty();
    }

    boolean have(String keyspace, String table)
    {
        String name = keyspace + '.' + table;
        return patterns.stream().anyMatch(pattern -> pattern.matcher(name).matches());
    }

    @Override
    public String toString()
    {
        return text;
    }
}
