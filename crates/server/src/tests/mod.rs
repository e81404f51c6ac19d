//! A node of its own for each test, on a free port, and clients that speak bytes.

mod abuse;
mod compactions;
mod life;
mod limits;
mod panics;
mod statements;

use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use halcyon_client::blocking::Connection;
use halcyon_protocol::client::Answer;
use halcyon_protocol::{Compression, Version};

use crate::settings::{Machine, Overrides, Settings};
use crate::{Error, Log, serve};

/// Longer than anything takes; a test that waits for it fails.
const PATIENCE: Duration = Duration::from_secs(100);

struct TestNode {
    address: SocketAddr,
    stop: Option<futures_channel::oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<(), Error>>>,
    directory: PathBuf,
    said: Arc<Mutex<Vec<String>>>,
}

fn directory(name: &str) -> PathBuf {
    let directory =
        std::env::temp_dir().join(format!("halcyon-server-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    directory
}

fn settings(directory: &Path, text: &str) -> Settings {
    let overrides = Overrides {
        data_dir: Some(directory.to_owned()),
        port: Some(0),
        shards: Some(2),
        ..Overrides::default()
    };
    // Of many nodes at once only one would have the default port for `nodetool`.
    let port = if text.contains("nodetool_port") { "" } else { "nodetool_port: 0\n" };
    let text = format!("commitlog_segment_size: 1MiB\n{port}{text}");
    let machine = Machine { memory: 256 << 20, cores: 2 };
    Settings::load(Some(&text), &overrides, machine).unwrap()
}

impl TestNode {
    fn start(name: &str, text: &str) -> TestNode {
        let directory = directory(name);
        TestNode::start_in(directory, text).unwrap_or_else(|e| panic!("{e}"))
    }

    fn start_in(directory: PathBuf, text: &str) -> Result<TestNode, Error> {
        let settings = settings(&directory, text);
        let said = Arc::<Mutex<Vec<String>>>::default();
        let kept = said.clone();
        let log = Log::new(move |line| {
            kept.lock().unwrap().push(line.text);
        });
        let (told, ready) = mpsc::channel();
        let (stop, stopped) = futures_channel::oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let until = async move {
                let _ = stopped.await;
            };
            serve(settings, &log, |address| told.send(address).unwrap(), until)
        });
        match ready.recv() {
            Ok(address) => {
                Ok(TestNode { address, stop: Some(stop), thread: Some(thread), directory, said })
            }
            Err(_) => Err(thread.join().unwrap().unwrap_err()),
        }
    }

    fn connect(&self) -> Peer {
        self.connect_as(Version::V4, Compression::None)
    }

    fn connect_as(&self, version: Version, compression: Compression) -> Peer {
        Peer::connect(self.address, version, compression)
    }

    /// A connection that is ready for requests.
    fn started(&self) -> Peer {
        self.started_as(Version::V4, Compression::None)
    }

    fn started_as(&self, version: Version, compression: Compression) -> Peer {
        let mut peer = self.connect_as(version, compression);
        peer.start();
        peer
    }

    /// The other connections are served as if nothing had happened.
    fn is_well(&self) {
        let mut peer = self.started();
        peer.client.options(7);
        assert!(matches!(peer.answer(), (7, Answer::Supported(_))));
    }

    fn stop(&mut self) -> Result<(), Error> {
        drop(self.stop.take());
        self.thread.take().map_or(Ok(()), |thread| thread.join().unwrap())
    }
}

impl Drop for TestNode {
    fn drop(&mut self) {
        let outcome = self.stop();
        if !std::thread::panicking() {
            outcome.unwrap();
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// A client that panics where an answer is missing.
struct Peer(Connection);

impl Deref for Peer {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.0
    }
}

impl DerefMut for Peer {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.0
    }
}

impl Peer {
    fn connect(address: SocketAddr, version: Version, compression: Compression) -> Peer {
        Peer(Connection::connect(address, version, compression, PATIENCE).unwrap())
    }

    fn over(stream: TcpStream, version: Version, compression: Compression) -> Peer {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Peer(Connection::over(stream, version, compression))
    }

    fn start(&mut self) {
        self.0.start().unwrap();
    }

    fn send(&mut self) {
        self.0.send().unwrap();
    }

    /// The next answer, after sending what is to be sent.
    fn answer(&mut self) -> (i16, Answer) {
        self.send();
        self.next_answer().unwrap()
    }

    fn error(&mut self) -> (i32, String) {
        match self.answer() {
            (_, Answer::Error { code, message, .. }) => (code, message),
            other => panic!("{other:?}"),
        }
    }

    /// The server has nothing more to say.
    fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => true,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}
