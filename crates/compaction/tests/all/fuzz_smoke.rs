//! What the fuzz targets for text call, over their seeds and over real text with random changes.

#[path = "../../../../fuzz/src/mutation.rs"]
#[allow(unreachable_pub, reason = "shared with the crate of the fuzz targets")]
mod mutation;
#[path = "../../../../fuzz/src/text.rs"]
#[allow(unreachable_pub, reason = "shared with the crate of the fuzz targets")]
mod text;

use mutation::Mutator;

use crate::sim_table::testdata;

fn try_mutations(name: &str, samples: &[&str], rounds: u64, target: fn(&[u8])) {
    let samples: Vec<Vec<u8>> = samples.iter().map(|text| text.as_bytes().to_vec()).collect();
    samples.iter().chain(&mutation::seeds(name)).for_each(|bytes| target(bytes));
    for seed in 0..rounds {
        let bytes = Mutator::new(seed).change_one_of(&samples);
        eprintln!("seed {seed}: {}", bytes.escape_ascii());
        target(&bytes);
    }
}

#[test]
fn transaction_logs() {
    let add = "ADD:[/d/ks/t-00000000000000000000000000000001/oa-2-big-,0,8][3585343934]\n";
    let remove =
        "REMOVE:[/d/ks/t-00000000000000000000000000000001/oa-1-big-,1700000000123,8][3237550150]\n";
    let commit = "COMMIT:[,0,0][2613697770]\n";
    let abort = "ABORT:[,0,0][737437348]\n";
    let whole = [add, remove, commit].concat();
    let aborted = [add, abort].concat();
    let twice = whole.repeat(2);
    try_mutations(
        "txn_log",
        &[&whole, &aborted, &twice, "oa_txn_write_1.log"],
        100_000,
        text::txn_log,
    );
}

#[test]
fn type_names() {
    let marshal = "org.apache.cassandra.db.marshal.";
    let map =
        format!("{marshal}ReversedType({marshal}MapType({marshal}Int32Type,{marshal}UTF8Type))");
    let vector = format!("{marshal}VectorType({marshal}FloatType , 3)");
    let user = format!("{marshal}FrozenType({marshal}UserType(ks,61,62:{marshal}LongType))");
    let deep = format!("{marshal}ListType(").repeat(5000);
    try_mutations("cql_type", &[&map, &vector, &user], 100_000, text::cql_type);
    text::cql_type(deep.as_bytes());
}

#[test]
fn schemas() {
    let root = testdata().join("oa");
    let tables =
        ["user_types", "view_base", "QuotedTable", "dropped_columns", "vectors", "counters"];
    let read = |table| std::fs::read_to_string(root.join(table).join("schema.cql"));
    let texts: Vec<String> = tables.into_iter().map(|t| read(t).expect("schema")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    try_mutations("schema", &texts, 20_000, text::schema);
    let deep = format!("CREATE TABLE t (a {} PRIMARY KEY)", "list<".repeat(20_000));
    text::schema(deep.as_bytes());
}
