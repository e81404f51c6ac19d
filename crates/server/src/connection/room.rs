//! Room for requests: memory and the limits of clients, counted before a request is decoded.

use std::time::Duration;

use halcyon_io::clock::{self, now};
use halcyon_protocol::{Decoder, Opcode, Outline, Packed};

use super::Connection;
use crate::admission::Permit;
use crate::metrics::Paused;
use crate::shard::ShardServer;

/// How often a client that may send no more is looked at again.
const ROOM_CHECK: Duration = Duration::from_millis(1);
/// How long a request, or the rest of one, waits for memory.
const MEMORY_PATIENCE: Duration = Duration::from_secs(5);

/// What the rest of an incomplete request finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    Room,
    /// Memory for it is missing for long.
    NoMemory,
    /// The client waits for it no more.
    Left,
}

/// Counts an incomplete request with all that it will have and take: complete requests that wait for memory would keep it from each other.
/// Where it finds no room, the client must wait until others are done: nothing is read from it meanwhile. A client that hangs up gives its
/// turn to the next one.
pub(super) async fn room_for_the_rest(
    connection: &Connection,
    decoder: &Decoder,
    held: u64,
) -> Rest {
    let admitted = &connection.admitted;
    let (expected, most) = (decoder.expected() as u64, admitted.admission().memory().limit());
    let taken = decoder.incomplete().map(|request| memory_of(&request));
    // One that takes more is refused when it is complete.
    let taken = taken.filter(|taken| *taken <= most).unwrap_or_default();
    let kept = expected.max(held) + taken;
    let fits = || admitted.hold_arriving(expected);
    if fits() && admitted.keep_arriving(kept) {
        return Rest::Room;
    }
    connection.waiting.set(true);
    let waiting = admitted.wait();
    let mut until = now() + MEMORY_PATIENCE;
    let found = loop {
        clock::sleep(10 * ROOM_CHECK).await;
        if connection.broken.get() || connection.transport.has_hung_up() {
            break Rest::Left;
        }
        if !fits() {
            until = now() + MEMORY_PATIENCE;
        } else if admitted.keep_arriving(kept) {
            break Rest::Room;
        } else if now() > until {
            break Rest::NoMemory;
        }
    };
    drop(waiting);
    connection.waiting.set(false);
    connection.last_active.set(now());
    found
}

/// Waits for room and warns, or refuses, as the client asked in STARTUP.
pub(super) async fn permit(
    shard: &ShardServer,
    connection: &Connection,
    packed: &Packed,
    is_ready: bool,
    warnings: &mut Vec<String>,
) -> Result<Permit, String> {
    let bytes = packed.body_len() as u64;
    let taken = memory_of(&packed.outline());
    let (admitted, admission) = (&connection.admitted, connection.admitted.admission());
    if taken > admission.memory().limit() {
        return Err(admission.memory().refusal());
    }
    // What comes before STARTUP is not limited.
    let rate = admission.rate().filter(|_| is_ready);
    if connection.throw_on_overload.get() || shard.shared.transport.throw_on_overload {
        let mut permit = admitted.permit_whole(bytes)?;
        if !permit.keep(taken) {
            return Err(admission.memory().refusal());
        }
        return match rate {
            Some(rate) if !rate.try_reserve() => Err(rate.refusal()),
            _ => Ok(permit),
        };
    }
    if let Some(rate) = rate {
        let wait = rate.reserve();
        if !wait.is_zero() {
            warnings.push(rate.warning());
            let _paused = Paused::count(shard.metrics());
            clock::sleep(wait).await;
        }
    }
    let (mut patience, mut paused) = (None, None);
    loop {
        if let Some(mut permit) = admitted.permit(bytes) {
            if permit.keep(taken) {
                return Ok(permit);
            }
            // Cassandra's limits let clients wait for each other. Memory may be kept by what will not end soon.
            if now() > *patience.get_or_insert_with(|| now() + MEMORY_PATIENCE) {
                return Err(admission.memory().refusal());
            }
        }
        if warnings.is_empty() {
            warnings.push(admission.bytes_warning());
        }
        paused.get_or_insert_with(|| Paused::count(shard.metrics()));
        // Room is made on any shard: looking again costs less than to have every answer wake up others.
        clock::sleep(ROOM_CHECK).await;
    }
}

/// Memory that a request takes beside what its texts become: its bytes as sent and open, the copy in a mutation and in the commit log's
/// record, its decoded values, and its task.
fn memory_of(request: &Outline) -> u64 {
    /// The future of a request, and a small answer.
    const TASK: u64 = 4 << 10;
    /// Decoded values are some times as large as the smallest ones on the wire; one statement has at most 65,535 of them.
    const VALUES: u64 = 6;
    const VALUES_MAX: u64 = 2 << 20;
    let len = request.body_len as u64;
    let values = match request.opcode {
        Opcode::Query | Opcode::Execute => (VALUES * len).min(VALUES_MAX),
        Opcode::Batch => VALUES * len + (2 * VALUES * len).min(2 * VALUES_MAX),
        _ => 0,
    };
    TASK + request.bytes as u64 + 2 * len + values
}
