//! Serves a connection: its reader and its writer.

use std::rc::Rc;

use halcyon_io::{contained, spawn};

use super::Connection;
use super::receive::receive;
use super::send::write_answers;
use crate::shard::ShardServer;

/// Serves a connection to its end.
pub(crate) async fn serve(shard: Rc<ShardServer>, connection: Rc<Connection>) {
    let writing = spawn(write_answers(shard.clone(), connection.clone()));
    // A panic is the connection's end, and no other's.
    contained(receive(&shard, &connection)).await;
    while connection.in_flight.get() > 0 {
        connection.eased.notified().await;
    }
    connection.ended.set(true);
    connection.to_send.notify_one();
    writing.await;
    if !connection.broken.get() && !connection.closed.get() {
        connection.transport.end().await;
    }
    connection.close();
}
