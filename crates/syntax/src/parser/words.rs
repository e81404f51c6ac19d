//! Words that only mean themselves: they stand for no name unless quoted.

use halcyon_model::types::RESERVED_KEYWORDS;

/// Reserved too, as literals; DESCRIBE does not quote them.
const LITERALS: [&str; 2] = ["false", "true"];

/// Every other word, keyword or not, is a name wherever a name is expected.
pub(crate) fn is_reserved(word: &str) -> bool {
    // Compared without making a lower-case copy: every name in every statement is compared.
    let compare = |known: &&str| {
        let lower = word.bytes().map(|b| b.to_ascii_lowercase());
        known.bytes().cmp(lower)
    };
    RESERVED_KEYWORDS.binary_search_by(compare).is_ok()
        || LITERALS.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// Types with a keyword of their own.
const NATIVE_TYPES: [&str; 21] = [
    "ascii",
    "bigint",
    "blob",
    "boolean",
    "counter",
    "date",
    "decimal",
    "double",
    "duration",
    "float",
    "inet",
    "int",
    "smallint",
    "text",
    "time",
    "timestamp",
    "timeuuid",
    "tinyint",
    "uuid",
    "varchar",
    "varint",
];

pub(super) fn is_native_type(word: &str) -> bool {
    NATIVE_TYPES.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// Keywords that are names, but name neither functions nor types.
pub(super) fn names_no_function(word: &str) -> bool {
    const WORDS: [&str; 7] =
        ["ttl", "writetime", "maxwritetime", "key", "cast", "json", "distinct"];
    WORDS.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// Whether a keyword names a function by its text as it stands; names of other functions are put in lower case.
pub(super) fn keeps_case_as_function(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    lower != "count"
        && UNRESERVED.binary_search(&lower.as_str()).is_ok()
        && !names_no_function(word)
}

/// Sorted. Keywords that are names as well.
const UNRESERVED: [&str; 76] = [
    "access",
    "aggregate",
    "aggregates",
    "all",
    "ann",
    "as",
    "called",
    "cast",
    "cidrs",
    "cluster",
    "clustering",
    "columnfamilies",
    "compact",
    "contains",
    "count",
    "custom",
    "datacenters",
    "default",
    "distinct",
    "exists",
    "filtering",
    "finalfunc",
    "frozen",
    "function",
    "functions",
    "group",
    "hashed",
    "identity",
    "initcond",
    "input",
    "internals",
    "json",
    "key",
    "keys",
    "keyspaces",
    "language",
    "like",
    "list",
    "login",
    "map",
    "masked",
    "maxwritetime",
    "mbean",
    "mbeans",
    "nologin",
    "nosuperuser",
    "only",
    "options",
    "partition",
    "password",
    "per",
    "permission",
    "permissions",
    "replace",
    "returns",
    "role",
    "roles",
    "select_masked",
    "sfunc",
    "static",
    "storage",
    "stype",
    "superuser",
    "tables",
    "trigger",
    "ttl",
    "tuple",
    "type",
    "types",
    "unmask",
    "unset",
    "user",
    "users",
    "values",
    "vector",
    "writetime",
];

pub(super) fn is_unreserved_keyword(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    UNRESERVED.binary_search(&lower.as_str()).is_ok() || is_native_type(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the table is sorted, without which the search would miss words.
    #[test]
    fn reserved_words_are_found() {
        assert!(RESERVED_KEYWORDS.is_sorted() && UNRESERVED.is_sorted());
        let mut reserved = RESERVED_KEYWORDS.iter().chain(&LITERALS);
        assert!(reserved.all(|word| is_reserved(&word.to_ascii_uppercase())));
        assert!(!is_reserved("key") && !is_reserved("selects"));
    }
}
