//! `cargo x bench E6`: a message store for a while: received, transformed, sent, deleted or expired, and a log that is searched.
//!
//! 1. One server at a time. Requests come at a fixed rate (`tables.rs`: the tables, and a message's life).
//! 2. Meanwhile, at every look: bytes of the two tables on disk, and tombstones per read as the server counts them.
//! 3. Does it stay as it was? The p99 of the last third by that of the first after the start, and the disk likewise.

mod plot;
mod tables;

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::connection::Connection;
use super::contender::Contender;
use super::jvm_node::Plan;
use super::latency::Latencies;
use super::load::Random;
use super::machine::files_below;
use super::paced::{Asked, Outcome, Paced, Sample};
use super::programs::Programs;
use super::server::{HalcyonPlan, Server};
use super::sheet::{Column, Sheet, Target};
use super::{Common, Places};
use crate::Result;
use halcyon_oracle::Version;
use tables::{CLASSES, Messages, statements_of_tables};

const PORT: u16 = 27942;
/// Stretches that a run is looked at in.
const SLICES: usize = 60;
const MIB: f64 = 1_048_576.0;

const COLUMNS: &[Column] = &[
    Column { key: "p50_us", title: "p50 µs", decimals: 0, is_drawn: true },
    Column { key: "p99_us", title: "p99 µs", decimals: 0, is_drawn: true },
    Column { key: "p99.9_us", title: "p99.9 µs", decimals: 0, is_drawn: false },
    Column { key: "max_us", title: "max µs", decimals: 0, is_drawn: false },
    Column { key: "first_p99_us", title: "p99 of the first third", decimals: 0, is_drawn: false },
    Column { key: "last_p99_us", title: "of the last", decimals: 0, is_drawn: false },
];

#[derive(clap::Args, Clone)]
pub(crate) struct Arguments {
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// Messages a second; each is eight requests
    #[arg(long, default_value_t = 150.0)]
    messages: f64,
    /// Bytes of a message
    #[arg(long, default_value_t = 1000)]
    body: usize,
    /// Seconds of a window; messages expire after two
    #[arg(long, default_value_t = 60)]
    window: u64,
    #[command(flatten)]
    common: Common,
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let mut arguments = arguments.clone();
    if arguments.common.tiny {
        (arguments.minutes, arguments.messages, arguments.window) = (0.07, 20.0, 1);
    }
    let places = Places::make(&arguments.common, "bench/data/messaging", "bench/E6")?;
    let sheet = Sheet::new(
        "E6",
        "a message store",
        COLUMNS,
        json!({
            "minutes": arguments.minutes,
            "messages_per_second": arguments.messages,
            "body_bytes": arguments.body,
            "window_seconds": arguments.window,
        }),
    );
    let mut bench = Bench { arguments, places, sheet, courses: Vec::new() };
    bench.all()?;
    bench.places.show()
}

struct Bench {
    arguments: Arguments,
    places: Places,
    sheet: Sheet,
    courses: Vec<Course>,
}

/// How it went on with one server.
struct Course {
    contender: Contender,
    /// By class, p99 in µs of each slice.
    p99: Vec<Vec<f64>>,
    looks: Vec<Look>,
    seconds: f64,
}

/// What was seen at a time.
#[derive(Clone, Copy, Default)]
struct Look {
    at: f64,
    messages_bytes: u64,
    log_bytes: u64,
    /// Tombstones that reads of the messages passed: median and p99 since the start, where the server says.
    tombstones: Option<(f64, f64)>,
}

impl Bench {
    fn all(&mut self) -> Result<()> {
        // Small, so that a run of minutes has as many flushes as a run of hours has with the default.
        let small = ["memtable_heap_space: 32MiB", "memtable_offheap_space: 32MiB"];
        let small = small.map(str::to_owned);
        if self.arguments.common.takes_part("halcyon") {
            let programs = Programs::build_server(self.arguments.common.tiny)?;
            let dir = self.places.fresh("halcyon")?;
            let plan = HalcyonPlan { mode: "batch", dir: &dir, settings: &small, cage: None };
            let (server, _) = Server::halcyon(&programs, &plan)?;
            self.course(&server, &dir.join("data"))?;
        }
        if self.arguments.common.takes_part(Version::V5.name()) {
            let dir = self.places.data.join("cassandra");
            let mut settings = small.to_vec();
            settings.extend(
                [
                    "commitlog_sync: batch",
                    "commitlog_sync_period: 0ms",
                    "commitlog_segment_size: 32MiB",
                ]
                .map(str::to_owned),
            );
            let data = dir.join("data/data");
            let plan = Plan {
                version: Version::V5,
                dir,
                port: PORT,
                settings,
                jvm: "",
                heap: "2g",
                cage: None,
            };
            let (server, _) = Server::cassandra("batch", &plan)?;
            self.course(&server, &data)?;
        }
        Ok(())
    }

    fn course(&mut self, server: &Server, data: &Path) -> Result<()> {
        let mut connection = Connection::open(server.port)?;
        for statement in statements_of_tables(self.arguments.window) {
            connection.execute(&statement)?;
        }
        let messages = Messages {
            per_second: self.arguments.messages,
            window_seconds: self.arguments.window,
            body: self.arguments.body,
            bytes: super::load::random_bytes(1, 1 << 20),
            random: Random(2),
            asked: 0,
        };
        let rate = self.arguments.messages * CLASSES.len() as f64;
        let seconds = 60.0 * self.arguments.minutes;
        let slice = Duration::from_secs_f64(seconds / SLICES as f64);
        let paced = Paced::start(server.port, rate, messages)?;
        let mut looks = Vec::new();
        for number in 1..=SLICES as u32 {
            sleep((slice * number).saturating_sub(paced.now()));
            looks.push(look(paced.now(), &data.join("bench"), &mut connection)?);
        }
        let asked = paced.stop()?;
        let failed = asked.samples.iter().filter(|s| s.outcome == Outcome::Failed).count();
        if failed > 0 || asked.unanswered > 0 {
            let why = format!(
                "{}: {failed} requests failed, {} without an answer",
                server.contender.name(),
                asked.unanswered
            );
            self.sheet.miss(why);
        }
        self.note(server.contender.clone(), &asked, looks, seconds);
        self.write()
    }

    fn note(&mut self, contender: Contender, asked: &Asked, looks: Vec<Look>, seconds: f64) {
        let mut p99 = Vec::new();
        for (class, name) in CLASSES.iter().enumerate() {
            let of_class = || asked.samples.iter().filter(move |s| usize::from(s.class) == class);
            let part = |from: f64, until: f64| {
                let due = |sample: &&Sample| {
                    let at = sample.due.as_secs_f64() / seconds;
                    from <= at && at < until
                };
                Latencies::of(of_class().filter(due).map(|sample| sample.nanos).collect())
            };
            let whole = part(0.0, 1.0);
            let figures = vec![
                whole.p50,
                whole.p99,
                whole.p999,
                whole.max,
                // The start belongs to nobody: a JVM compiles, caches are empty.
                part(0.1, 0.4).p99,
                part(0.7, 1.0).p99,
            ];
            self.sheet.add(name, &contender, figures);
            let step = 1.0 / SLICES as f64;
            p99.push(
                (0..SLICES).map(|n| part(n as f64 * step, (n + 1) as f64 * step).p99).collect(),
            );
        }
        self.courses.push(Course { contender, p99, looks, seconds });
    }

    fn write(&mut self) -> Result<()> {
        let courses: Vec<Value> = self.courses.iter().map(Course::to_json).collect();
        self.sheet.beside.insert("courses".to_owned(), courses.into());
        let targets = self.targets();
        let table = self.sheet.markdown(&targets, &self.method());
        let plots =
            [("plot.svg", plot::latency(&self.courses)), ("disk.svg", plot::disk(&self.courses))];
        self.places.write_plots(&self.sheet.to_json(&targets), &table, &plots)
    }

    fn targets(&self) -> Vec<Target> {
        const FLAT: f64 = 1.25;
        let Some(ours) = self.courses.iter().find(|course| course.contender.is_halcyon()) else {
            return Vec::new();
        };
        let drift = |class: &'static str| {
            let of = |key| self.sheet.median(class, &ours.contender, key);
            Some((class, of("last_p99_us")? / of("first_p99_us")?))
        };
        let drifts: Vec<(&str, f64)> = CLASSES.iter().filter_map(|class| drift(class)).collect();
        let worst = drifts.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
        let (class, ratio) = worst.unwrap_or(("nothing", f64::NAN));
        let growth = ours.growth();
        vec![
            Target {
                what: "Halcyon: p99 of the last third by that of the first, of the worst kind of request".to_owned(),
                wanted: format!("≤ {FLAT}"),
                measured: format!("{ratio:.2} ({class})"),
                is_met: ratio <= FLAT,
            },
            Target {
                what: "Halcyon: most disk of the messages in the last third by that in the middle one".to_owned(),
                wanted: format!("≤ {FLAT}"),
                measured: format!("{growth:.2}"),
                is_met: growth <= FLAT,
            },
        ]
    }

    fn method(&self) -> String {
        let mut text = String::from(
            "![Disk over time](disk.svg)\n\n| | received MiB | messages on disk MiB, most | at the end | log on disk MiB at the end | tombstones a read, median, p99 |\n|---|---|---|---|---|---|\n",
        );
        for course in &self.courses {
            let most = course.looks.iter().map(|look| look.messages_bytes).max().unwrap_or(0);
            let last = course.looks.last().copied().unwrap_or_default();
            let tombstones = last
                .tombstones
                .map_or("not told".to_owned(), |(p50, p99)| format!("{p50:.0}, {p99:.0}"));
            let received = course.seconds * self.arguments.messages * self.arguments.body as f64;
            text += &format!(
                "| {} | {:.0} | {:.1} | {:.1} | {:.1} | {tombstones} |\n",
                course.contender.name(),
                received / MIB,
                most as f64 / MIB,
                last.messages_bytes as f64 / MIB,
                last.log_bytes as f64 / MIB
            );
        }
        let [_, messages, log] = statements_of_tables(self.arguments.window);
        text + &format!(
            "\n```sql\n{messages};\n{log};\n```\n\n\
             - {} messages a second of {} bytes for {} minutes, at a fixed rate (open loop: each request is timed from the moment at which it was due), eight requests each; \
             one server at a time. Writes are durable when acknowledged (`commitlog_sync: batch`).\n\
             - A window of time is part of the key, and of the compaction: all that is written about a message lies in its window, and SSTables of a window that is past go as a whole. Every second \
             message is deleted, the others expire after two windows. `gc_grace_seconds` is one window: on one node no replica can have missed a delete.\n\
             - Polls remember how far they came, so they do not walk over what is done. The log is never changed, and searched by window, newest first.\n\
             - Memtables have 32 MiB, so that minutes have as many flushes as hours have with the defaults.\n\
             - Thirds: 10 to 40 % and 70 to 100 % of the time; the start is nobody's.",
            self.arguments.messages, self.arguments.body, self.arguments.minutes
        )
    }
}

impl Course {
    /// Of the messages on disk: most in the last third by most in the middle one.
    fn growth(&self) -> f64 {
        let most = |from: f64, until: f64| {
            let inside = self.looks.iter().filter(|look| {
                let at = look.at / self.seconds;
                from <= at && at < until
            });
            inside.map(|look| look.messages_bytes).max().unwrap_or(0) as f64
        };
        // The least that is there at all: an SSTable's small components.
        most(0.67, 1.1) / most(0.33, 0.67).max(65_536.0)
    }

    fn to_json(&self) -> Value {
        let look = |look: &Look| {
            json!({
                "seconds": look.at,
                "messages_bytes": look.messages_bytes,
                "log_bytes": look.log_bytes,
                "tombstones_per_read_p50": look.tombstones.map(|(p50, _)| p50),
                "tombstones_per_read_p99": look.tombstones.map(|(_, p99)| p99),
            })
        };
        let slices: Map<String, Value> = CLASSES
            .iter()
            .zip(&self.p99)
            .map(|(class, p99)| ((*class).to_owned(), json!(p99)))
            .collect();
        json!({
            "peer": self.contender.peer,
            "mode": self.contender.mode,
            "slice_seconds": self.seconds / SLICES as f64,
            "p99_us": slices,
            "looks": self.looks.iter().map(look).collect::<Vec<_>>(),
        })
    }
}

/// `keyspace` is the folder of the tables.
fn look(at: Duration, keyspace: &Path, connection: &mut Connection) -> Result<Look> {
    let bytes = |table: &str| -> u64 {
        let files = files_below(keyspace).into_iter();
        let of_table = files.filter(|path| {
            let folder = path.strip_prefix(keyspace).ok().and_then(|path| path.iter().next());
            folder.is_some_and(|folder| folder.to_string_lossy().starts_with(&format!("{table}-")))
        });
        of_table.filter_map(|path| path.metadata().ok()).map(|about| about.len()).sum()
    };
    let page = connection.rows(
        "SELECT p50th, p99th FROM system_views.tombstones_per_read WHERE keyspace_name = 'bench' AND table_name = 'messages'",
    )?;
    let number = |cell: Option<&Option<Vec<u8>>>| {
        let bytes = cell?.as_ref()?.first_chunk::<8>()?;
        Some(f64::from_be_bytes(*bytes))
    };
    let row = page.rows.first();
    let tombstones = row.and_then(|row| Some((number(row.first())?, number(row.get(1))?)));
    Ok(Look {
        at: at.as_secs_f64(),
        messages_bytes: bytes("messages"),
        log_bytes: bytes("log"),
        tombstones: tombstones.filter(|(p50, _)| p50.is_finite()),
    })
}
