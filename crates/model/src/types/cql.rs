//! The CQL spelling of types, parsed: `map<text, frozen<list<int>>>`, `frozen<address>`, `vector<float, 3>`.
//!
//! `frozen<>` follows Cassandra: a collection inside a non-frozen collection must be frozen, as must a user type; a
//! tuple freezes its fields; `frozen<>` of a native type is refused.

use super::{CqlType, MAX_DEPTH, MAX_PARTS, TypeError, UserType};

/// Finds a user type of the keyspace by its exact name.
pub type UserTypes<'a> = &'a dyn Fn(&str) -> Option<UserType>;

impl CqlType {
    /// Parses the CQL spelling. `user_types` resolves the names of user types (lower-cased unless quoted; a keyspace
    /// in front is dropped, since a user type belongs to the table's keyspace).
    pub fn parse_cql(text: &str, user_types: UserTypes<'_>) -> Result<CqlType, TypeError> {
        CqlType::parse_with(text, user_types, true)
    }

    /// As `parse_cql`, of a statement: no collection has counters, which those of super columns have.
    pub fn parse_stated(text: &str, user_types: UserTypes<'_>) -> Result<CqlType, TypeError> {
        CqlType::parse_with(text, user_types, false)
    }

    fn parse_with(
        text: &str,
        user_types: UserTypes<'_>,
        has_counters: bool,
    ) -> Result<CqlType, TypeError> {
        if text.eq_ignore_ascii_case("empty") {
            return Ok(CqlType::Empty);
        }
        let mut parser = Parser { text, at: 0, parts: 0, user_types };
        let parsed = parser.cql_type(0)?;
        if let Some(c) = parser.peek() {
            return Err(parser.error(format!("end expected, found '{c}'")));
        }
        Check { has_counters, whole: (parsed.thawed(), text.trim()) }.one(&parsed, false)?;
        Ok(parsed)
    }

    /// Levels of types, this one included.
    fn depth(&self) -> usize {
        1 + self.children().iter().map(|child| child.depth()).max().unwrap_or(0)
    }

    /// The number of types in it, itself included.
    pub fn parts(&self) -> usize {
        1 + self.children().iter().map(|child| child.parts()).sum::<usize>()
    }

    /// The number of types in it once the user type `name` has `size` parts.
    pub fn parts_with(&self, name: &[u8], size: usize) -> usize {
        match self {
            CqlType::Udt(udt) if udt.name == name => size,
            _ => self
                .children()
                .iter()
                .fold(1, |sum: usize, child| sum.saturating_add(child.parts_with(name, size))),
        }
    }
}

impl TypeError {
    /// `name` has more than [`MAX_PARTS`] parts.
    pub fn too_large(name: &str) -> TypeError {
        TypeError::NotAllowed(format!("type {name} unfolds to more than {MAX_PARTS} types"))
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    /// Types so far.
    parts: usize,
    user_types: UserTypes<'a>,
}

enum Name<'a> {
    Plain(&'a str),
    Quoted(String),
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next character that is not white space.
    fn peek(&mut self) -> Option<char> {
        let trimmed = self.rest().trim_start();
        self.at = self.text.len() - trimmed.len();
        trimmed.chars().next()
    }

    fn error(&self, what: impl Into<String>) -> TypeError {
        TypeError::Syntax { text: self.text.to_owned(), at: self.at, what: what.into() }
    }

    fn expect(&mut self, c: char) -> Result<(), TypeError> {
        match self.peek() {
            Some(found) if found == c => {
                self.at += c.len_utf8();
                Ok(())
            }
            Some(found) => Err(self.error(format!("'{c}' expected, found '{found}'"))),
            None => Err(self.error(format!("'{c}' expected, found the end"))),
        }
    }

    fn eat(&mut self, c: char) -> bool {
        self.expect(c).is_ok()
    }

    fn word(&mut self) -> &'a str {
        self.peek();
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    /// Text up to the closing `quote`, where a doubled quote is an escaped one.
    fn quoted(&mut self, quote: char) -> Result<String, TypeError> {
        self.expect(quote)?;
        let mut out = String::new();
        loop {
            let rest = self.rest();
            let Some(end) = rest.find(quote) else {
                return Err(self.error(format!("closing {quote} expected")));
            };
            out.push_str(rest.get(..end).unwrap_or_default());
            self.at += end + 1;
            if !self.rest().starts_with(quote) {
                return Ok(out);
            }
            out.push(quote);
            self.at += 1;
        }
    }

    fn name(&mut self) -> Result<Name<'a>, TypeError> {
        if self.peek() == Some('"') {
            return Ok(Name::Quoted(self.quoted('"')?));
        }
        match self.word() {
            "" => Err(self.error("type name expected")),
            word => Ok(Name::Plain(word)),
        }
    }

    fn cql_type(&mut self, depth: usize) -> Result<CqlType, TypeError> {
        if depth > MAX_DEPTH {
            return Err(self.error(format!("types nest deeper than {MAX_DEPTH}")));
        }
        self.parts += 1;
        if self.peek() == Some('\'') {
            return CqlType::parse(&self.quoted('\'')?);
        }
        match self.name()? {
            Name::Plain(word) => {
                let lower = word.to_ascii_lowercase();
                if self.peek() == Some('<') {
                    return self.generic(&lower, depth);
                }
                match native(&lower) {
                    Some(native) if self.peek() != Some('.') => Ok(native),
                    _ => self.user_type(lower, depth),
                }
            }
            Name::Quoted(name) => self.user_type(name, depth),
        }
    }

    fn generic(&mut self, name: &str, depth: usize) -> Result<CqlType, TypeError> {
        self.expect('<')?;
        let inner = depth + 1;
        let parsed = match name {
            "frozen" => frozen(self.cql_type(inner)?)?,
            "list" => CqlType::List(Box::new(self.cql_type(inner)?)),
            "set" => CqlType::Set(Box::new(self.cql_type(inner)?)),
            "map" => {
                let key = self.cql_type(inner)?;
                self.expect(',')?;
                CqlType::Map(Box::new(key), Box::new(self.cql_type(inner)?))
            }
            "tuple" => {
                let mut fields = vec![self.tuple_field(inner)?];
                while self.eat(',') {
                    fields.push(self.tuple_field(inner)?);
                }
                CqlType::Tuple(fields)
            }
            "vector" => self.vector(inner)?,
            other => return Err(TypeError::Unknown(other.to_owned())),
        };
        self.expect('>')?;
        Ok(parsed)
    }

    fn tuple_field(&mut self, depth: usize) -> Result<CqlType, TypeError> {
        Ok(self.cql_type(depth)?.implied_frozen())
    }

    fn vector(&mut self, depth: usize) -> Result<CqlType, TypeError> {
        let element = self.cql_type(depth)?;
        self.expect(',')?;
        match self.word().parse::<i32>().ok().and_then(|n| u32::try_from(n).ok()) {
            Some(n) if n > 0 => Ok(CqlType::Vector(Box::new(element), n)),
            _ => Err(self.error("vector dimension expected (1 or more)")),
        }
    }

    fn user_type(&mut self, mut name: String, depth: usize) -> Result<CqlType, TypeError> {
        if self.eat('.') {
            name = match self.name()? {
                Name::Plain(word) => word.to_ascii_lowercase(),
                Name::Quoted(name) => name,
            };
        }
        let Some(found) = (self.user_types)(&name) else {
            // Until `check` refuses it, after what it refuses of a collection that it is in.
            let (keyspace, name, fields) = (String::new(), name.into_bytes(), Vec::new());
            return Ok(CqlType::Udt(Box::new(UserType { keyspace, name, fields })));
        };
        let found = CqlType::Udt(Box::new(found));
        self.parts += found.parts();
        if self.parts > MAX_PARTS {
            return Err(TypeError::too_large(&name));
        }
        if depth + found.depth() > MAX_DEPTH {
            return Err(self.error(format!("types nest deeper than {MAX_DEPTH}")));
        }
        Ok(found)
    }
}

fn frozen(inner: CqlType) -> Result<CqlType, TypeError> {
    match inner {
        CqlType::Frozen(_) | CqlType::Tuple(_) | CqlType::Vector(..) => Ok(inner),
        inner if inner.is_multi_cell() => Ok(inner.freeze()),
        other => Err(TypeError::NotAllowed(format!(
            "frozen<> is only allowed on collections, tuples, and user-defined types (got {})",
            other.cql_name()
        ))),
    }
}

/// Checks types after they are parsed, each before those that it is made of, as Cassandra does.
struct Check<'a> {
    has_counters: bool,
    /// The whole type, and its text.
    whole: (&'a CqlType, &'a str),
}

impl Check<'_> {
    /// `frozen`: it is inside of a type that freezes.
    fn one(&self, cql_type: &CqlType, frozen: bool) -> Result<(), TypeError> {
        let mut parts = cql_type.children();
        match cql_type {
            CqlType::List(e) | CqlType::Set(e) => {
                self.collection(cql_type, None, e, frozen)?;
            }
            CqlType::Map(k, v) => {
                self.collection(cql_type, Some(k), v, frozen)?;
                parts.reverse();
            }
            CqlType::Udt(udt) if udt.fields.is_empty() => {
                return Err(TypeError::Unknown(String::from_utf8_lossy(&udt.name).into_owned()));
            }
            // Its fields were checked when it was created.
            CqlType::Udt(_) => return Ok(()),
            _ => {}
        }
        let is_tuple = matches!(cql_type, CqlType::Tuple(_));
        let frozen = frozen || is_tuple || matches!(cql_type, CqlType::Frozen(_));
        for part in parts {
            if is_tuple && *part == CqlType::Counter {
                let what = "Counters are not allowed inside tuples";
                return Err(TypeError::NotAllowed(what.to_owned()));
            }
            self.one(part, frozen)?;
        }
        Ok(())
    }

    fn collection(
        &self,
        whole: &CqlType,
        key: Option<&CqlType>,
        value: &CqlType,
        frozen: bool,
    ) -> Result<(), TypeError> {
        let multi_cell = |element: &CqlType| match element {
            CqlType::Udt(_) if !frozen => {
                Some("Non-frozen UDTs are not allowed inside collections")
            }
            element if !frozen && element.is_multi_cell() => {
                Some("Non-frozen collections are not allowed inside collections")
            }
            _ => None,
        };
        let of_value = multi_cell(value).or(match (value, whole) {
            (CqlType::Counter, _) if !self.has_counters => Some(COUNTERS),
            (CqlType::Duration, CqlType::Set(_)) => Some(DURATIONS_IN_SETS),
            _ => None,
        });
        let rule = of_value.or_else(|| match key? {
            CqlType::Counter => Some(COUNTERS),
            CqlType::Duration => Some("Durations are not allowed as map keys"),
            key => multi_cell(key),
        });
        let Some(rule) = rule else { return Ok(()) };
        let shown = match std::ptr::eq(whole, self.whole.0) {
            true => self.whole.1.to_owned(),
            false => spelled(whole, frozen),
        };
        Err(TypeError::NotAllowed(format!("{rule}: {shown}")))
    }
}

const COUNTERS: &str = "Counters are not allowed inside collections";
/// How the refusal of a set of durations begins, wherever its type comes from.
pub const DURATIONS_IN_SETS: &str = "Durations are not allowed inside sets";

/// A part of a type as messages show it: `frozen` stands wherever it is implied, but not around tuples (`CQL3Type.Raw.toString`).
fn spelled(cql_type: &CqlType, frozen: bool) -> String {
    let text = match cql_type {
        CqlType::Frozen(inner) => return spelled(inner, true),
        CqlType::List(e) => format!("list<{}>", spelled(e, frozen)),
        CqlType::Set(e) => format!("set<{}>", spelled(e, frozen)),
        CqlType::Map(k, v) => format!("map<{}, {}>", spelled(k, frozen), spelled(v, frozen)),
        CqlType::Tuple(fields) => {
            let fields: Vec<String> = fields.iter().map(|field| spelled(field, true)).collect();
            return format!("tuple<{}>", fields.join(", "));
        }
        CqlType::Vector(e, n) => return format!("vector<{}, {n}>", spelled(e, false)),
        other => other.cql_name(),
    };
    if frozen && cql_type.is_multi_cell() { format!("frozen<{text}>") } else { text }
}

fn native(name: &str) -> Option<CqlType> {
    Some(match name {
        "ascii" => CqlType::Ascii,
        "bigint" => CqlType::BigInt,
        "blob" => CqlType::Blob,
        "boolean" => CqlType::Boolean,
        "counter" => CqlType::Counter,
        "date" => CqlType::Date,
        "decimal" => CqlType::Decimal,
        "double" => CqlType::Double,
        "duration" => CqlType::Duration,
        "float" => CqlType::Float,
        "inet" => CqlType::Inet,
        "int" => CqlType::Int,
        "smallint" => CqlType::SmallInt,
        "text" | "varchar" => CqlType::Text,
        "time" => CqlType::Time,
        "timestamp" => CqlType::Timestamp,
        "timeuuid" => CqlType::TimeUuid,
        "tinyint" => CqlType::TinyInt,
        "uuid" => CqlType::Uuid,
        "varint" => CqlType::Varint,
        _ => return None,
    })
}
