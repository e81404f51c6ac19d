//! The writer of a connection.

use std::rc::Rc;

use halcyon_io::clock::now;
use halcyon_io::{contained, panic_point};

use super::Connection;
use crate::shard::ShardServer;

/// Sends answers until the connection ends. Without this task nothing reaches the client: then it is closed.
pub(super) async fn write_answers(shard: Rc<ShardServer>, connection: Rc<Connection>) {
    if contained(send(shard, connection.clone())).await.is_none() {
        connection.broken.set(true);
        connection.close();
    }
}

/// The writer: each write sends all collected answers.
async fn send(shard: Rc<ShardServer>, connection: Rc<Connection>) {
    loop {
        if connection.encoder.borrow().is_empty() {
            if connection.ended.get() {
                return;
            }
            connection.to_send.notified().await;
            continue;
        }
        panic_point("the writer of a connection");
        let bytes = connection.encoder.borrow_mut().take();
        connection.count_answered_reads(shard.coordinator.shard());
        connection.sending.set(bytes.len());
        connection.sending_held.set(bytes.capacity());
        let written = write(&connection, bytes).await;
        connection.sending.set(0);
        connection.sending_held.set(0);
        // After an error the client is disconnected: answers cannot reach it.
        connection.broken.set(written.is_none());
        connection.encoder.borrow_mut().reuse(written.unwrap_or_default());
        connection.count_unsent();
        connection.eased.notify_one();
        if connection.broken.get() {
            return connection.close();
        }
    }
}

/// Writes all, part by part; each part is a step forward. `None`: the client has gone.
async fn write(connection: &Connection, mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    let mut sent = 0;
    while sent < bytes.len() {
        let (outcome, back) = connection.transport.write_some(bytes, sent).await;
        bytes = back;
        sent += outcome.ok().filter(|part| *part > 0)?;
        connection.last_active.set(now());
    }
    Some(bytes)
}
