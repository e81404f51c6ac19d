//! The process: reads requests, runs each task on a thread of its own, and ends with its input.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::Arc;

use halcyon_io::{Disk, DiskOptions, Mutex};

use crate::admission::{Admission, needed};
use crate::exchange::{Answer, Ear, Exchange, Replies};
use crate::failure::failed;
use crate::frame::Frame;
use crate::messages::{Failed, FailureKind, Hello, Reply, Request, TaskRequest, VERSION};
use crate::priority::Priority;
use crate::task;

/// Why the process ends before its input does.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The jar is of another release.
    #[error(
        "{node} speaks versions {oldest} to {newest} of the protocol, this program {VERSION}: install the jar of this release"
    )]
    Version { node: String, oldest: u16, newest: u16 },
    /// What arrived is not the protocol; the state of the other side is not known any more.
    #[error("not a request: {0}")]
    Malformed(String),
    #[error("the pipe to the node: {0}")]
    Pipe(#[from] std::io::Error),
    /// The kernel refuses what the I/O needs.
    #[error("{0}")]
    Disk(String),
}

struct Service {
    disk: Disk,
    replies: Arc<Replies>,
    admission: Admission,
    priority: Priority,
    running: Mutex<BTreeMap<u64, Ear>>,
}

/// Serves until the input ends. `program` is this program's name and release.
pub fn serve(
    from: &mut impl Read,
    to: impl Write + Send + 'static,
    program: &str,
    pid: u32,
) -> Result<(), Error> {
    let Some(frame) = Frame::read(from)? else { return Ok(()) };
    let replies = Arc::new(Replies::new(to));
    let hello = match decode(&frame)? {
        Request::Hello(hello) => hello,
        other => return Err(Error::Malformed(format!("{other:?} before the hello"))),
    };
    let service = Service::new(hello, replies)?;
    let program = program.to_owned();
    service.replies.send(0, &Reply::Welcome { version: VERSION, program, pid })?;
    while let Some(frame) = Frame::read(from)? {
        match decode(&frame)? {
            Request::Hello(_) => return Err(Error::Malformed("a second hello".to_owned())),
            Request::Ping(number) => service.replies.send(0, &Reply::Pong(number))?,
            Request::Task(task) => Service::start(&service, frame.task, *task),
            Request::Bounds(bounds) => service.tell(frame.task, Answer::Bounds(bounds)),
            Request::Granted(path) => service.tell(frame.task, Answer::Granted(path)),
            Request::GoOn(floor) => service.tell(frame.task, Answer::GoOn(floor)),
            Request::Stop => service.tell(frame.task, Answer::Stop),
        }
    }
    Ok(())
}

fn decode(frame: &Frame) -> Result<Request, Error> {
    Request::decode(frame).map_err(|e| Error::Malformed(e.to_string()))
}

impl Service {
    fn new(hello: Hello, replies: Arc<Replies>) -> Result<Arc<Service>, Error> {
        let Hello { oldest, newest, node, memory, idle } = hello;
        if !(oldest..=newest).contains(&VERSION) {
            return Err(Error::Version { node, oldest, newest });
        }
        let budget = usize::try_from(memory / 2).unwrap_or(usize::MAX);
        let disk = Disk::real(DiskOptions {
            buffer_budget: budget.max(32 << 20),
            ..DiskOptions::default()
        });
        if let Some(refusal) = &disk.backend().refusal {
            return Err(Error::Disk(refusal.clone()));
        }
        Ok(Arc::new(Service {
            disk,
            replies,
            admission: Admission::new(memory),
            priority: Priority::wanted(idle),
            running: Mutex::default(),
        }))
    }

    /// Answers to a task that has ended meanwhile go nowhere.
    fn tell(&self, task: u64, answer: Answer) {
        let ear = self.running.lock().get(&task).cloned();
        let stops = matches!(answer, Answer::Stop);
        if let Some(ear) = ear {
            ear.tell(answer);
        }
        if stops {
            self.priority.hurry();
            self.admission.look_again();
        }
    }

    fn start(this: &Arc<Service>, id: u64, task: TaskRequest) {
        let (exchange, ear) = Exchange::new(id, this.replies.clone());
        this.running.lock().insert(id, ear);
        let ending = Ending { service: this.clone(), id, reply: None };
        let runtime = this.disk.runtime().clone();
        let name = format!("compaction {id}");
        runtime
            .spawn_thread(&name, this.priority.of_tasks, move || run(task, exchange, ending))
            .detach();
    }
}

async fn run(task: TaskRequest, exchange: Arc<Exchange>, mut ending: Ending) {
    let service = ending.service.clone();
    let _charged = exchange.cpu.enter();
    let goes_on = || exchange.goes_on();
    let memory = needed(&task);
    let reply = match service.admission.admit(memory, &exchange.progress, goes_on) {
        Ok(_admitted) => {
            exchange.admitted(memory);
            task::run(&service.disk, &task, &exchange).await
        }
        Err(error) => Reply::Failed(failed(&error, &[])),
    };
    ending.reply = Some(reply);
}

/// Tells of the end of a task, however it ends.
struct Ending {
    service: Arc<Service>,
    id: u64,
    reply: Option<Reply>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.service.running.lock().remove(&self.id);
        let panicked = || Failed {
            kind: FailureKind::Other,
            path: String::new(),
            message: "the task panicked; its message is in the log".to_owned(),
        };
        let reply = self.reply.take().unwrap_or_else(|| Reply::Failed(panicked()));
        // An error means that the other side has disconnected, and this process is about to end.
        let _ = self.service.replies.send(self.id, &reply);
    }
}
