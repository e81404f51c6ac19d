//! Values of every type against what Cassandra's own classes made of them (testdata/README.md).

use super::*;
use crate::byte_comparable;
use crate::hex;
use crate::types::CqlType;

fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.push(match (c, c == '\\') {
            (_, true) => match chars.next() {
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                _ => '\\',
            },
            (c, false) => c,
        });
    }
    out
}

const MARSHAL: &str = "org.apache.cassandra.db.marshal.";

/// Checks a table; returns the number of compared results and the differences.
fn check(table: &str) -> (usize, Vec<String>) {
    let mut cql_type = CqlType::Blob;
    let mut previous: Option<Vec<u8>> = None;
    let (mut compared, mut differences) = (0, Vec::new());
    for line in table.lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        let cell = |i: usize| cells.get(i).copied().unwrap_or("!");
        let value = hex::decode(if cell(0) == "V" { cell(1) } else { "" }).expect("hex");
        let ours: Vec<(&str, String)> = match cell(0) {
            "T" => {
                cql_type = CqlType::parse(&cell(1).replace('~', MARSHAL)).expect(line);
                previous = None;
                // Not where CQL has no name of its own for the type.
                if !cell(2).starts_with("~Reversed")
                    && cell(2) != "~DateType"
                    && !cell(3).starts_with('\'')
                {
                    let udt = |_: &str| match cql_type.thawed() {
                        CqlType::Udt(udt) => Some((**udt).clone()),
                        _ => None,
                    };
                    assert_eq!(CqlType::parse_cql(cell(3), &udt).as_ref(), Ok(&cql_type), "{line}");
                }
                vec![
                    ("", String::new()),
                    ("class", cql_type.to_string().replace(MARSHAL, "~")),
                    ("cql", cql_type.cql_name()),
                ]
            }
            "V" => {
                let mut comparable = Vec::new();
                let has_bytes = byte_comparable::encode(&cql_type, &value, &mut comparable);
                let order = previous.as_ref().map(|p| cql_type.compare(p, &value) as i8);
                vec![
                    ("", String::new()),
                    ("validate", cql_type.validate(&value).err().unwrap_or_else(|| "ok".into())),
                    ("json", to_json_string(&cql_type, &value)),
                    ("string", to_string(&cql_type, &value)),
                    ("literal", to_cql_literal(&cql_type, &value)),
                    ("comparable", if has_bytes { hex::encode(&comparable) } else { "-".into() }),
                    ("order", order.map_or("!".into(), |order| order.to_string())),
                ]
            }
            _ => continue,
        };
        for (i, (name, ours)) in ours.iter().enumerate().skip(1) {
            let theirs = cell(i + 1);
            if theirs == "!" {
                continue;
            }
            compared += 1;
            if *ours != unescape(theirs) {
                differences.push(format!(
                    "{cql_type} {name} {}: theirs {theirs:?}, ours {ours:?}",
                    cell(1)
                ));
            }
        }
        if cell(0) == "V" && cell(2) == "ok" {
            previous = Some(value);
        }
    }
    (compared, differences)
}

#[test]
fn values_are_rendered_encoded_and_ordered_as_in_cassandra() {
    // A larger table, freshly made, can be put in the place of the kept one.
    let table = match std::env::var("HALCYON_VALUES") {
        Ok(path) => std::fs::read_to_string(path).expect("readable table"),
        Err(_) => include_str!("../../testdata/values.tsv").to_owned(),
    };
    let (compared, differences) = check(&table);
    let shown: Vec<_> = differences.iter().take(40).collect();
    assert!(differences.is_empty(), "{} of {compared}: {shown:#?}", differences.len());
    assert!(compared > 1000);
    println!("{compared} results compared");
}

/// Digits that JDK 17 gives and that differ from the shortest ones, and the borders of the three forms.
#[test]
fn floating_point_numbers_are_javas() {
    assert_eq!(double_to_string(2.0e-3), "0.002");
    assert_eq!(double_to_string(1.0e23), "9.999999999999999E22");
    assert_eq!(double_to_string(2.2250738585072014e-308), "2.2250738585072014E-308");
    assert_eq!(double_to_string(4.9e-324), "4.9E-324");
    assert_eq!(double_to_string(9_999_999.0), "9999999.0");
    assert_eq!(double_to_string(1.0e7), "1.0E7");
    assert_eq!(double_to_string(-0.0), "-0.0");
    assert_eq!(float_to_string(0.001), "0.001");
    assert_eq!(float_to_string(9.999e-4), "9.999E-4");
    assert_eq!(float_to_string(f32::MIN_POSITIVE), "1.17549435E-38");
    assert_eq!(float_to_string(f32::NEG_INFINITY), "-Infinity");
}

/// Proves that texts of dynamic composites are values and back, and that both encodings have the order that Cassandra reads them in
/// (`crates/query/tests/data/sessions/composites.txt`).
#[test]
fn dynamic_composites_are_in_cassandras_order() {
    let spelled = "DynamicCompositeType(i=>Int32Type,t=>UTF8Type,R=>ReversedType(Int32Type))";
    let of = CqlType::parse(spelled).expect("a type");
    let texts = [
        "BytesType@01",
        "i@-1",
        "i@2",
        "i@2:t@b",
        "i@2:!",
        "ReversedType(Int32Type)@4",
        "R@3",
        "R@2",
        "t@a",
        "UTF8Type@b",
        "t@b\\:c:i@1",
    ];
    let mut before: Option<(Vec<u8>, Vec<u8>)> = None;
    for text in texts {
        let value = from_string(&of, text).expect("a value");
        assert_eq!(of.validate(&value), Ok(()), "{text}");
        assert_eq!(to_string(&of, &value), text);
        let mut encoded = Vec::new();
        byte_comparable::encode(&of, &value, &mut encoded);
        if let Some((other, other_encoded)) = &before {
            assert!(of.compare(other, &value).is_lt(), "{text}");
            assert!(*other_encoded < encoded, "{text}");
        }
        before = Some((value, encoded));
    }
    for wrong in ["x", "i@x", "z@1", "t@a@b", "!", "DynamicCompositeType(i=>Int32Type)@i"] {
        assert!(from_string(&of, wrong).is_err(), "{wrong}");
    }
}

/// Proves that every name of a zone leads to a zone of the database.
#[test]
fn names_of_zones_are_known() {
    let names = include_str!("zone_names.txt").lines().flat_map(|line| line.split('\t').skip(1));
    let mut count = 0;
    for name in names {
        let text = format!("2020-01-02 03:04:05 {name}");
        assert!(from_string(&CqlType::Timestamp, &text).is_ok(), "{name}");
        count += 1;
    }
    assert!(count > 700);
}

/// Proves that instants are those that Java's `Instant.parse` accepts, as Cassandra's nodetool showed.
#[test]
fn instants_are_javas() {
    let cases = [
        ("2022-12-03T10:15:30Z", 1_670_062_530_000),
        ("2022-12-03t10:15:30z", 1_670_062_530_000),
        ("2022-12-03T10:15:30.123456789Z", 1_670_062_530_123),
        ("2022-12-03T10:15:30+01:00", 1_670_058_930_000),
        ("2022-12-03T24:00:00Z", 1_670_112_000_000),
        ("1969-12-31T23:59:59.999Z", -1),
        ("+12022-12-03T10:15:30Z", 317_239_582_530_000),
    ];
    for (text, millis) in cases {
        assert_eq!(parse_instant(text), Some(millis), "{text}");
    }
    for wrong in [
        "",
        "x",
        "2022-12-03",
        "2022-12-03T10:15:30",
        "2022-12-03T10:15Z",
        "2022-02-30T10:15:30Z",
        "2022-12-03T24:00:01Z",
        "2022-12-03T10:60:30Z",
        "2022-12-03T10:15:30+0100",
        "2022-12-03T10:15:30.1234567891Z",
        "2022-12-03 10:15:30Z",
        "+2022-12-03T10:15:30Z",
        "1234567890",
        "µ-T",
    ] {
        assert_eq!(parse_instant(wrong), None, "{wrong}");
    }
}
