//! A whole node under simulation that takes any statements, paging states and stored rows.
//!
//! ```text
//! fuzz target ── input ──► this thread: start · prelude · input · input … ─► kill -9 ─► start ─► drain ─► start
//!             ◄── done ───┘                                         └──── the same schema, nothing set apart ───┘
//! ```
//!
//! 1. A node lives for [`INPUTS`] inputs, so that an input costs what its statements cost. Then it is killed, started, drained and started
//!    again, and the next one has an empty disk.
//! 2. Its inputs are written to a file before they are executed: `cargo run --bin repeat` sends them to one node again.
//! 3. Whatever the inputs, no connection is lost, no answer is an internal error, and each start serves the schema that was there.

pub mod paging;
pub mod prepared;
pub mod statements;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use halcyon_client::{Cause, Credentials};
use halcyon_io::{Disk, Random, SimDisk, SimRuntime};
use halcyon_model::request::Consistency;
use halcyon_protocol::client::{Answer, Page};
use halcyon_protocol::{Compression, QueryParameters, Version};
use halcyon_server::Log;
use halcyon_sim::{Node, settings};

/// The inputs of one node.
const INPUTS: usize = 200;

/// What inputs are to a node.
pub type Run =
    for<'a> fn(&'a mut Connection, &'a [u8]) -> std::pin::Pin<Box<dyn Future<Output = ()> + 'a>>;

/// The thread on which nodes live.
pub struct Host {
    inputs: Option<SyncSender<Vec<u8>>>,
    done: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl Host {
    /// `history` is where the inputs of the living node are written.
    pub fn start(run: Run, history: Option<PathBuf>) -> Host {
        let (inputs, received) = sync_channel(0);
        let (tell, done) = sync_channel(0);
        let thread = std::thread::spawn(move || {
            let mut seed = 0;
            while live(seed, run, &received, &tell, history.as_deref()) {
                seed += 1;
            }
        });
        Host { inputs: Some(inputs), done, thread: Some(thread) }
    }

    pub fn put(&self, bytes: &[u8]) {
        let sent = self.inputs.as_ref().is_some_and(|inputs| inputs.send(bytes.to_vec()).is_ok());
        assert!(sent && self.done.recv().is_ok(), "the node has failed: see above");
    }

    /// The last node is restarted too.
    pub fn finish(mut self) {
        drop(self.inputs.take());
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(ended.is_some_and(|ended| ended.is_ok()), "the node has failed: see above");
    }
}

/// One node and its restarts; whether there are more inputs.
fn live(
    seed: u64,
    run: Run,
    inputs: &Receiver<Vec<u8>>,
    done: &SyncSender<()>,
    history: Option<&Path>,
) -> bool {
    let runtime = SimRuntime::seeded(seed);
    let disk = runtime.block_on(async { Disk::simulated(seed).1 });
    let mut random = Random::seeded(seed);
    let mut kept = History::begin(history);
    let (mut life, more) = runtime.block_on(async {
        let node = start(&disk, &mut random).await;
        let mut connection = Connection::open(&node).await;
        for statement in prelude() {
            connection.ask(&statement).await;
        }
        let mut left = INPUTS;
        while let Ok(bytes) = inputs.recv() {
            kept.keep(&bytes);
            let tampers = connection.tampers;
            connection = Connection::open(&node).await;
            connection.tampers = tampers;
            run(&mut connection, &bytes).await;
            left -= 1;
            if left == 0 {
                return (Life::of(&mut connection).await, true);
            }
            // The fuzzer may have ended.
            let _ = done.send(());
        }
        (Life::of(&mut connection).await, false)
    });
    for drains in [true, false] {
        disk.kill();
        life = runtime.block_on(async {
            let node = start(&disk, &mut random).await;
            let mut connection = Connection::open(&node).await;
            connection.tampers = life.tampers;
            let again = Life::of(&mut connection).await;
            life.check(&again);
            drop(connection);
            if drains {
                node.drain().await.expect("the drain");
            }
            again
        });
    }
    if more {
        let _ = done.send(());
    }
    more
}

async fn start(disk: &SimDisk, random: &mut Random) -> Node {
    let settings = settings(random, false, false).expect("settings");
    let log = Log::new(|_| {});
    Node::start(disk, settings, log).await.unwrap_or_else(|why| panic!("no start: {why}"))
}

/// What a start must find again.
struct Life {
    tampers: bool,
    schema: Page,
}

impl Life {
    async fn of(connection: &mut Connection) -> Life {
        let tampers = connection.tampers;
        let schema = connection.rows("DESCRIBE FULL SCHEMA").await;
        let apart = connection.rows("SELECT * FROM halcyon_views.set_apart").await;
        assert!(tampers || apart.rows.is_empty(), "set apart: {}", text(&apart));
        Life { tampers, schema }
    }

    fn check(&self, again: &Life) {
        if !self.tampers && self.schema != again.schema {
            let (before, after) = (text(&self.schema), text(&again.schema));
            panic!("the schema was {before}\nand is {after}");
        }
    }
}

fn text(page: &Page) -> String {
    let cells = page.rows.iter().map(|row| {
        let cells = row.iter().flatten().map(|cell| String::from_utf8_lossy(cell));
        cells.collect::<Vec<_>>().join(" ")
    });
    cells.collect::<Vec<_>>().join("\n")
}

/// The statements that make the tables of the recorded sessions.
fn prelude() -> Vec<String> {
    recorded().into_iter().filter(|(mark, _)| *mark == '!').map(|(_, text)| text).collect()
}

/// The statements of the recorded sessions, each with its mark: `!` for those that make tables.
pub fn recorded() -> Vec<(char, String)> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let data = Path::new("crates/query/tests/data");
    let root = here.ancestors().find(|dir| dir.join(data).exists()).unwrap_or(here);
    let read = |name: &str| std::fs::read_to_string(root.join(data).join(name)).expect("recorded");
    let sessions = ["consistency", "functions", "json", "limits", "statements", "types", "writes"];
    let texts = sessions.map(|name| read(&format!("sessions/{name}.txt")));
    let mut statements = Vec::new();
    for line in texts.iter().flat_map(|text| text.lines()) {
        // `> SELECT`, `>8/9 UPDATE`, `>p INSERT`; what is bound has no text.
        if let Some((mark, text)) = line.split_once(' ').filter(|(mark, _)| *mark != ">b")
            && let Some(mark @ ('!' | '>')) = mark.chars().next()
        {
            statements.push((mark, text.to_owned()));
        }
    }
    for line in read("recorded_selects.txt").lines() {
        match line.split_at_checked(1) {
            Some(("!", text)) => statements.push(('!', text.to_owned())),
            Some(("?", text)) => statements.push(('>', text.trim().to_owned())),
            _ => {}
        }
    }
    statements
}

/// The inputs of one node, each after its length.
struct History(Option<std::fs::File>);

impl History {
    fn begin(path: Option<&Path>) -> History {
        History(path.map(|path| std::fs::File::create(path).expect("a history")))
    }

    fn keep(&mut self, bytes: &[u8]) {
        use std::io::Write;
        let Some(file) = &mut self.0 else { return };
        let length = (bytes.len() as u32).to_be_bytes();
        file.write_all(&[&length, bytes].concat()).expect("room");
    }
}

/// The inputs that a history has.
pub fn inputs(mut history: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    while let Some((length, rest)) = history.split_first_chunk::<4>() {
        let (input, rest) = rest.split_at((u32::from_be_bytes(*length) as usize).min(rest.len()));
        found.push(input.to_vec());
        history = rest;
    }
    found
}

/// A client of the node. It fails on what no input may cause.
pub struct Connection {
    session: halcyon_client::Connection,
    /// Whether an input has written to `system_schema` itself: what a start makes of that is another schema.
    tampers: bool,
}

/// Internal errors that the input asked for.
const EXPLAINED: [&str; 0] = [];

impl Connection {
    async fn open(node: &Node) -> Connection {
        let (address, none) = (node.address, Compression::None);
        let connected = halcyon_client::Connection::connect(address, Version::V5, none).await;
        let mut session = connected.expect("a node that listens");
        session.start(&Credentials::default()).await.expect("READY");
        Connection { session, tampers: false }
    }

    async fn ask(&mut self, text: &str) -> Answer {
        self.session.client.query(0, text, &QueryParameters::new(Consistency::One));
        self.answer(text).await
    }

    async fn rows(&mut self, text: &str) -> Page {
        match self.ask(text).await {
            Answer::Rows(page) => page,
            other => panic!("{other:?} to {text}"),
        }
    }

    /// Sends what the client has, and waits for the answer.
    async fn answer(&mut self, what: &str) -> Answer {
        match self.session.ask().await {
            Ok((_, answer)) => {
                check(&answer, what);
                answer
            }
            Err(error) => match error.cause {
                Cause::Malformed(e) => panic!("an answer that cannot be read: {e}; to {what}"),
                cause => panic!("the connection is lost: {cause}; after {what}"),
            },
        }
    }
}

/// Neither an internal error nor one that only a sick node has.
fn check(answer: &Answer, what: &str) {
    let Answer::Error { code, message, .. } = answer else { return };
    let is_internal = matches!(code, 0x0000 | 0x1002 | 0x1100 | 0x1200 | 0x1300 | 0x1500);
    let is_explained = EXPLAINED.iter().any(|known| message.contains(known));
    assert!(!is_internal || is_explained, "error {code:#06x} {message}\nto {what}");
}
