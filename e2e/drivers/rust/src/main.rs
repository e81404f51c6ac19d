//! What an application does with the Rust driver: discovers the schema, prepares, writes, pages, batches, sets conditions.
//! Arguments: address, compression (none, lz4, snappy). Prints one line a step.

use futures_util::TryStreamExt;
use scylla::client::Compression;
use scylla::client::session_builder::SessionBuilder;
use scylla::statement::batch::Batch;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, got: T, wanted: T) -> Result<()> {
    if got != wanted {
        return Err(format!("{what}: {got:?}, expected {wanted:?}").into());
    }
    println!("ok {what}");
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().ok_or("address")?;
    let compression = match arguments.next().as_deref() {
        Some("lz4") => Some(Compression::Lz4),
        Some("snappy") => Some(Compression::Snappy),
        _ => None,
    };
    let session = SessionBuilder::new().known_node(address).compression(compression).build().await?;
    session.query_unpaged("DROP KEYSPACE IF EXISTS rust_driver", &[]).await?;
    session
        .query_unpaged(
            "CREATE KEYSPACE rust_driver WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            &[],
        )
        .await?;
    session
        .query_unpaged("CREATE TABLE rust_driver.t (k int, c int, v text, l list<int>, PRIMARY KEY (k, c))", &[])
        .await?;
    session.await_schema_agreement().await?;
    session.refresh_metadata().await?;
    let state = session.get_cluster_state();
    let table = state.get_keyspace("rust_driver").and_then(|k| k.tables.get("t")).ok_or("no table")?;
    expect("columns", table.columns.len(), 4)?;
    let insert = session.prepare("INSERT INTO rust_driver.t (k, c, v, l) VALUES (?, ?, ?, ?)").await?;
    for c in 0..500 {
        for k in 0..2 {
            session.execute_unpaged(&insert, (k, c, format!("v{c}"), vec![c, c])).await?;
        }
    }
    let mut select = session.prepare("SELECT c, v, l FROM rust_driver.t WHERE k = ?").await?;
    select.set_page_size(70);
    let mut rows = session.execute_iter(select, (1,)).await?.rows_stream::<(i32, String, Vec<i32>)>()?;
    let mut next = 0;
    while let Some(row) = rows.try_next().await? {
        if row != (next, format!("v{next}"), vec![next, next]) {
            return Err(format!("row {row:?}, expected {next}").into());
        }
        next += 1;
    }
    expect("paged rows", next, 500)?;
    let mut batch = Batch::default();
    batch.append_statement(insert.clone());
    batch.append_statement(insert);
    session.batch(&batch, ((7, 1, "batch", vec![1]), (7, 2, "batch", vec![2]))).await?;
    let count = session.query_unpaged("SELECT count(*) FROM rust_driver.t WHERE k = 7", &[]).await?;
    expect("batch", count.into_rows_result()?.single_row::<(i64,)>()?, (2,))?;
    match session.query_unpaged("SELECT nothing FROM rust_driver.t", &[]).await {
        Ok(_) => Err("no error".into()),
        Err(error) => {
            let text = error.to_string();
            let wanted = "Undefined column name nothing in table rust_driver.t";
            expect("error", text.contains(wanted), true).map_err(|_| text.into())
        }
    }
}
