//! A profile as Cassandra prints it (`SamplingManager.formatResult`).

use halcyon_engine::{Sampled, Sampler};
use halcyon_tools::table;

/// What each sampler found, the most first.
pub type Found = Vec<(Sampler, Vec<Sampled>)>;

const PARTITIONS: [&str; 2] = ["Table", "Partition"];

/// The heading of a sampler, and the titles of its columns.
fn titles(sampler: Sampler) -> (&'static str, Vec<&'static str>) {
    let (heading, count) = match sampler {
        Sampler::Reads => ("Frequency of reads by partition", "Count"),
        Sampler::Writes => ("Frequency of writes by partition", "Count"),
        Sampler::CasContentions => ("Frequency of CAS contention by partition", "Count"),
        Sampler::LocalReadTime => {
            return ("Longest read query times", vec!["Query", "Microseconds"]);
        }
        Sampler::ReadRowCount => ("Partitions read with the most rows", "Rows"),
        Sampler::ReadTombstoneCount => ("Partitions read with the most tombstones", "Tombstones"),
        Sampler::ReadSSTableCount => ("Partitions read with the most sstables", "SSTables"),
        Sampler::WriteSize => ("Max mutation size by partition", "Bytes"),
    };
    let mut titles = PARTITIONS.to_vec();
    titles.push(count);
    if sampler.counts() {
        titles.push("+/-");
    }
    (heading, titles)
}

fn line(sampler: Sampler, sampled: &Sampled) -> Vec<String> {
    let Sampled { table, value, count, error } = sampled;
    let mut cells = vec![INDENT.to_owned()];
    if sampler != Sampler::LocalReadTime {
        cells.push(table.clone());
    }
    cells.extend([value.clone(), count.to_string()]);
    if sampler.counts() {
        cells.push(error.to_string());
    }
    cells
}

/// The first column of each table.
const INDENT: &str = "  ";

/// In Cassandra's order of samplers.
pub fn report(found: &[(Sampler, Vec<Sampled>)]) -> String {
    let mut parts = Vec::new();
    for (sampler, samples) in Sampler::ALL.iter().filter_map(|of| found.iter().find(|f| f.0 == *of))
    {
        let (heading, titles) = titles(*sampler);
        let titles = std::iter::once(INDENT).chain(titles).map(str::to_owned).collect();
        let lines = samples.iter().map(|sampled| line(*sampler, sampled));
        parts.push(match samples.is_empty() {
            true => format!("{heading}:\n   Nothing recorded during sampling period...\n"),
            false => {
                let lines: Vec<_> = std::iter::once(titles).chain(lines).collect();
                format!("{heading}:\n{}", table(&lines, " "))
            }
        });
    }
    parts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves headings, columns and alignment, with a text that Cassandra printed.
    #[test]
    fn reports_are_those_of_cassandra() {
        let of = |value: &str, count| Sampled {
            table: "ks.t".to_owned(),
            value: value.to_owned(),
            count,
            error: 0,
        };
        let found = vec![
            (Sampler::CasContentions, vec![]),
            (Sampler::LocalReadTime, vec![of("SELECT * FROM ks.t", 1234)]),
            (Sampler::Reads, vec![of("10", 12), of("7", 3)]),
        ];
        let expected = concat!(
            "Frequency of reads by partition:\n",
            "   Table Partition Count +/-\n",
            "   ks.t  10        12    0  \n",
            "   ks.t  7         3     0  \n",
            "\n",
            "Longest read query times:\n",
            "   Query              Microseconds\n",
            "   SELECT * FROM ks.t 1234        \n",
            "\n",
            "Frequency of CAS contention by partition:\n",
            "   Nothing recorded during sampling period...\n",
        );
        assert_eq!(report(&found), expected);
    }
}
