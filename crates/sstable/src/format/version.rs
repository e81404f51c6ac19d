//! Format versions and what each contains (§1 of the format notes).
//!
//! A version is two lower-case letters, major then minor, within one of two families:
//!
//! ```text
//! BIG   ma mb mc md me (3.x) │ na nb (4.x) │ oa (5.0) │ pa (6.0)
//! BTI                                      │ da (5.0) │ ea (6.0)
//! ```
//!
//! As Cassandra does, a reader takes every version from the earliest up to any minor of the newest major that it
//! knows: minors only ever add what older readers can skip.

use std::fmt;
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Format {
    Big,
    Bti,
}

impl Format {
    pub fn name(self) -> &'static str {
        match self {
            Format::Big => "big",
            Format::Bti => "bti",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(s: &str) -> Result<Format, String> {
        match s {
            "big" => Ok(Format::Big),
            "bti" => Ok(Format::Bti),
            other => Err(format!("SSTable format big or bti expected, found {other:?}")),
        }
    }
}

/// Two lower-case letters within a format family, `nb` … `ea`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version {
    pub format: Format,
    pub letters: [u8; 2],
}

impl Version {
    pub const MA: Version = Version::big(*b"ma");
    pub const MB: Version = Version::big(*b"mb");
    pub const MC: Version = Version::big(*b"mc");
    pub const MD: Version = Version::big(*b"md");
    pub const ME: Version = Version::big(*b"me");
    pub const NA: Version = Version::big(*b"na");
    pub const NB: Version = Version::big(*b"nb");
    pub const OA: Version = Version::big(*b"oa");
    pub const PA: Version = Version::big(*b"pa");
    pub const DA: Version = Version { format: Format::Bti, letters: *b"da" };
    pub const EA: Version = Version { format: Format::Bti, letters: *b"ea" };

    /// Every version that an Apache release wrote, oldest first within its family.
    pub const ALL: [Version; 11] = [
        Version::MA,
        Version::MB,
        Version::MC,
        Version::MD,
        Version::ME,
        Version::NA,
        Version::NB,
        Version::OA,
        Version::PA,
        Version::DA,
        Version::EA,
    ];

    const fn big(letters: [u8; 2]) -> Version {
        Version { format: Format::Big, letters }
    }

    /// Two lower-case letters; `readable` checks whether the version is known.
    pub fn parse(format: Format, letters: &str) -> Result<Version, String> {
        match *letters.as_bytes() {
            [major, minor] if major.is_ascii_lowercase() && minor.is_ascii_lowercase() => {
                Ok(Version { format, letters: [major, minor] })
            }
            _ => Err(format!(
                "SSTable version of two lower-case letters expected, found {letters:?}"
            )),
        }
    }

    /// Whether this program reads files of this version; the error contains the cure.
    pub fn readable(self) -> Result<(), String> {
        let (earliest, newest) = match self.format {
            Format::Big => (Version::MA, Version::PA),
            Format::Bti => (Version::DA, Version::EA),
        };
        // The versions of one format say nothing of the other's.
        if self.format == Format::Bti && self.letters[0] >= Version::MA.letters[0] {
            return Err(format!(
                "SSTable version {self} with tries (bti) never existed in an Apache Cassandra release, which has {earliest} to {newest}: \
                 export the data with the program that wrote it"
            ));
        }
        if self.letters < earliest.letters {
            return Err(match self.format {
                Format::Big => format!(
                    "SSTable version {self} was written before Cassandra 3.0: run `nodetool upgradesstables` \
                     on a Cassandra 3.x node first (versions from {earliest} on are readable)"
                ),
                Format::Bti => format!(
                    "SSTable version {self} never existed in an Apache Cassandra release, which began with {earliest}: \
                     export the data with the program that wrote it"
                ),
            });
        }
        if self.letters[0] > newest.letters[0] {
            return Err(format!(
                "SSTable version {self} is newer than {newest}, the newest that this program knows: \
                 use a newer release, or have Cassandra write the data in {newest} or older"
            ));
        }
        Ok(())
    }

    /// Whether this program writes files of this version.
    pub fn writable(self) -> Result<(), String> {
        match self {
            Version::NB | Version::OA | Version::PA | Version::DA | Version::EA => Ok(()),
            other => Err(format!(
                "SSTables are written in versions nb, oa, pa (big), da and ea (bti), not in {other}"
            )),
        }
    }

    /// The version to write for data with deletions at negative timestamps, or expirations after 2038. Only `nb` stores the former: from oa
    /// on, a deletion time has no room for a sign, and Cassandra takes what it wrote for such a deletion for corruption. Only versions
    /// since oa store the latter.
    pub fn holding(self, negative_deletions: bool, late_expirations: bool) -> Version {
        match (negative_deletions, late_expirations, self.has_uint_deletion_time()) {
            (true, _, true) => Version::NB,
            (false, true, false) => Version::OA,
            _ => self,
        }
    }

    /// BTI, or BIG from `letters` on.
    fn since(self, big: Version) -> bool {
        self.format == Format::Bti || self.letters >= big.letters
    }

    pub fn has_commit_log_lower_bound(self) -> bool {
        self.since(Version::MB)
    }
    pub fn has_commit_log_intervals(self) -> bool {
        self.since(Version::MC)
    }
    /// Whether reads may skip the SSTable by its clustering bounds or covered slice.
    pub fn has_accurate_min_max(self) -> bool {
        self.since(Version::MD)
    }
    /// `me` has it; the later `na` does not.
    pub fn has_host_id(self) -> bool {
        self.since(Version::NB) || self.letters[0] == b'm' && self.since(Version::ME)
    }
    pub fn has_max_compressed_length(self) -> bool {
        self.since(Version::NA)
    }
    pub fn has_pending_repair(self) -> bool {
        self.since(Version::NA)
    }
    pub fn has_is_transient(self) -> bool {
        self.since(Version::NA)
    }
    /// CRC32s inside Statistics.db.
    pub fn has_metadata_checksum(self) -> bool {
        self.since(Version::NA)
    }
    /// Bloom bit set as big-endian longs instead of bytes.
    pub fn has_old_bloom_format(self) -> bool {
        !self.since(Version::NA)
    }
    /// Deletion times with a flag byte and unsigned seconds; statistics likewise.
    pub fn has_uint_deletion_time(self) -> bool {
        self.since(Version::OA)
    }
    /// Covered clustering slice in the statistics.
    pub fn has_improved_min_max(self) -> bool {
        self.since(Version::OA)
    }
    pub fn has_partition_level_deletions_marker(self) -> bool {
        self.since(Version::OA)
    }
    /// First and last key in the statistics.
    pub fn has_key_range(self) -> bool {
        self.since(Version::OA)
    }
    pub fn has_token_space_coverage(self) -> bool {
        self.since(Version::OA)
    }
    /// A compression dictionary may follow in CompressionInfo.db.
    pub fn has_compression_dictionary(self) -> bool {
        match self.format {
            Format::Big => self.since(Version::PA),
            Format::Bti => self.letters >= Version::EA.letters,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor] = self.letters;
        write!(f, "{}{}", char::from(major), char::from(minor))
    }
}

/// A released version without its family: no two families share letters.
impl FromStr for Version {
    type Err = String;

    fn from_str(s: &str) -> Result<Version, String> {
        let known = Version::ALL.into_iter().find(|v| v.letters == s.as_bytes());
        known.ok_or_else(|| {
            let all = Version::ALL.map(|v| v.to_string()).join(", ");
            format!("SSTable version {s:?} is not one of {all}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// §1's table, one column per version in the order of `ALL`.
    #[test]
    fn features_are_the_tables() {
        type Row = (fn(Version) -> bool, &'static str);
        let table: [Row; 16] = [
            (Version::has_commit_log_lower_bound, "-xxxxxxxxxx"),
            (Version::has_commit_log_intervals, "--xxxxxxxxx"),
            (Version::has_accurate_min_max, "---xxxxxxxx"),
            (Version::has_host_id, "----x-xxxxx"),
            (Version::has_max_compressed_length, "-----xxxxxx"),
            (Version::has_pending_repair, "-----xxxxxx"),
            (Version::has_is_transient, "-----xxxxxx"),
            (Version::has_metadata_checksum, "-----xxxxxx"),
            (Version::has_old_bloom_format, "xxxxx------"),
            (Version::has_uint_deletion_time, "-------xxxx"),
            (Version::has_improved_min_max, "-------xxxx"),
            (Version::has_partition_level_deletions_marker, "-------xxxx"),
            (Version::has_key_range, "-------xxxx"),
            (Version::has_token_space_coverage, "-------xxxx"),
            (Version::has_compression_dictionary, "--------x-x"),
            (|v| v.writable().is_ok(), "------xxxxx"),
        ];
        for (row, (feature, expected)) in table.iter().enumerate() {
            let found: String =
                Version::ALL.iter().map(|v| if feature(*v) { 'x' } else { '-' }).collect();
            assert_eq!(found, *expected, "row {row}");
        }
    }

    /// A version is replaced only if it cannot hold the data.
    #[test]
    fn the_version_that_holds_the_data() {
        for version in [Version::NB, Version::OA, Version::PA, Version::DA, Version::EA] {
            assert_eq!(version.holding(false, false), version);
            assert_eq!(version.holding(true, false), Version::NB);
            assert_eq!(version.holding(true, true), Version::NB);
            let late = if version == Version::NB { Version::OA } else { version };
            assert_eq!(version.holding(false, true), late);
        }
    }

    /// Foreign versions are refused with the cure; later minors of the newest major are read.
    #[test]
    fn foreign_versions() {
        for v in Version::ALL {
            v.readable().expect("released version");
            assert_eq!(v.to_string().parse(), Ok(v));
        }
        let read = |format, s| Version::parse(format, s).expect("two letters").readable();
        assert!(read(Format::Big, "la").unwrap_err().contains("upgradesstables"));
        assert!(read(Format::Big, "zz").unwrap_err().contains("newer"));
        assert!(read(Format::Bti, "aa").unwrap_err().contains("never existed"));
        assert!(read(Format::Bti, "fa").unwrap_err().contains("newer"));
        assert!(read(Format::Bti, "na").unwrap_err().contains("never existed"));
        assert!(read(Format::Big, "pb").is_ok());
        assert!("la".parse::<Version>().unwrap_err().contains("ma, mb"));
        for bad in ["", "n", "nbb", "NB", "n1", "ñ"] {
            assert!(Version::parse(Format::Big, bad).is_err(), "{bad}");
        }
    }
}
