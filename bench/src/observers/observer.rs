//! Those who look at a node: each is begun and ended, and says what it saw.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use halcyon_oracle::Result;

use crate::connection::local;
use crate::record::Measurements;

const EVERY: Duration = Duration::from_secs(1);
/// How often an observer asks whether it is to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Observer {
    Scrapes,
    Pages,
    Top,
    Nodetool,
}

/// The node that is looked at.
pub(super) struct Watched {
    pub(super) program: PathBuf,
    pub(super) port: u16,
    pub(super) metrics: u16,
    pub(super) pages: u32,
}

/// An observer at work.
pub(super) enum Begun {
    Threads { stop: Arc<AtomicBool>, what: &'static str, threads: Vec<JoinHandle<Vec<f64>>> },
    Program(Child),
}

impl Observer {
    /// The stretches, and who looks in each.
    pub(super) const TOGETHER: [(&'static str, &'static [Observer]); 5] = [
        ("a scrape a second", &[Observer::Scrapes]),
        ("pages that are open", &[Observer::Pages]),
        ("top", &[Observer::Top]),
        ("nodetool, a command a second", &[Observer::Nodetool]),
        ("all of them", &[Observer::Scrapes, Observer::Pages, Observer::Top, Observer::Nodetool]),
    ];

    pub(super) fn begin(self, of: &Watched) -> Result<Begun> {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = |what, count: u32, work: &dyn Fn(Arc<AtomicBool>) -> JoinHandle<Vec<f64>>| {
            let threads = (0..count).map(|_| work(stop.clone())).collect();
            Begun::Threads { stop: stop.clone(), what, threads }
        };
        let metrics = of.metrics;
        Ok(match self {
            Observer::Scrapes => {
                threads("scrape", 1, &|stop| std::thread::spawn(move || scrape(metrics, &stop)))
            }
            Observer::Pages => threads("page", of.pages, &|stop| {
                std::thread::spawn(move || read_events(metrics, &stop))
            }),
            Observer::Nodetool => {
                let (program, port) = (of.program.clone(), of.port);
                threads("nodetool", 1, &|stop| {
                    let program = program.clone();
                    std::thread::spawn(move || ask(&program, port, &stop))
                })
            }
            Observer::Top => Begun::Program(top(of)?),
        })
    }
}

impl Begun {
    /// Adds how long each look took, in ms, and how many there were.
    pub(super) fn end(self, figures: Measurements) -> Result<Measurements> {
        match self {
            Begun::Program(mut child) => {
                if child.try_wait()?.is_some() {
                    return Err("top ended by itself".into());
                }
                child.kill()?;
                child.wait()?;
                Ok(figures)
            }
            Begun::Threads { stop, what, threads } => {
                stop.store(true, Relaxed);
                let mut looks = Vec::new();
                for thread in threads {
                    looks.extend(thread.join().map_err(|_| format!("{what} failed"))?);
                }
                if looks.is_empty() {
                    return Err(format!("{what}: nothing was seen").into());
                }
                looks.sort_by(f64::total_cmp);
                let at = |share: f64| looks[((looks.len() - 1) as f64 * share) as usize];
                Ok(figures
                    .with(&format!("{what}_looks"), looks.len() as f64)
                    .with(&format!("{what}_p50_ms"), at(0.5))
                    .with(&format!("{what}_max_ms"), at(1.0)))
            }
        }
    }
}

fn get(port: u16, path: &str) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(local(port))?;
    let host = format!("127.0.0.1:{port}");
    stream.write_all(
        format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes(),
    )?;
    Ok(stream)
}

/// Once a second, whatever it takes; in ms.
fn each_second(stop: &AtomicBool, mut look: impl FnMut() -> bool) -> Vec<f64> {
    let (mut due, mut took) = (Instant::now(), Vec::new());
    while !stop.load(Relaxed) {
        let began = Instant::now();
        if look() {
            took.push(1e3 * began.elapsed().as_secs_f64());
        }
        due += EVERY;
        while !stop.load(Relaxed) && Instant::now() < due {
            sleep(LOOK_EVERY.min(due.saturating_duration_since(Instant::now())));
        }
    }
    took
}

fn scrape(port: u16, stop: &AtomicBool) -> Vec<f64> {
    each_second(stop, || {
        let mut text = String::new();
        let read = get(port, "/metrics").and_then(|mut stream| stream.read_to_string(&mut text));
        read.is_ok() && text.starts_with("HTTP/1.1 200")
    })
}

/// As a browser does that shows the page: its files once, then its events. In ms between two of them.
fn read_events(port: u16, stop: &AtomicBool) -> Vec<f64> {
    let mut between = Vec::new();
    for path in ["/", "/page.js", "/page.css", "/charts.js", "/uPlot.js"] {
        let mut bytes = Vec::new();
        let read = get(port, path).and_then(|mut stream| stream.read_to_end(&mut bytes));
        if read.is_err() {
            return between;
        }
    }
    let Ok(stream) = get(port, "/events") else { return between };
    if stream.set_read_timeout(Some(LOOK_EVERY)).is_err() {
        return between;
    }
    let (mut lines, mut line, mut last) = (BufReader::new(stream), Vec::new(), Instant::now());
    while !stop.load(Relaxed) {
        match lines.read_until(b'\n', &mut line) {
            Ok(0) => return between,
            Ok(_) => {
                if line.starts_with(b"data:") {
                    between.push(1e3 * last.elapsed().as_secs_f64());
                    last = Instant::now();
                }
                line.clear();
            }
            // What has come of a line stays there.
            Err(e)
                if matches!(
                    e.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                ) => {}
            Err(_) => return between,
        }
    }
    between
}

fn ask(program: &std::path::Path, port: u16, stop: &AtomicBool) -> Vec<f64> {
    let mut commands =
        ["info", "tablestats bench.hot", "compactionstats", "tpstats"].iter().cycle();
    each_second(stop, || {
        let words = commands.next().map(|line| line.split(' ')).into_iter().flatten();
        let mut nodetool = Command::new(program);
        nodetool.args(["nodetool", "-p", &port.to_string()]).args(words);
        let status = nodetool.stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    })
}

/// On a terminal of its own, which `script` makes.
fn top(of: &Watched) -> Result<Child> {
    let line = format!("{} top -p {}", of.program.display(), of.port);
    let mut script = Command::new("script");
    script.args(["-qfc", &line, "/dev/null"]).stdin(Stdio::piped());
    let child = script.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    Ok(child.map_err(|e| format!("script: {e}"))?)
}
