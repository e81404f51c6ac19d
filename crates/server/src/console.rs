//! The node as the page sees it: each statement is executed on a shard as the visitor's role, like one of a client.
//!
//! 1. The page's thread hands a job to one shard after the other, and waits for it. It never has more jobs than open pages and buttons.
//! 2. Roles, passwords and delays after wrong ones are those of the native protocol's logins.
//! 3. A role that was dropped, or may not log in any more, sees nothing from its next look on.

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use futures_util::future::BoxFuture;
use halcyon_access::Login as By;
use halcyon_io::JobLost;
use halcyon_model::Cursor;
use halcyon_model::access::Principal;
use halcyon_model::request::{Consistency, Value};
use halcyon_operate::{Login, Panel, Refusal, Visitor};
use halcyon_query::{
    self as query, Coordinator, Error, Outcome, PreparedStatement, QueryOptions, Result, Rows,
};

use crate::command::{Command, Stop};
use crate::internal::row;
use crate::shard::{ShardServer, Shared};

const STOP: &str = "INSERT INTO halcyon_views.commands (verb, keyspace_name, table_name, argument) VALUES (?, '', '', ?)";

pub(crate) struct Console {
    shared: Arc<Shared>,
    /// The shard that has the next job.
    turn: AtomicUsize,
}

impl Console {
    pub(crate) fn of(shared: Arc<Shared>) -> Console {
        Console { shared, turn: AtomicUsize::new(0) }
    }

    /// Runs a job on a shard.
    async fn on_a_shard<T: Send + 'static, F: Future<Output = Result<T>> + 'static>(
        &self,
        job: impl FnOnce(Rc<ShardServer>) -> F + Send + 'static,
    ) -> Result<T> {
        let shard = self.turn.fetch_add(1, Relaxed) % self.shared.shards.max(1);
        let done = self.shared.mesh.on_urgent(shard, job).await;
        done.map_err(|gone: JobLost| Error::Server(gone.to_string()))?
    }
}

impl halcyon_operate::Console for Console {
    fn login(&self) -> Login {
        match self.shared.access.settings().login {
            By::Never => Login::Never,
            By::Password | By::CertificateOrPassword(_) => Login::Password,
            By::Certificate(_) => Login::Certificate,
        }
    }

    fn log_in(
        &self,
        role: String,
        password: String,
        address: IpAddr,
    ) -> BoxFuture<'_, Result<Visitor, Refusal>> {
        let name = role.clone();
        let job = move |shard: Rc<ShardServer>| async move {
            query::log_in(&shard.coordinator, role, password, address).await
        };
        Box::pin(async move {
            match self.on_a_shard(job).await {
                Ok(_) => Ok(Visitor::Role { name, address }),
                Err(Error::BadCredentials(why)) => Err(Refusal::Credentials(why)),
                Err(error) => Err(Refusal::Busy(error.to_string())),
            }
        })
    }

    fn rows(
        &self,
        visitor: Visitor,
        panel: &'static Panel,
    ) -> BoxFuture<'_, Result<Vec<String>, String>> {
        let job = move |shard: Rc<ShardServer>| async move {
            let principal = principal(&shard.coordinator, visitor).await?;
            let statement = query::prepare(&shard.coordinator, panel.query, None)?;
            match execute(&shard.coordinator, statement, &[], &principal).await? {
                Outcome::Rows(rows) => texts(&rows),
                _ => Ok(Vec::new()),
            }
        };
        Box::pin(async move { self.on_a_shard(job).await.map_err(|error| error.to_string()) })
    }

    fn may_stop(&self, visitor: Visitor) -> BoxFuture<'_, bool> {
        let job = move |shard: Rc<ShardServer>| async move {
            let principal = principal(&shard.coordinator, visitor).await?;
            let statement = query::prepare(&shard.coordinator, STOP, None)?;
            Ok(query::may_execute(&shard.coordinator, &statement, &principal).await)
        };
        Box::pin(async move { self.on_a_shard(job).await.unwrap_or(false) })
    }

    fn stop(&self, visitor: Visitor, id: String) -> BoxFuture<'_, Result<(), String>> {
        let job = move |shard: Rc<ShardServer>| async move {
            let principal = principal(&shard.coordinator, visitor).await?;
            let (verb, argument) = Command::Stop(Stop { id: Some(id), ..Stop::default() }).encode();
            let statement = query::prepare(&shard.coordinator, STOP, None)?;
            let values = [Value::Bytes(verb.as_bytes()), Value::Bytes(argument.as_bytes())];
            execute(&shard.coordinator, statement, &values, &principal).await.map(drop)
        };
        Box::pin(async move { self.on_a_shard(job).await.map_err(|error| error.to_string()) })
    }
}

/// Who executes the statements of a visitor, as long as its role may be connected.
async fn principal(coordinator: &Coordinator, visitor: Visitor) -> Result<Principal> {
    let Visitor::Role { name, address } = visitor else { return Ok(Principal::Anonymous) };
    let principal = Principal::Role { name, address };
    match query::may_stay(coordinator, &principal).await {
        true => Ok(principal),
        false => {
            let name = principal.name();
            Err(Error::Unauthorized(format!("{name} is not permitted to log in any more")))
        }
    }
}

async fn execute(
    coordinator: &Coordinator,
    statement: PreparedStatement,
    values: &[Value<'_>],
    principal: &Principal,
) -> Result<Outcome> {
    let options = QueryOptions {
        consistency: Consistency::One,
        values,
        protocol_version: 5,
        ..QueryOptions::default()
    };
    query::execute(coordinator, &Arc::new(statement), &options, principal).await
}

/// The only column of each row.
fn texts(rows: &Rows) -> Result<Vec<String>> {
    let mut cursor = Cursor::new(&rows.content);
    let mut texts = Vec::new();
    for _ in 0..rows.count {
        let values = row::<1>(&mut cursor).map_err(|error| Error::Server(error.to_string()))?;
        let [text] = values.map(|value| String::from_utf8_lossy(value.unwrap_or_default()));
        texts.push(text.into_owned());
    }
    Ok(texts)
}
