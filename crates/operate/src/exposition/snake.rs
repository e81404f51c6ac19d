//! Names in snake case: Halcyon's own, and as management-api has them.

/// `SSTablesRead` is `sstables_read`.
pub(super) fn snake(name: &str) -> String {
    let name = name.replace("SSTable", "Sstable");
    let mut snake = String::with_capacity(name.len() + 8);
    let mut before = '_';
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit()) {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
        before = letter;
    }
    snake
}

/// `SSTablesRead` is `ss_tables_read`: an underscore comes before a capital that begins a word, also where a small letter follows it only.
/// What is neither a letter nor a digit is an underscore, and there is never more than one in a row.
pub(super) fn split(name: &str, to: &mut String) {
    let letters: Vec<char> = name.chars().collect();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| letters.get(at));
        let after = letters.get(at + 1);
        let begins = letter.is_ascii_uppercase()
            && before.is_some_and(|before| {
                !before.is_ascii_uppercase() || after.is_some_and(char::is_ascii_lowercase)
            });
        let is_word = letter.is_ascii_alphanumeric();
        if (begins || !is_word) && !to.ends_with('_') {
            to.push('_');
        }
        if is_word {
            to.push(letter.to_ascii_lowercase());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves the names of management-api for all kinds of capitals.
    #[test]
    fn words_are_split_as_management_api_does() {
        for (name, expected) in [
            ("SSTablesPerReadHistogram", "ss_tables_per_read_histogram"),
            ("LiveSSTableCount", "live_ss_table_count"),
            ("CQL", "cql"),
            ("connectedNativeClients", "connected_native_clients"),
            ("Read-LOCAL_QUORUM", "read_local_quorum"),
            ("PreparedStatementsCount", "prepared_statements_count"),
        ] {
            let mut split_name = String::new();
            split(name, &mut split_name);
            assert_eq!(split_name, expected);
        }
    }
}
