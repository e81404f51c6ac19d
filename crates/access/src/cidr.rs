//! Groups of addresses (`CIDRGroupsMappingManager`): which groups a client's address belongs to.
//!
//! An operator names groups of ranges in `system_auth.cidr_groups`. An address belongs to the groups that have the narrowest range around
//! it, and to no others: a group of 10.0.0.0/8 does not have 10.1.2.3 if another one has 10.1.0.0/16.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use halcyon_model::Cursor;

/// A range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cidr {
    /// Its first address.
    network: IpAddr,
    prefix: u8,
}

impl Cidr {
    /// The range around an address; `None`: the prefix is too long.
    pub fn of(address: IpAddr, prefix: i16) -> Option<Cidr> {
        let prefix = u8::try_from(prefix).ok().filter(|prefix| *prefix <= bits(address))?;
        Some(Cidr { network: network(address, prefix), prefix })
    }

    /// Of a `tuple<inet, smallint>`, as `cidr_groups` has it.
    pub fn of_tuple(tuple: &[u8]) -> Option<Cidr> {
        let mut cursor = Cursor::new(tuple);
        let mut part = || {
            let length = usize::try_from(cursor.i32().ok()?).ok()?;
            cursor.take(length).ok()
        };
        let (address, prefix) = (part()?, part()?);
        let address = match address.len() {
            4 => IpAddr::from(<[u8; 4]>::try_from(address).ok()?),
            _ => IpAddr::from(<[u8; 16]>::try_from(address).ok()?),
        };
        Cidr::of(address, i16::from_be_bytes(prefix.try_into().ok()?))
    }

    /// Address and prefix.
    pub fn parts(self) -> (IpAddr, u8) {
        (self.network, self.prefix)
    }
}

impl FromStr for Cidr {
    type Err = String;

    /// The words of an error are Cassandra's (`CIDR`).
    fn from_str(text: &str) -> Result<Cidr, String> {
        let invalid = || format!("{text} is not a valid CIDR String");
        let (address, prefix) = text.split_once('/').ok_or_else(invalid)?;
        let address = address.parse().map_err(|_| invalid())?;
        Cidr::of(address, prefix.parse().map_err(|_| invalid())?).ok_or_else(invalid)
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix)
    }
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The first address of a range.
pub(crate) fn network(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
        }
    }
}

/// All groups of a node.
#[derive(Debug, Default)]
pub struct CidrGroups {
    /// By the length of the prefix.
    ranges: BTreeMap<u8, HashMap<IpAddr, Vec<String>>>,
}

impl CidrGroups {
    pub fn add(&mut self, group: &str, range: Cidr) {
        let groups = self.ranges.entry(range.prefix).or_default().entry(range.network).or_default();
        groups.push(group.to_owned());
    }

    /// The groups of an address.
    pub fn of(&self, address: IpAddr) -> &[String] {
        let address = address.to_canonical();
        let mut narrow_first = self.ranges.range(..=bits(address)).rev();
        let found = narrow_first.find_map(|(prefix, of)| of.get(&network(address, *prefix)));
        found.map(Vec::as_slice).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(all: &[(&str, &str)]) -> CidrGroups {
        let mut groups = CidrGroups::default();
        all.iter().for_each(|(group, range)| groups.add(group, range.parse().unwrap()));
        groups
    }

    /// Proves that the narrowest range decides, for both kinds of addresses.
    #[test]
    fn the_narrowest_range_decides() {
        let groups = groups(&[
            ("all", "0.0.0.0/0"),
            ("wide", "10.0.0.0/8"),
            ("narrow", "10.1.2.3/16"),
            ("also", "10.1.0.0/16"),
            ("one", "10.1.0.1/32"),
            ("six", "2001:db8::/32"),
        ]);
        let of = |address: &str| groups.of(address.parse().unwrap()).join(",");
        assert_eq!(of("10.2.0.1"), "wide");
        assert_eq!(of("10.1.255.255"), "narrow,also");
        assert_eq!(of("10.1.0.1"), "one");
        assert_eq!(of("::ffff:10.1.0.1"), "one");
        assert_eq!(of("192.168.0.1"), "all");
        assert_eq!(of("2001:db8:ffff::1"), "six");
        assert_eq!(of("2001:db9::1"), "");
    }

    /// Proves that other texts are refused in Cassandra's words.
    #[test]
    fn ranges_are_checked() {
        for wrong in [
            "",
            "10.0.0.1",
            "10.0.0/8",
            "x/8",
            "10.0.0.1/",
            "10.0.0.1/x",
            "10.0.0.1/8/9",
            "10.0.0.1/33",
        ] {
            let refusal = wrong.parse::<Cidr>().unwrap_err();
            assert_eq!(refusal, format!("{wrong} is not a valid CIDR String"));
        }
        assert_eq!("::/128".parse::<Cidr>().unwrap().to_string(), "::/128");
        assert_eq!("10.1.2.3/8".parse::<Cidr>().unwrap().to_string(), "10.0.0.0/8");
    }
}
