//! Paging states, which clients give back: those of one query to another, changed, invented.
//!
//! ```text
//! query and page size │ paging state
//! ```

use std::pin::Pin;

use halcyon_model::request::Consistency;
use halcyon_protocol::QueryParameters;
use halcyon_protocol::client::Answer;

use super::Connection;

/// Tables of the prelude, with every shape of key.
pub const QUERIES: [&str; 12] = [
    "SELECT * FROM k.t",
    "SELECT * FROM k.t WHERE p IN (1, 2, 3)",
    "SELECT * FROM k.t WHERE p = 1 ORDER BY c DESC",
    "SELECT p, c, count(*) FROM k.t GROUP BY p, c",
    "SELECT DISTINCT p, s FROM k.t",
    "SELECT * FROM k.t2",
    "SELECT * FROM k.st PER PARTITION LIMIT 2",
    "SELECT * FROM k.st LIMIT 7",
    "SELECT * FROM k.pt",
    "SELECT * FROM k.t WHERE v > 2 ALLOW FILTERING",
    "SELECT * FROM system_schema.columns",
    "SELECT * FROM system_views.settings",
];
const PAGES: usize = 6;

pub fn run<'a>(
    connection: &'a mut Connection,
    bytes: &'a [u8],
) -> Pin<Box<dyn Future<Output = ()> + 'a>> {
    Box::pin(async move {
        let Some((choice, state)) = bytes.split_first() else { return };
        let mut state = state.to_vec();
        for _ in 0..PAGES {
            match page(connection, *choice, &state).await {
                Some(next) => state = next,
                None => return,
            }
        }
    })
}

/// The next state.
pub async fn page(connection: &mut Connection, choice: u8, state: &[u8]) -> Option<Vec<u8>> {
    let query = QUERIES[usize::from(choice) % QUERIES.len()];
    let page_size = 1 + i32::from(choice) / QUERIES.len() as i32;
    let parameters = QueryParameters {
        page_size: Some(page_size),
        paging_state: Some(state).filter(|state| !state.is_empty()),
        ..QueryParameters::new(Consistency::One)
    };
    connection.session.client.query(0, query, &parameters);
    match connection.answer(query).await {
        Answer::Rows(page) => page.paging_state,
        // Cassandra's word for a state that it cannot interpret.
        Answer::Error { code: 0x000a, message, .. } => {
            assert_eq!(message, "Invalid value for the paging state", "{query}");
            None
        }
        answer => panic!("{answer:?} to {query} with the state {}", state.escape_ascii()),
    }
}
