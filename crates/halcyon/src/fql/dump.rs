//! `halcyon fql dump`: prints records as fqltool does.

use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;

use clap::Args;
use halcyon_binlog::record::{Query, Record, Request, Value};
use halcyon_model::request::BatchKind;
use halcyon_model::visible_indented;

use super::logs::Logs;
use crate::console::Console;
use crate::failure::Result;

/// Print full query logs, as Cassandra's `fqltool dump` does
#[derive(Debug, Args)]
#[command(after_help = "Example:
  halcyon fql dump /var/log/halcyon/fql

Values are bytes in hexadecimal, 1024 of each at most. Passwords are not in the log.
Control characters of a query are escaped, and its further lines are indented.
Exit codes: 0 done, 1 a file is damaged, 2 wrong command line, 3 cannot read.")]
pub(crate) struct DumpArgs {
    /// Files of a log, or folders of them; several are merged by time
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
}

/// Bytes of a value that are shown.
const SHOWN: usize = 1024;
/// Bytes of a line.
const WIDTH: usize = 16;

pub(super) fn run(args: &DumpArgs, console: Console) -> Result<()> {
    let mut logs = Logs::open(&args.paths, console)?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    while let Some(record) = logs.next()? {
        out.write_all(text(&record).as_bytes())?;
    }
    Ok(out.flush()?)
}

fn text(record: &Record) -> String {
    let mut out = String::new();
    let kind = match record.request {
        Request::Single(_) => "single-query",
        Request::Batch(..) => "batch",
    };
    // Writing to a string cannot fail.
    let _ = writeln!(out, "Type: {kind}");
    let _ = writeln!(out, "Query start time: {}", record.query_start_time);
    let _ = writeln!(out, "Protocol version: {}", record.protocol_version);
    let _ = writeln!(out, "Generated timestamp:{}", record.generated_timestamp.unwrap_or(i64::MIN));
    // An int of Java, whose least value stands for none.
    let now = record.generated_now_in_seconds.unwrap_or(i64::from(i32::MIN));
    let _ = writeln!(out, "Generated nowInSeconds:{now}");
    match &record.request {
        Request::Single(query) => put(&mut out, query),
        Request::Batch(kind, queries) => {
            let kind = match kind {
                BatchKind::Logged => "LOGGED",
                BatchKind::Unlogged => "UNLOGGED",
                BatchKind::Counter => "COUNTER",
            };
            let _ = writeln!(out, "Batch type: {kind}");
            queries.iter().for_each(|query| put(&mut out, query));
        }
    }
    out.push('\n');
    out
}

fn put(out: &mut String, query: &Query) {
    let _ = writeln!(out, "Query: {}", visible_indented(&query.text));
    out.push_str("Values: \n");
    for (place, value) in query.values.iter().enumerate() {
        match value {
            Value::Null => out.push_str("null\n"),
            Value::Unset => out.push_str("unset\n"),
            Value::Bytes(bytes) => {
                put_hex(out, bytes.get(..SHOWN).unwrap_or(bytes));
                if bytes.len() > SHOWN {
                    out.push_str("... truncated\n");
                }
            }
        }
        if place > 0 {
            out.push_str("-----\n");
        }
    }
}

/// Lines of 16 bytes, as Chronicle prints them: offset, hexadecimal, characters. Of equal lines the first and the last are shown.
fn put_hex(out: &mut String, bytes: &[u8]) {
    let lines = bytes.chunks(WIDTH);
    let last = lines.len().saturating_sub(1);
    // Chronicle compares the first line with zeros, but shows it.
    let mut before: &[u8] = &[];
    let mut is_left_out = false;
    for (number, line) in lines.enumerate() {
        if number < last && line == before {
            is_left_out = true;
            continue;
        }
        if std::mem::take(&mut is_left_out) {
            out.push_str("........\n");
        }
        before = line;
        let _ = write!(out, "{:08x}", number * WIDTH);
        for place in 0..WIDTH {
            let gap = if place == WIDTH / 2 { " " } else { "" };
            let _ = match line.get(place) {
                Some(byte) => write!(out, "{gap} {byte:02X}"),
                None => write!(out, "{gap}   "),
            };
        }
        out.push(' ');
        for place in 0..WIDTH {
            if place == WIDTH / 2 {
                out.push(' ');
            }
            out.push(match line.get(place) {
                Some(byte @ b' '..=b'~') => char::from(*byte),
                Some(_) => '\u{b7}',
                None => ' ',
            });
        }
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use halcyon_binlog::record::Options;

    use super::*;

    /// Proves the form of fqltool: fields, separators of values, offsets, and that equal lines are left out.
    #[test]
    fn records_are_printed_as_fqltool_does() {
        let long = [&[0; 80][..], b"ab\n"].concat();
        let values = vec![Value::Bytes(vec![0, 0, 0, 1]), Value::Null, Value::Bytes(long)];
        let record = Record {
            query_start_time: 7,
            protocol_version: 5,
            generated_timestamp: None,
            generated_now_in_seconds: Some(9),
            keyspace: None,
            options: Options::default(),
            request: Request::Single(Query { text: "SELECT 1".to_owned(), values }),
        };
        let hex =
            |zeros: &str| format!("{zeros} 00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00 ");
        let dots = "········ ········";
        let expected = format!(
            "Type: single-query\nQuery start time: 7\nProtocol version: 5\nGenerated timestamp:-9223372036854775808\n\
             Generated nowInSeconds:9\nQuery: SELECT 1\nValues: \n\
             00000000 00 00 00 01{}····             \n\
             null\n-----\n\
             {}{dots}\n........\n\
             00000050 61 62 0A{}ab·              \n-----\n\n",
            " ".repeat(12 + 1 + 24 + 1),
            hex("00000000"),
            " ".repeat(15 + 1 + 24 + 1),
        );
        assert_eq!(text(&record), expected);
    }

    /// Proves that a query cannot write to the terminal, nor look like a record of its own.
    #[test]
    fn control_characters_of_queries_are_escaped() {
        let mut out = String::new();
        let text = "SELECT 1 -- \u{1b}]0;x\u{7}\u{9b}2J\u{202e}\nType: batch".to_owned();
        put(&mut out, &Query { text, values: Vec::new() });
        let shown = "Query: SELECT 1 -- \\u{1b}]0;x\\u{7}\\u{9b}2J\\u{202e}\n    Type: batch\n";
        assert_eq!(out, format!("{shown}Values: \n"));
    }
}
