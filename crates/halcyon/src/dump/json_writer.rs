//! JSON with the white space that `sstabledump` gives it: Jackson's pretty printer with two switches.
//!
//! 1. A line break and two blanks per level precede every value of an array and every field of an object; one blank, while its
//!    kind (arrays, objects) is *compact*.
//! 2. The same precedes a closing bracket; one blank, if the array or object is empty.
//! 3. The switches apply to the whole writer, not to a level. The caller sets them; where `sstabledump` resets one too late,
//!    we do too.
//!
//! `Style::Lines` has no white space, and a line break between the values at the root.

use std::io::{self, Write};

use halcyon_model::value::quote_json;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Pretty,
    Lines,
}

#[derive(Debug, Clone, Copy)]
struct Level {
    is_array: bool,
    /// Values or fields so far.
    entries: u64,
}

pub(crate) struct JsonWriter<W> {
    out: W,
    buffer: String,
    style: Style,
    levels: Vec<Level>,
    roots: u64,
    pub(crate) compact_objects: bool,
    pub(crate) compact_arrays: bool,
}

/// Bytes that are buffered before a write.
const BUFFER: usize = 64 << 10;

impl<W: Write> JsonWriter<W> {
    pub(crate) fn new(out: W, style: Style) -> JsonWriter<W> {
        JsonWriter {
            out,
            buffer: String::with_capacity(BUFFER + 4096),
            style,
            levels: Vec::new(),
            roots: 0,
            compact_objects: false,
            compact_arrays: false,
        }
    }

    fn indent(&mut self, compact: bool) {
        if self.style == Style::Lines {
            return;
        }
        if compact {
            self.buffer.push(' ');
            return;
        }
        self.buffer.push('\n');
        for _ in 0..self.levels.len() {
            self.buffer.push_str("  ");
        }
    }

    /// Writes the separator before the next value.
    fn separate(&mut self) {
        match self.levels.last_mut() {
            Some(level) if level.is_array => {
                level.entries += 1;
                if level.entries > 1 {
                    self.buffer.push(',');
                }
                self.indent(self.compact_arrays);
            }
            Some(_) => {}
            None => {
                if self.roots > 0 {
                    self.buffer.push(if self.style == Style::Lines { '\n' } else { ' ' });
                }
                self.roots += 1;
            }
        }
    }

    fn start(&mut self, is_array: bool, bracket: char) {
        self.separate();
        self.buffer.push(bracket);
        self.levels.push(Level { is_array, entries: 0 });
    }

    fn end(&mut self, compact: bool, bracket: char) -> io::Result<()> {
        let entries = self.levels.pop().map_or(0, |level| level.entries);
        if entries > 0 {
            self.indent(compact);
        } else if self.style == Style::Pretty {
            self.buffer.push(' ');
        }
        self.buffer.push(bracket);
        if self.buffer.len() >= BUFFER { self.drain() } else { Ok(()) }
    }

    pub(crate) fn start_array(&mut self) {
        self.start(true, '[');
    }

    pub(crate) fn end_array(&mut self) -> io::Result<()> {
        self.end(self.compact_arrays, ']')
    }

    pub(crate) fn start_object(&mut self) {
        self.start(false, '{');
    }

    pub(crate) fn end_object(&mut self) -> io::Result<()> {
        self.end(self.compact_objects, '}')
    }

    pub(crate) fn field(&mut self, name: &str) {
        if let Some(level) = self.levels.last_mut() {
            level.entries += 1;
            if level.entries > 1 {
                self.buffer.push(',');
            }
        }
        self.indent(self.compact_objects);
        self.quoted(name);
        self.buffer.push_str(if self.style == Style::Lines { ":" } else { " : " });
    }

    fn quoted(&mut self, text: &str) {
        self.buffer.push('"');
        self.buffer.push_str(&quote_json(text));
        self.buffer.push('"');
    }

    pub(crate) fn string(&mut self, text: &str) {
        self.separate();
        self.quoted(text);
    }

    /// Writes a value that is already JSON.
    pub(crate) fn raw(&mut self, json: &str) {
        self.separate();
        self.buffer.push_str(json);
    }

    fn drain(&mut self) -> io::Result<()> {
        self.out.write_all(self.buffer.as_bytes())?;
        self.buffer.clear();
        Ok(())
    }

    /// Writes the rest of the buffer.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.drain()?;
        self.out.flush()
    }
}
