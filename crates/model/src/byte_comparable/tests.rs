use super::*;
use crate::hex;
use crate::types::UserType;

fn encoded(cql_type: &CqlType, v: &[u8]) -> String {
    let mut out = Vec::new();
    if encode(cql_type, v, &mut out) { hex::encode(&out) } else { "null source".into() }
}

/// Values given by Cassandra's classes.
#[test]
fn values_encode_as_in_cassandra() {
    let text: &[(&[u8], &str)] = &[
        (b"", "00"),
        (b"A", "4100"),
        (b"A\0", "4100fe"),
        (b"A\0\0B", "4100feff4200"),
        (b"A\0B\0", "4100ff4200fe"),
        (b"\0\0", "00fefe"),
    ];
    for (value, golden) in text {
        assert_eq!(encoded(&CqlType::Text, value), *golden);
    }
    let bigint: &[(i64, &str)] = &[
        (0, "80"),
        (1, "81"),
        (-1, "7f"),
        (63, "bf"),
        (64, "c040"),
        (-64, "40"),
        (-65, "3fbf"),
        (1 << 20, "f0100000"),
        (i64::MAX, "ffffffffffffffffff"),
        (i64::MIN, "000000000000000000"),
    ];
    for (value, golden) in bigint {
        assert_eq!(encoded(&CqlType::BigInt, &value.to_be_bytes()), *golden);
    }
    let others = [
        (CqlType::Varint, "7f", "c07f"),
        (CqlType::Varint, "00ff", "c0ff"),
        (CqlType::Varint, "ff00", "3f00"),
        (CqlType::Varint, "00ffffffff", "f8ffffffff"),
        (CqlType::Varint, "00ffffffffffffff", "ff00ffffffffffffff"),
        (CqlType::Varint, "0100000000000000", "ff010100000000000000"),
        (CqlType::Varint, "feffffffffffffff", "00fefeffffffffffffff"),
        (CqlType::Decimal, "0000000000", "80"),
        (CqlType::Decimal, "0000000001", "c1018100"),
        (CqlType::Decimal, "000000010b", "c101818a00"),
        (CqlType::Decimal, "00000000ff", "3fff7f00"),
        (CqlType::Decimal, "00000001fc19", "3fff1c8a00"),
        (CqlType::Decimal, "ffffff9c01", "c1338100"),
        (CqlType::Decimal, "0000006401", "bfcf8100"),
        (CqlType::Decimal, "00000003075bcd15", "c1038ca2b8ceda00"),
        (CqlType::Double, "0000000000000000", "8000000000000000"),
        (CqlType::Double, "8000000000000000", "7fffffffffffffff"),
        (CqlType::Double, "bff8000000000000", "4007ffffffffffff"),
        (CqlType::Uuid, "123e4567e89b42d3a456426655440000", "4123e4567e89b2d3a456426655440000"),
        (CqlType::TimeUuid, "50554d6e29bb11e5b345feff819cdc9f", "11e529bb50554d6e33c57e7f011c5c1f"),
        (
            CqlType::List(Box::new(CqlType::Int)),
            "00000002000000040000000100000004000000 02",
            "4080000001408000000238",
        ),
        (CqlType::Int, "", "null source"),
    ];
    for (cql_type, value, golden) in others {
        assert_eq!(
            encoded(&cql_type, &hex::decode(&value.replace(' ', "")).expect("hex")),
            golden,
            "{cql_type} {value}"
        );
    }
}

/// Clusterings and bounds of (int, text DESC), given by Cassandra's ClusteringComparator.
#[test]
fn positions_encode_as_in_cassandra() {
    use ClusteringValue::{Bytes, Null};
    let clusterings = Clusterings::new(&[CqlType::Int, CqlType::Reversed(Box::new(CqlType::Text))]);
    let five = Bytes(&[0, 0, 0, 5]);
    let cases: [(BoundKind, &[ClusteringValue<'_>], &str); 8] = [
        (BoundKind::Clustering, &[five, Bytes(b"A")], "408000000540beff38"),
        (BoundKind::Clustering, &[Bytes(b""), Bytes(b"A")], "3f40beff38"),
        (BoundKind::Clustering, &[five, Bytes(b"")], "408000000540ff38"),
        (BoundKind::Clustering, &[five, Null], "40800000053e38"),
        (BoundKind::InclStart, &[five], "408000000520"),
        (BoundKind::ExclStart, &[five], "408000000560"),
        (BoundKind::InclStart, &[], "20"),
        (BoundKind::InclEnd, &[], "60"),
    ];
    for (kind, values, golden) in cases {
        let mut serialized = Vec::new();
        clusterings.write(values, &mut serialized);
        let mut out = Vec::new();
        let position = Position { kind, count: values.len(), serialized: &serialized };
        encode_position(&clusterings, position, &mut out);
        assert_eq!(hex::encode(&out), golden);
    }
    let mut key = Vec::new();
    encode_decorated_key(Token(-1), b"k\0", &mut key);
    assert_eq!(hex::encode(&key), "407fffffffffffffff406b00fe38");
}

struct Random(halcyon_io::Random);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0.below(n)
    }

    /// Few different bytes, so that values often share prefixes.
    fn bytes(&mut self, n: u64) -> Vec<u8> {
        let pool = [0, 0, 1, 0x7f, 0x80, 0xff, 0xff, self.below(256) as u8];
        (0..n).map(|_| pool[self.below(8) as usize]).collect()
    }

    fn value(&mut self, cql_type: &CqlType) -> Vec<u8> {
        let framed = |v: Vec<u8>| [(v.len() as i32).to_be_bytes().to_vec(), v].concat();
        match cql_type.base() {
            CqlType::Text => self.bytes(4).iter().map(|byte| byte & 0x7f).collect(),
            CqlType::Varint => {
                let n = 1 + self.below(12);
                self.bytes(n)
            }
            CqlType::Decimal => {
                let scale = self.below(9) as i32 - 4;
                let n = 1 + self.below(8);
                [scale.to_be_bytes().to_vec(), self.bytes(n)].concat()
            }
            CqlType::Boolean => self.bytes(1),
            CqlType::TinyInt => self.bytes(1),
            CqlType::SmallInt => self.bytes(2),
            CqlType::Date => self.bytes(4),
            CqlType::Time => self.bytes(8),
            CqlType::TimeUuid => {
                let mut v = self.bytes(16);
                v[6] = v[6] & 0xf | 0x10;
                v
            }
            CqlType::Frozen(inner) => match &**inner {
                CqlType::List(e) => {
                    let n = self.below(4);
                    let elements = (0..n).flat_map(|_| framed(self.value(e)));
                    let elements: Vec<u8> = elements.collect();
                    [(n as i32).to_be_bytes().to_vec(), elements].concat()
                }
                other => self.value(&other.clone()),
            },
            CqlType::Tuple(fields) => {
                let fields = fields.iter().flat_map(|t| match self.below(3) {
                    0 => vec![0xff; 4],
                    _ => framed(self.value(t)),
                });
                fields.collect()
            }
            CqlType::Udt(udt) => {
                let UserType { fields, .. } = &**udt;
                self.value(&CqlType::Tuple(fields.iter().map(|(_, t)| t.clone()).collect()))
            }
            other => match other.fixed_len() {
                Some(len) => self.bytes(u64::from(len)),
                None => {
                    let n = self.below(6);
                    self.bytes(n)
                }
            },
        }
    }
}

fn is_nan(cql_type: &CqlType, v: &[u8]) -> bool {
    match cql_type {
        CqlType::Float => v.try_into().is_ok_and(|v| f32::from_be_bytes(v).is_nan()),
        CqlType::Double => v.try_into().is_ok_and(|v| f64::from_be_bytes(v).is_nan()),
        _ => false,
    }
}

/// The order of encodings is the order of values. (NaNs apart: they compare equal and encode by their bits, as in
/// Cassandra.)
#[test]
fn encodings_order_as_values_do() {
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut random = Random(halcyon_io::Random::seeded(seed));
    for class in [
        "UTF8Type",
        "BytesType",
        "Int32Type",
        "LongType",
        "ShortType",
        "ByteType",
        "IntegerType",
        "DecimalType",
        "BooleanType",
        "FloatType",
        "DoubleType",
        "TimestampType",
        "SimpleDateType",
        "TimeType",
        "DateType",
        "UUIDType",
        "TimeUUIDType",
        "LexicalUUIDType",
        "ReversedType(IntegerType)",
        "ReversedType(UTF8Type)",
        "FrozenType(ListType(IntegerType))",
        "FrozenType(ListType(UTF8Type))",
        "TupleType(UTF8Type,DecimalType)",
        "UserType(ks,61,62:Int32Type,63:BytesType)",
        "VectorType(FloatType , 2)",
    ] {
        let cql_type = CqlType::parse(class).expect(class);
        for _ in 0..2000 {
            let (a, b) = (random.value(&cql_type), random.value(&cql_type));
            let floats = is_nan(&cql_type, &a) || is_nan(&cql_type, &b);
            let nan_inside = matches!(cql_type, CqlType::Vector(..))
                && [&a, &b].iter().any(|v| v.chunks(4).any(|f| is_nan(&CqlType::Float, f)));
            if floats || nan_inside {
                continue;
            }
            let order = cql_type.compare(&a, &b);
            let (mut left, mut right) = (Vec::new(), Vec::new());
            encode(&cql_type, &a, &mut left);
            encode(&cql_type, &b, &mut right);
            let shown = || format!("seed {seed}, {class} {} {}", hex::encode(&a), hex::encode(&b));
            assert_eq!(left.cmp(&right), order, "{}", shown());
            // The following component must not change the order of different values.
            for (after_left, after_right) in [(0x20, 0x60), (0x60, 0x20), (0x38, 0x38)] {
                left.push(after_left);
                right.push(after_right);
                assert!(order.is_eq() || left.cmp(&right) == order, "{}", shown());
                left.pop();
                right.pop();
            }
            assert_eq!(cql_type.compare(&b, &a), order.reverse());
        }
    }
}
