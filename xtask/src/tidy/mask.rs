//! Rust source with everything blanked that is not code, so that plain text search finds only code.
//!
//! 1. Comments, strings and character literals become blanks; line breaks stay, so lines keep their numbers.
//! 2. Items under `#[cfg(test)]` become blanks too.
//!
//! It is not a parser: it knows just enough of Rust's tokens to match braces.

/// `source` without comments and literals.
pub(super) fn code_only(source: &str) -> String {
    let mut masked = Masked { rest: source, out: String::with_capacity(source.len()) };
    while let Some(first) = masked.rest.chars().next() {
        let skipped = literal_or_comment(masked.rest, masked.out.chars().last());
        match skipped {
            0 => masked.keep(first.len_utf8()),
            length => masked.blank(length),
        }
    }
    masked.out
}

struct Masked<'a> {
    rest: &'a str,
    out: String,
}

impl Masked<'_> {
    fn keep(&mut self, length: usize) {
        let (taken, rest) = self.rest.split_at(length);
        self.out.push_str(taken);
        self.rest = rest;
    }

    fn blank(&mut self, length: usize) {
        let (taken, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.out.extend(taken.chars().map(|letter| if letter == '\n' { '\n' } else { ' ' }));
        self.rest = rest;
    }
}

/// The length of the comment or literal that `text` starts with; 0 if it starts with code.
fn literal_or_comment(text: &str, before: Option<char>) -> usize {
    let in_word = before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
    if text.starts_with("//") {
        text.find('\n').unwrap_or(text.len())
    } else if text.starts_with("/*") {
        block_comment(text)
    } else if let Some(hashes) = raw_string(text).filter(|_| !in_word) {
        let open = text.find('"').unwrap_or(0) + 1;
        let close = format!("\"{}", "#".repeat(hashes));
        text[open..].find(&close).map_or(text.len(), |end| open + end + close.len())
    } else if text.starts_with('"') {
        quoted(text, '"')
    } else if text.starts_with('\'') && is_char(text) {
        quoted(text, '\'')
    } else {
        0
    }
}

fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        if text[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if text[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// The number of hashes, if `text` starts a raw string: `r"`, `r#"`, `br##"`.
fn raw_string(text: &str) -> Option<usize> {
    let after = text.strip_prefix('b').unwrap_or(text).strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    after[hashes..].starts_with('"').then_some(hashes)
}

/// `'a'` and `'\n'` are characters, `'a` is a lifetime.
fn is_char(text: &str) -> bool {
    let mut letters = text.chars().skip(1);
    match letters.next() {
        Some('\\') => true,
        Some(_) => letters.next() == Some('\''),
        None => false,
    }
}

fn quoted(text: &str, mark: char) -> usize {
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        if letter == '\\' {
            letters.next();
        } else if letter == mark {
            return at + 1;
        }
    }
    text.len()
}

/// Blanks the items under `#[cfg(test)]`; `code` is already masked.
pub(super) fn without_tests(code: &str) -> String {
    let mut out = code.to_owned();
    while let Some(start) = out.find("#[cfg(test)]").or_else(|| out.find("#[cfg(all(test")) {
        let end = item_end(&out, start);
        let blanks = out[start..end].chars().map(|letter| if letter == '\n' { '\n' } else { ' ' });
        let blanks: String = blanks.collect();
        out.replace_range(start..end, &blanks);
    }
    out
}

/// The names in `#[cfg(test)] mod name;`.
pub(super) fn test_modules(code: &str) -> Vec<String> {
    let after = code.split("#[cfg(test)]").skip(1);
    let declared = after.filter_map(|text| text.trim_start().strip_prefix("mod ")?.split_once(';'));
    declared.map(|(name, _)| name.trim().to_owned()).filter(|name| !name.contains('{')).collect()
}

fn item_end(code: &str, start: usize) -> usize {
    let from = code[start..].find(']').map_or(code.len(), |end| start + end + 1);
    match code[from..].find(['{', ';']) {
        Some(at) if code[from + at..].starts_with('{') => block_end(code, from + at),
        Some(at) => from + at + 1,
        None => code.len(),
    }
}

/// The index after the brace that closes the one at `open`.
pub(super) fn block_end(code: &str, open: usize) -> usize {
    let mut depth = 0usize;
    for (at, letter) in code[open..].char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 1 => return open + at + 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_comments_vanish_but_lines_stay() {
        let source =
            "let a = \"x.unwrap() \\\" {\"; // {\nlet b = r#\"}\"#; /* { /* } */ */ let c = '{';\n";
        let code = code_only(source);
        assert_eq!(code.lines().count(), 2);
        assert!(!code.contains(['{', '}']), "{code}");
        assert!(code.contains("let c ="), "{code}");
    }

    #[test]
    fn lifetimes_are_code() {
        assert_eq!(code_only("fn f<'a>(x: &'a str) {}"), "fn f<'a>(x: &'a str) {}");
    }

    #[test]
    fn test_items_vanish() {
        let code = "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() {}\n}\nfn c() {}\n#[cfg(test)]\nmod more;\n";
        let rest = without_tests(code);
        assert!(rest.contains("fn a") && rest.contains("fn c"), "{rest}");
        assert!(!rest.contains("fn b") && !rest.contains("more"), "{rest}");
        assert_eq!(test_modules(code), ["more"]);
    }
}
