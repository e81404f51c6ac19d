//! Labels as text. A node with many tables has some 100,000 lines, and most of them have the labels of the line before them, so these are
//! escaped once.

/// Labels of a series: names are ours, values are anybody's.
pub(super) type Pairs<'a> = [(&'a str, Option<&'a str>)];

/// The labels of the last series.
#[derive(Default)]
pub(super) struct LabelText {
    of: Vec<(String, Option<String>)>,
    /// Without the brace that closes it; empty without labels.
    text: String,
}

impl LabelText {
    /// Appends labels in braces; `more` is the last one.
    pub(super) fn write(
        &mut self,
        labels: &Pairs<'_>,
        more: Option<(&str, &str)>,
        to: &mut String,
    ) {
        if !self.is_of(labels) {
            self.set(labels);
        }
        to.push_str(&self.text);
        if let Some((name, text)) = more {
            to.push(if self.text.is_empty() { '{' } else { ',' });
            push(name, text, to);
        }
        if more.is_some() || !self.text.is_empty() {
            to.push('}');
        }
    }

    fn is_of(&self, labels: &Pairs<'_>) -> bool {
        let is_same = |((known, before), (name, text)): (&(String, Option<String>), &(&str, _))| {
            before.as_deref() == *text && known == name
        };
        self.of.len() == labels.len() && self.of.iter().zip(labels).all(is_same)
    }

    fn set(&mut self, labels: &Pairs<'_>) {
        let own = |(name, text): &(&str, Option<&str>)| (name.to_string(), text.map(str::to_owned));
        self.of = labels.iter().map(own).collect();
        self.text.clear();
        for (name, text) in labels.iter().filter_map(|(name, text)| Some((name, (*text)?))) {
            self.text.push(if self.text.is_empty() { '{' } else { ',' });
            push(name, text, &mut self.text);
        }
    }
}

fn push(name: &str, text: &str, to: &mut String) {
    to.push_str(name);
    to.push_str("=\"");
    escape(text, to);
    to.push('"');
}

/// The value of a label, as it may stand between quotation marks.
fn escape(text: &str, to: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'\\' | b'"' | b'\n')) {
        let (before, from) = rest.split_at(at);
        to.push_str(before);
        to.push_str(match from.as_bytes().first() {
            Some(b'\\') => "\\\\",
            Some(b'"') => "\\\"",
            _ => "\\n",
        });
        rest = &from[1..];
    }
    to.push_str(rest);
}
