//! Consistency levels with Cassandra's names and codes.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Consistency {
    Any,
    One,
    Two,
    Three,
    Quorum,
    All,
    LocalQuorum,
    EachQuorum,
    Serial,
    LocalSerial,
    LocalOne,
    NodeLocal,
}

const NAMES: [(Consistency, &str); 12] = [
    (Consistency::Any, "ANY"),
    (Consistency::One, "ONE"),
    (Consistency::Two, "TWO"),
    (Consistency::Three, "THREE"),
    (Consistency::Quorum, "QUORUM"),
    (Consistency::All, "ALL"),
    (Consistency::LocalQuorum, "LOCAL_QUORUM"),
    (Consistency::EachQuorum, "EACH_QUORUM"),
    (Consistency::Serial, "SERIAL"),
    (Consistency::LocalSerial, "LOCAL_SERIAL"),
    (Consistency::LocalOne, "LOCAL_ONE"),
    (Consistency::NodeLocal, "NODE_LOCAL"),
];

impl Consistency {
    pub fn from_code(code: u16) -> Option<Consistency> {
        NAMES.get(usize::from(code)).map(|(level, _)| *level)
    }

    pub fn code(self) -> u16 {
        self as u16
    }

    pub fn name(self) -> &'static str {
        NAMES[usize::from(self.code())].1
    }

    pub fn is_serial(self) -> bool {
        matches!(self, Consistency::Serial | Consistency::LocalSerial)
    }
}

impl fmt::Display for Consistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
