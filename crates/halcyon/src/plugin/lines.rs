//! Our lines in a file of options for Cassandra's JVM, and what changes when they come and go.
//!
//! They stand between two comments, so that they are found again. Lines about Halcyon elsewhere are an operator's, and stay untouched.

use std::fmt::Write;

const FIRST: &str =
    "# Halcyon compacts for this node: `halcyon plugin remove` takes these lines away.";
const LAST: &str = "# End of Halcyon's lines.";
/// Lines around a change that a diff shows.
const CONTEXT: usize = 3;

pub(super) struct Lines<'a> {
    text: &'a str,
    /// Where ours begin and end.
    ours: Option<(usize, usize)>,
}

impl<'a> Lines<'a> {
    pub(super) fn of(text: &'a str) -> Lines<'a> {
        let ours = text.find(FIRST).and_then(|from| {
            let end = text.get(from..)?.find(LAST)? + from + LAST.len();
            let line_end =
                text.get(end..)?.find('\n').map_or(text.len(), |length| end + length + 1);
            Some((from, line_end))
        });
        Lines { text, ours }
    }

    pub(super) fn are_there(&self) -> bool {
        self.ours.is_some()
    }

    /// The text before ours and the text behind.
    fn others(&self) -> (&'a str, &'a str) {
        let (from, to) = self.ours.unwrap_or((self.text.len(), self.text.len()));
        (self.text.get(..from).unwrap_or_default(), self.text.get(to..).unwrap_or_default())
    }

    /// An option about Halcyon that an operator wrote.
    pub(super) fn by_hand(&self) -> Option<&'a str> {
        let (before, behind) = self.others();
        let mut lines = before.lines().chain(behind.lines()).map(str::trim);
        lines.find(|line| {
            let is_agent = line.contains("-javaagent:") && line.contains("halcyon");
            !line.starts_with('#') && (is_agent || line.contains("-Dhalcyon."))
        })
    }

    pub(super) fn without(&self) -> String {
        let (before, behind) = self.others();
        format!("{before}{behind}")
    }

    /// Where they were, else at the end.
    pub(super) fn with(&self, options: &[String]) -> String {
        let (before, behind) = self.others();
        let newline = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
        let options = options.join("\n");
        format!("{before}{newline}{FIRST}\n{options}\n{LAST}\n{behind}")
    }
}

/// A unified diff of one change: what both texts begin and end with is left out, but for a few lines.
pub(super) fn diff(name: &str, old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (lines(old), lines(new));
    let same = |(a, b): &(&&str, &&str)| a == b;
    let begin = old.iter().zip(&new).take_while(same).count();
    let most = old.len().min(new.len()) - begin;
    let end = old.iter().rev().zip(new.iter().rev()).take(most).take_while(same).count();
    let first = begin.saturating_sub(CONTEXT);
    let behind = end.min(CONTEXT);
    let (old_end, new_end) = (old.len() - end, new.len() - end);
    let range = |end: usize| {
        let count = end + behind - first;
        // An empty range is named by the line before it.
        format!("{},{count}", if count == 0 { first } else { first + 1 })
    };
    let mut text =
        format!("--- {name}\n+++ {name}\n@@ -{} +{} @@\n", range(old_end), range(new_end));
    let mut show = |mark: char, lines: Option<&[&str]>| {
        for line in lines.unwrap_or_default() {
            // Writing to a String cannot fail.
            let _ = write!(text, "{mark}{line}");
            if !line.ends_with('\n') {
                text.push_str("\n\\ No newline at end of file\n");
            }
        }
    };
    show(' ', old.get(first..begin));
    show('-', old.get(begin..old_end));
    show('+', new.get(begin..new_end));
    show(' ', old.get(old_end..old_end + behind));
    text
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Vec<String> {
        vec![
            "-javaagent:/opt/h/halcyon.jar".to_owned(),
            "-Dhalcyon.binary=/opt/h/halcyon".to_owned(),
        ]
    }

    /// Proves that what comes goes again, that coming twice changes nothing, and that no line of others moves.
    #[test]
    fn lines_come_and_go() {
        for text in ["", "-ea\n", "# last line without an end", "-ea\n\n"] {
            let with = Lines::of(text).with(&options());
            assert_eq!(Lines::of(&with).with(&options()), with);
            assert!(Lines::of(&with).by_hand().is_none());
            assert_eq!(Lines::of(&with).without().trim_end(), text.trim_end());
            let later = format!("{with}-Xmx1g\n");
            let moved = Lines::of(&later).with(&["-Dhalcyon.binary=/new".to_owned()]);
            assert!(moved.ends_with(&format!("{LAST}\n-Xmx1g\n")) && !moved.contains("/opt/h"));
        }
    }

    #[test]
    fn what_was_written_by_hand_is_found() {
        for line in ["-javaagent:/x/halcyon-cassandra.jar", " -Dhalcyon.binary=/x"] {
            assert_eq!(Lines::of(&format!("-ea\n{line}\n")).by_hand(), Some(line.trim()));
            assert_eq!(Lines::of(&format!("-ea\n#{line}\n")).by_hand(), None);
        }
        assert_eq!(Lines::of("-javaagent:/x/other.jar\n").by_hand(), None);
    }

    #[test]
    fn a_diff_is_unified() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n";
        let new = "1\n2\n3\n4\nfour\n5\n6\n7\n8\n";
        let shown = "--- f\n+++ f\n@@ -2,6 +2,7 @@\n 2\n 3\n 4\n+four\n 5\n 6\n 7\n";
        assert_eq!(diff("f", old, new), shown);
        assert_eq!(diff("f", "", "a\n"), "--- f\n+++ f\n@@ -0,0 +1,1 @@\n+a\n");
        let shown = "--- f\n+++ f\n@@ -1,1 +1,2 @@\n-a\n\\ No newline at end of file\n+a\n+b\n";
        assert_eq!(diff("f", "a", "a\nb\n"), shown);
        assert_eq!(diff("f", "a\nb\na\n", "a\na\n"), "--- f\n+++ f\n@@ -1,3 +1,2 @@\n a\n-b\n a\n");
    }
}
