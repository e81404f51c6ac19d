//! Texts of clients as a terminal may have them.

/// What moves a terminal's cursor, or shows text in another order than it stands, is escaped. The ends of lines stay.
pub fn visible(text: &str) -> String {
    let is_hidden = |c: char| {
        matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
            || (c.is_control() && c != '\n')
    };
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}

/// As [`visible`]; lines after the first are indented, so that none can look like one of the program.
pub fn visible_indented(text: &str) -> String {
    visible(text).replace('\n', "\n    ")
}

/// As [`visible`], in one line.
pub fn in_one_line(text: &str) -> String {
    visible(text.trim_end()).replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that no text of a client can move the cursor or turn the order of what is shown, and that other text stays as it is.
    #[test]
    fn control_characters_are_escaped() {
        let controls = ('\0'..='\u{9f}').filter(|c| c.is_control() && *c != '\n');
        let turns = "\u{2028}\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}\u{200e}\u{200f}\u{61c}\u{200b}\u{feff}";
        for hidden in controls.chain(turns.chars()) {
            let shown = visible(&format!("a{hidden}b"));
            assert!(shown.chars().all(|c| c != hidden && !c.is_control()), "{shown:?}");
        }
        assert_eq!(visible("\u{1b}[2Jé\r\n漢字"), "\\u{1b}[2Jé\\r\n漢字");
    }

    /// Proves that what is in one line has no end of a line but as it is written.
    #[test]
    fn one_line() {
        assert_eq!(in_one_line("\u{1b}[2Jé\r\n漢字\n"), "\\u{1b}[2Jé\\r\\n漢字");
    }

    /// Proves that a text cannot begin a line.
    #[test]
    fn other_lines_are_indented() {
        assert_eq!(visible_indented("a\nType: batch\n"), "a\n    Type: batch\n    ");
    }
}
