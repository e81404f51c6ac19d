use super::*;

const M: &str = "org.apache.cassandra.db.marshal.";

fn header(short: &str) -> String {
    short.replace('~', M)
}

/// Proves that strings from Cassandra's headers round-trip byte for byte.
#[test]
fn class_spelling_round_trips() {
    for short in [
        "~Int32Type",
        "~ListType(~Int32Type)",
        "~FrozenType(~MapType(~UTF8Type,~ListType(~Int32Type)))",
        "~MapType(~UTF8Type,~FrozenType(~ListType(~Int32Type)))",
        "~TupleType(~Int32Type,~ListType(~UTF8Type))",
        "~UserType(ks,61646472657373,737472656574:~UTF8Type,7a6970:~FrozenType(~SetType(~Int32Type)))",
        "~FrozenType(~UserType(ks,75,66:~Int32Type))",
        "~VectorType(~FloatType , 3)",
        "~ReversedType(~TimeUUIDType)",
        "~CompositeType(~Int32Type,~UTF8Type)",
        "~PartitionerDefinedOrder(org.apache.cassandra.dht.Murmur3Partitioner)",
        "~PartitionerDefinedOrder(org.apache.cassandra.dht.Murmur3Partitioner:~CompositeType(~Int32Type,~UTF8Type))",
        "~DynamicCompositeType(a=>~BytesType,b=>~Int32Type)",
        "com.example.OurType",
        "~ReversedType(com.example.OurType(x,(y)))",
    ] {
        let text = header(short);
        assert_eq!(CqlType::parse(&text).map(|t| t.to_string()), Ok(text));
    }
    let blanks =
        CqlType::parse(" MapType ( UTF8Type ,\n Int32Type ) ").expect("blanks are skipped");
    assert_eq!(blanks.cql_name(), "map<text, int>");
    assert_eq!(CqlType::parse(""), Ok(CqlType::Blob));
}

#[test]
fn malformed_class_spellings_are_refused() {
    let deep = format!("{}~Int32Type{}", "~ListType(".repeat(100_000), ")".repeat(100_000));
    for short in [
        "(",
        ")",
        "~ListType",
        "~ListType(",
        "~ListType()",
        "~ListType(~Int32Type",
        "~Int32Type x",
        "~ListType(~Int32Type,~Int32Type)",
        "~MapType(~Int32Type)",
        "~VectorType(~FloatType , 0)",
        "~VectorType(~FloatType , -1)",
        "~VectorType(~FloatType)",
        "~UserType(ks,6)",
        "~UserType(ks,zz)",
        "~UserType(ks,61,62)",
        "é",
        "Foo(é",
        &deep,
    ] {
        let parsed = CqlType::parse(&header(short));
        assert!(matches!(parsed, Err(TypeError::Syntax { .. })), "{parsed:?}");
    }
}

fn address(name: &str) -> Option<UserType> {
    let fields = vec![(b"zips".to_vec(), CqlType::parse("FrozenType(ListType(Int32Type))").ok()?)];
    (name == "address" || name == "Odd \"Name").then(|| UserType {
        keyspace: "ks".into(),
        name: name.into(),
        fields,
    })
}

/// Proves the class spelling of CQL types, and the CQL spelling that Cassandra derives from it.
#[test]
fn cql_spelling_becomes_the_class_spelling() {
    let udt = "~UserType(ks,61646472657373,7a697073:~FrozenType(~ListType(~Int32Type)))";
    let frozen_udt = "~UserType(ks,61646472657373,7a697073:~ListType(~Int32Type))";
    let cases = [
        ("VARCHAR", "~UTF8Type".to_owned(), "text"),
        (
            "map<text, frozen<list<int>>>",
            "~MapType(~UTF8Type,~FrozenType(~ListType(~Int32Type)))".into(),
            "map<text, frozen<list<int>>>",
        ),
        (
            "frozen<map<text,list<frozen<set<int>>>>>",
            "~FrozenType(~MapType(~UTF8Type,~ListType(~SetType(~Int32Type))))".into(),
            "frozen<map<text, frozen<list<frozen<set<int>>>>>>",
        ),
        (
            "tuple<int, list<text>>",
            "~TupleType(~Int32Type,~ListType(~UTF8Type))".into(),
            "frozen<tuple<int, frozen<list<text>>>>",
        ),
        ("vector<float, 3>", "~VectorType(~FloatType , 3)".into(), "vector<float, 3>"),
        // A vector implies nothing of its elements, wherever it is.
        (
            "list<frozen<vector<set<int>, 1>>>",
            "~ListType(~VectorType(~SetType(~Int32Type) , 1))".into(),
            "list<vector<set<int>, 1>>",
        ),
        (
            "frozen<list<vector<set<int>, 1>>>",
            "~FrozenType(~ListType(~VectorType(~SetType(~Int32Type) , 1)))".into(),
            "frozen<list<vector<set<int>, 1>>>",
        ),
        ("address", udt.into(), "address"),
        ("frozen<ks.Address>", format!("~FrozenType({frozen_udt})"), "frozen<address>"),
        (
            "list<frozen<address>>",
            format!("~ListType(~FrozenType({frozen_udt}))"),
            "list<frozen<address>>",
        ),
        (
            "'org.apache.cassandra.db.marshal.LexicalUUIDType'",
            "~LexicalUUIDType".into(),
            "'org.apache.cassandra.db.marshal.LexicalUUIDType'",
        ),
    ];
    for (cql, class, back) in cases {
        let parsed = CqlType::parse_cql(cql, &address).expect(cql);
        assert_eq!(parsed.to_string(), header(&class));
        assert_eq!(parsed.cql_name(), back);
        assert_eq!(CqlType::parse(&header(&class)), Ok(parsed), "both parsers agree");
    }
    let odd = CqlType::parse_cql("frozen<\"Odd \"\"Name\">", &address).expect("quoted name");
    assert_eq!(odd.cql_name(), "frozen<\"Odd \"\"Name\">");
}

#[test]
fn cql_spelling_follows_the_rules_of_frozen() {
    let refused = |text: &str| match CqlType::parse_cql(text, &address) {
        Err(TypeError::NotAllowed(why)) => why,
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(
        refused("list<list<int>>"),
        "Non-frozen collections are not allowed inside collections: list<list<int>>"
    );
    assert_eq!(
        refused("list<address>"),
        "Non-frozen UDTs are not allowed inside collections: list<address>"
    );
    assert_eq!(
        refused("frozen<int>"),
        "frozen<> is only allowed on collections, tuples, and user-defined types (got int)"
    );
    assert!(refused("set<duration>").starts_with("Durations are not allowed inside sets"));
    assert_eq!(CqlType::parse_cql("nothing", &address), Err(TypeError::Unknown("nothing".into())));
    for text in ["", "list<", "list<int", "list<int>>", "vector<int, 0>", "tuple<>", "\"x", "<"] {
        assert!(CqlType::parse_cql(text, &address).is_err(), "{text}");
    }
    let deep = format!("{}int{}", "frozen<list<".repeat(50_000), ">>".repeat(50_000));
    assert!(CqlType::parse_cql(&deep, &address).is_err());
}

fn decimal(scale: i32, unscaled: &[u8]) -> Vec<u8> {
    [&scale.to_be_bytes()[..], unscaled].concat()
}

/// Each list is ascending.
#[test]
fn values_compare_as_in_cassandra() {
    let float = |v: f32| v.to_be_bytes().to_vec();
    let ascending: Vec<(&str, Vec<Vec<u8>>)> = vec![
        (
            "Int32Type",
            vec![vec![], vec![0x80, 0, 0, 0], vec![0xff; 4], vec![0; 4], vec![0, 0, 0, 1]],
        ),
        ("ShortType", vec![vec![], vec![0x80, 0], vec![0xff, 0xff], vec![0, 0], vec![0, 0x80]]),
        ("BooleanType", vec![vec![], vec![0], vec![2]]),
        (
            "FloatType",
            vec![
                vec![],
                float(-f32::INFINITY),
                float(-1.0),
                float(-0.0),
                float(0.0),
                float(f32::INFINITY),
                float(f32::NAN),
                vec![1, 2],
            ],
        ),
        (
            "IntegerType",
            vec![
                vec![],
                vec![0xfe, 0xff],
                vec![0x80],
                vec![0xff],
                vec![0],
                vec![0x7f],
                vec![0, 0x80],
            ],
        ),
        (
            "DecimalType",
            vec![
                vec![],
                decimal(i32::MIN, &[0xff]),
                decimal(-1, &[0xff]),
                decimal(0, &[0xff]),
                decimal(i32::MAX, &[0xff]),
                decimal(5, &[0]),
                decimal(i32::MAX, &[1]),
                decimal(1, &[9]),
                decimal(3, &[0x04, 0x4c]),
                decimal(1, &[12]),
                decimal(-3, &[1]),
                decimal(i32::MIN, &[1]),
                decimal(0, &[]),
            ],
        ),
        ("ReversedType(Int32Type)", vec![vec![0, 0, 0, 1], vec![0xff; 4], vec![]]),
        (
            "ListType(Int32Type)",
            vec![
                vec![],
                vec![0, 0, 0, 0],
                vec![0, 0, 0, 9],
                vec![0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff],
                vec![0, 0, 0, 1, 0, 0, 0, 4, 0xff, 0xff, 0xff, 0xff],
                vec![0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 0],
                vec![0],
            ],
        ),
        (
            "TupleType(Int32Type,UTF8Type)",
            vec![
                vec![],
                vec![0xff; 4],
                vec![0, 0, 0, 0],
                vec![0, 0, 0, 4, 0, 0, 0, 1],
                vec![0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0],
            ],
        ),
    ];
    for (name, values) in ascending {
        let cql_type = CqlType::parse(name).expect(name);
        for (i, a) in values.iter().enumerate() {
            for (j, b) in values.iter().enumerate() {
                assert_eq!(cql_type.compare(a, b), i.cmp(&j), "{name} {a:?} {b:?}");
            }
        }
    }
    let one = |scale, unscaled: &[u8]| {
        CqlType::Decimal.compare(&decimal(scale, unscaled), &decimal(2, &[100]))
    };
    assert_eq!(one(1, &[10]), std::cmp::Ordering::Equal, "1.0 and 1.00");
}
