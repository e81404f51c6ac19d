//! A node of two shards on the simulated disk.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use halcyon_access::Access;
use halcyon_engine::{Engine, Options};
use halcyon_io::{Disk, DiskOptions, SimDisk, spawn};
use halcyon_model::access::Principal;
use halcyon_query::{
    ClientRequests, Coordinator, Error, Outcome, QueryOptions, RequestLimits, VirtualTables,
};
use halcyon_scan::RequestMemory;
use halcyon_schema::LocalNode;
use halcyon_schema::catalog::Table;
use halcyon_stream::{Mutation, PartitionKey};

struct NoVirtualTables;

impl VirtualTables for NoVirtualTables {
    fn partitions<'a>(
        &'a self,
        _: &'a Arc<Table>,
        _: Option<&'a PartitionKey>,
    ) -> Pin<Box<dyn Future<Output = Result<Vec<Mutation>, Error>> + 'a>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}

/// A step of the calendar, in µs.
pub(crate) const HOUR: i64 = 3_600_000_000;

pub(crate) async fn start() -> Coordinator {
    start_on(Disk::simulated(1).0, |_| ()).await
}

pub(crate) async fn start_on(disk: Disk, set: impl FnOnce(&mut Options)) -> Coordinator {
    start_with(disk, set, RequestLimits::default()).await
}

/// On a disk that a node was killed on, or that was restarted.
pub(crate) async fn start_again(
    simulated: &SimDisk,
    set: impl FnOnce(&mut Options),
) -> Coordinator {
    start_on(Disk::on_simulated(simulated, DiskOptions::default()), set).await
}

pub(crate) async fn start_with(
    disk: Disk,
    set: impl FnOnce(&mut Options),
    limits: RequestLimits,
) -> Coordinator {
    let mut options = Options::in_directory(Path::new("/halcyon"), 2);
    // The simulated disk fills each segment with zeros, at each of a thousand starts.
    options.commitlog.segment_size = 4 << 20;
    options.masks.are_enabled = true;
    set(&mut options);
    let [first, _] = open(disk, options, limits).await;
    first
}

/// Both shards, with roles and permissions.
pub(crate) async fn start_pair(access: &Arc<Access>) -> [Coordinator; 2] {
    let mut options = Options::in_directory(Path::new("/halcyon"), 2);
    options.commitlog.segment_size = 4 << 20;
    let both = open(Disk::simulated(1).0, options, RequestLimits::default()).await;
    both.map(|shard| shard.with_access(access.clone()))
}

async fn open(disk: Disk, options: Options, limits: RequestLimits) -> [Coordinator; 2] {
    let (engine, _) = Engine::open(disk, options).await.expect("opens");
    let (memory, requests) = (RequestMemory::bounded(1 << 30), Arc::new(ClientRequests::new(2)));
    let shard = async |index| {
        let (shard, inbox) = engine.open_shard(index).await.expect("opens");
        spawn(inbox.serve(shard.clone())).detach();
        let (engine, tables) = (engine.clone(), Rc::new(NoVirtualTables));
        Coordinator::new(engine, shard, tables, limits.clone(), (&memory, requests.clone()))
    };
    [shard(0).await, shard(1).await]
}

/// Counters are counted under the id of a node that has joined its ring.
pub(crate) async fn join(coordinator: &Coordinator) {
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let node = LocalNode {
        cluster_name: String::new(),
        data_center: String::new(),
        rack: String::new(),
        host_id: [7; 16],
        tokens: vec![0],
        listen_address: address,
        listen_port: 7000,
        broadcast_address: address,
        rpc_address: address,
        rpc_port: 9042,
        gossip_generation: 1,
        schema_version: [0; 16],
    };
    coordinator.engine().tables().join(node).await.expect("joins");
}

pub(crate) async fn execute(node: &Coordinator, text: &str) -> Result<Outcome, Error> {
    let options = QueryOptions { protocol_version: 4, ..QueryOptions::default() };
    let statement = Arc::new(halcyon_query::prepare(node, text, None)?);
    halcyon_query::execute(node, &statement, &options, &Principal::Anonymous).await
}

/// The content of a result's rows: lengths and values.
pub(crate) async fn content(node: &Coordinator, text: &str) -> Vec<u8> {
    match execute(node, text).await {
        Ok(Outcome::Rows(rows)) => rows.content,
        other => panic!("{text}: {other:?}"),
    }
}

/// In hex, as protocols carry it.
pub(crate) fn code(error: &Error) -> &'static str {
    match error {
        Error::Invalid(_) => "2200",
        Error::Syntax(_) => "2000",
        Error::FunctionFailure { .. } => "1400",
        Error::Protocol(_) => "000a",
        Error::Unavailable { .. } => "1000",
        Error::Unauthorized(_) => "2100",
        Error::ReadFailure { .. } => "1300",
        Error::WriteFailure { .. } => "1500",
        Error::Configuration(_) => "2300",
        Error::Truncate(_) => "1003",
        _ => "0000",
    }
}
