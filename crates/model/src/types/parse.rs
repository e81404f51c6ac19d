//! The class spelling of types: `org.apache.cassandra.db.marshal.MapType(...)` and its like.

use super::{CqlType, MAX_DEPTH, TypeError, UserType};
use crate::hex;

pub(super) const MARSHAL: &str = "org.apache.cassandra.db.marshal.";

impl CqlType {
    /// Parses `AbstractType.toString()`. A name without a package is one of Cassandra's; classes that Halcyon does
    /// not know become `Custom`. As in Cassandra, the empty string is blob.
    pub fn parse(text: &str) -> Result<CqlType, TypeError> {
        let mut parser = Parser { text, at: 0 };
        parser.skip_blanks();
        if parser.peek().is_none() {
            return Ok(CqlType::Blob);
        }
        let parsed = parser.cql_type(0)?;
        parser.skip_blanks();
        match parser.peek() {
            None => Ok(parsed),
            Some(c) => Err(parser.error(format!("end expected, found '{c}'"))),
        }
    }
}

/// Types without arguments, by simple class name.
pub(super) const SIMPLE: &[(&str, CqlType)] = &[
    ("AsciiType", CqlType::Ascii),
    ("UTF8Type", CqlType::Text),
    ("BytesType", CqlType::Blob),
    ("ByteType", CqlType::TinyInt),
    ("ShortType", CqlType::SmallInt),
    ("Int32Type", CqlType::Int),
    ("LongType", CqlType::BigInt),
    ("IntegerType", CqlType::Varint),
    ("BooleanType", CqlType::Boolean),
    ("FloatType", CqlType::Float),
    ("DoubleType", CqlType::Double),
    ("DecimalType", CqlType::Decimal),
    ("TimestampType", CqlType::Timestamp),
    ("SimpleDateType", CqlType::Date),
    ("TimeType", CqlType::Time),
    ("DurationType", CqlType::Duration),
    ("UUIDType", CqlType::Uuid),
    ("TimeUUIDType", CqlType::TimeUuid),
    ("InetAddressType", CqlType::Inet),
    ("CounterColumnType", CqlType::Counter),
    ("EmptyType", CqlType::Empty),
    ("DateType", CqlType::LegacyTimestamp),
    ("LexicalUUIDType", CqlType::LexicalUuid),
];

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

fn is_identifier(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.' | '_' | '&')
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn error(&self, what: impl Into<String>) -> TypeError {
        TypeError::Syntax { text: self.text.to_owned(), at: self.at, what: what.into() }
    }

    fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n']).len();
    }

    fn identifier(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !is_identifier(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    /// Consumes `c` after blanks, if it is next.
    fn eat(&mut self, c: char) -> bool {
        self.skip_blanks();
        let found = self.peek() == Some(c);
        if found {
            self.at += c.len_utf8();
        }
        found
    }

    fn expect(&mut self, c: char) -> Result<(), TypeError> {
        if self.eat(c) {
            return Ok(());
        }
        Err(match self.peek() {
            Some(found) => self.error(format!("'{c}' expected, found '{found}'")),
            None => self.error(format!("'{c}' expected, found the end")),
        })
    }

    fn hex(&mut self) -> Result<Vec<u8>, TypeError> {
        self.skip_blanks();
        let start = self.at;
        hex::decode(self.identifier()).ok_or_else(|| {
            self.at = start;
            self.error("hexadecimal bytes expected")
        })
    }

    fn cql_type(&mut self, depth: usize) -> Result<CqlType, TypeError> {
        if depth > MAX_DEPTH {
            return Err(self.error(format!("types nest deeper than {MAX_DEPTH}")));
        }
        self.skip_blanks();
        let start = self.at;
        let name = self.identifier();
        if name.is_empty() {
            return Err(self.error("class name expected"));
        }
        let simple = name.strip_prefix(MARSHAL).unwrap_or(name);
        if simple.contains('.') {
            return self.custom(start);
        }
        if let Some((_, known)) = SIMPLE.iter().find(|(known, _)| *known == simple) {
            if self.eat('(') {
                self.expect(')')?;
            }
            return Ok(known.clone());
        }
        match simple {
            "ListType" => Ok(CqlType::List(self.one(depth)?)),
            "SetType" => Ok(CqlType::Set(self.one(depth)?)),
            "FrozenType" => Ok(CqlType::Frozen(self.one(depth)?)),
            "ReversedType" => Ok(CqlType::Reversed(self.one(depth)?)),
            "MapType" => self.map(depth),
            "TupleType" => Ok(CqlType::Tuple(self.many(depth)?)),
            "CompositeType" => Ok(CqlType::Composite(self.many(depth)?)),
            "DynamicCompositeType" => self.dynamic_composite(depth),
            "UserType" => self.user_type(depth),
            "VectorType" => self.vector(depth),
            "PartitionerDefinedOrder" => self.partitioner_defined_order(depth),
            _ => self.custom(start),
        }
    }

    fn one(&mut self, depth: usize) -> Result<Box<CqlType>, TypeError> {
        self.expect('(')?;
        let inner = self.cql_type(depth + 1)?;
        self.expect(')')?;
        Ok(Box::new(inner))
    }

    fn many(&mut self, depth: usize) -> Result<Vec<CqlType>, TypeError> {
        self.expect('(')?;
        let mut list = Vec::new();
        while !self.eat(')') {
            if !list.is_empty() {
                self.expect(',')?;
            }
            list.push(self.cql_type(depth + 1)?);
        }
        Ok(list)
    }

    fn dynamic_composite(&mut self, depth: usize) -> Result<CqlType, TypeError> {
        let mut aliases = Vec::new();
        if !self.eat('(') {
            return Ok(CqlType::DynamicComposite(aliases));
        }
        while !self.eat(')') {
            if !aliases.is_empty() {
                self.expect(',')?;
            }
            self.skip_blanks();
            let &[alias] = self.identifier().as_bytes() else {
                return Err(self.error("an alias of one character expected"));
            };
            self.expect('=')?;
            self.expect('>')?;
            let of = self.cql_type(depth + 1)?;
            if matches!(of.base(), CqlType::DynamicComposite(_)) {
                return Err(self.error("an alias of another dynamic composite"));
            }
            aliases.push((alias, of));
        }
        Ok(CqlType::DynamicComposite(super::dynamic::in_order(aliases)))
    }

    fn map(&mut self, depth: usize) -> Result<CqlType, TypeError> {
        self.expect('(')?;
        let key = self.cql_type(depth + 1)?;
        self.expect(',')?;
        let value = self.cql_type(depth + 1)?;
        self.expect(')')?;
        Ok(CqlType::Map(Box::new(key), Box::new(value)))
    }

    fn vector(&mut self, depth: usize) -> Result<CqlType, TypeError> {
        self.expect('(')?;
        let element = self.cql_type(depth + 1)?;
        self.expect(',')?;
        self.skip_blanks();
        let dimension = self.identifier().parse::<i32>().ok().filter(|n| *n > 0);
        let Some(dimension) = dimension.and_then(|n| u32::try_from(n).ok()) else {
            return Err(self.error("vector dimension expected (1 or more)"));
        };
        self.expect(')')?;
        Ok(CqlType::Vector(Box::new(element), dimension))
    }

    fn user_type(&mut self, depth: usize) -> Result<CqlType, TypeError> {
        self.expect('(')?;
        self.skip_blanks();
        let keyspace = self.identifier().to_owned();
        self.expect(',')?;
        let name = self.hex()?;
        let mut fields = Vec::new();
        while !self.eat(')') {
            self.expect(',')?;
            let field = self.hex()?;
            self.expect(':')?;
            fields.push((field, self.cql_type(depth + 1)?));
        }
        Ok(CqlType::Udt(Box::new(UserType { keyspace, name, fields })))
    }

    fn partitioner_defined_order(&mut self, depth: usize) -> Result<CqlType, TypeError> {
        self.expect('(')?;
        self.skip_blanks();
        let partitioner = self.identifier().to_owned();
        let key_type = if self.eat(':') { Some(Box::new(self.cql_type(depth + 1)?)) } else { None };
        self.expect(')')?;
        Ok(CqlType::PartitionerDefinedOrder { partitioner, key_type })
    }

    /// Keeps a class that is not known, with its arguments, as spelled.
    fn custom(&mut self, start: usize) -> Result<CqlType, TypeError> {
        let after_name = self.at;
        if self.eat('(') {
            let mut open = 1usize;
            while open > 0 {
                match self.peek() {
                    Some('(') => open += 1,
                    Some(')') => open -= 1,
                    Some(_) => {}
                    None => return Err(self.error("')' expected, found the end")),
                }
                self.at += self.peek().map_or(0, char::len_utf8);
            }
        } else {
            self.at = after_name;
        }
        Ok(CqlType::Custom(self.text.get(start..self.at).unwrap_or_default().to_owned()))
    }
}
