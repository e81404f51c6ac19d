//! What open pages get: server-sent events, of one feed for all pages of a role.
//!
//! 1. The first page of a role starts its feed; it ends with the last one.
//! 2. A feed executes the statements of the panels that are due, one after the other, and sends the rows that have changed.
//! 3. A new page gets all rows first. A page that does not keep up misses events, and holds up neither the feed nor the others.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::Stream;
use futures_util::stream::unfold;
use halcyon_io::Mutex;
use halcyon_io::clock::unix_micros;
use hyper::body::{Bytes, Frame};
use serde_json::json;
use tokio::sync::broadcast;

use crate::console::{Console, Visitor};
use crate::panels::{self, LOOK, PANELS};

/// Open pages of all roles. Chosen: each is a connection, and each role costs a look every two seconds.
pub(super) const PAGES_MAX: usize = 16;
/// Events that wait for a page; older ones are lost to it.
const WAITING_MAX: usize = 4;

pub(super) type Events = Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, Infallible>> + Send>>;

#[derive(Default)]
pub(super) struct Feeds {
    of: Mutex<BTreeMap<Visitor, Feed>>,
}

struct Feed {
    events: broadcast::Sender<Bytes>,
    /// The time of the last look, in milliseconds since 1970; `None` before the first.
    at: Option<i64>,
    /// What a new page gets: the newest rows of each panel, as JSON.
    rows: BTreeMap<&'static str, String>,
    may_stop: bool,
}

/// The events of a new page; `None`: too many are open.
pub(super) fn subscribe(
    feeds: &Arc<Feeds>,
    console: Arc<dyn Console>,
    visitor: Visitor,
) -> Option<Events> {
    let mut of = feeds.of.lock();
    let open: usize = of.values().map(|feed| feed.events.receiver_count()).sum();
    if open >= PAGES_MAX {
        return None;
    }
    let feed = of.entry(visitor.clone()).or_insert_with(|| {
        let (events, _) = broadcast::channel(WAITING_MAX);
        tokio::spawn(feed(feeds.clone(), console, visitor.clone()));
        Feed { events, at: None, rows: BTreeMap::new(), may_stop: false }
    });
    let role = match &visitor {
        Visitor::Anonymous => None,
        Visitor::Role { name, .. } => Some(name),
    };
    let about = json!({"panels": panels::for_page(), "role": role, "every": LOOK});
    // A connection ends after some minutes; the page connects again after a second.
    let about = format!("retry: 1000\n{}", event("about", &about.to_string()));
    let first = [about, event("rows", &feed.shown(feed.rows.iter()))];
    let first = Bytes::from(first.concat());
    Some(Box::pin(unfold((Some(first), feed.events.subscribe()), next)))
}

async fn next(
    (first, mut events): (Option<Bytes>, broadcast::Receiver<Bytes>),
) -> Option<(Result<Frame<Bytes>, Infallible>, (Option<Bytes>, broadcast::Receiver<Bytes>))> {
    let bytes = match first {
        Some(first) => first,
        None => loop {
            match events.recv().await {
                Ok(bytes) => break bytes,
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        },
    };
    Some((Ok(Frame::data(bytes)), (None, events)))
}

/// Looks at the panels until no page is open.
async fn feed(feeds: Arc<Feeds>, console: Arc<dyn Console>, visitor: Visitor) {
    let mut looks = 0;
    loop {
        let may_stop = console.may_stop(visitor.clone()).await;
        let mut seen = Vec::new();
        for panel in PANELS.iter().filter(|panel| looks % (panel.every / LOOK) == 0) {
            let rows = match console.rows(visitor.clone(), panel).await {
                Ok(rows) => format!("{{\"rows\":[{}]}}", rows.join(",")),
                Err(why) => json!({ "error": why }).to_string(),
            };
            seen.push((panel.name, rows));
        }
        {
            let mut of = feeds.of.lock();
            let Some(feed) = of.get_mut(&visitor) else { return };
            feed.may_stop = may_stop;
            feed.at = Some(unix_micros() / 1000);
            seen.retain(|(name, rows)| feed.rows.get(name) != Some(rows));
            let changed = feed.shown(seen.iter().map(|(name, rows)| (name, rows)));
            feed.rows.extend(seen);
            // No page may be open any more.
            let _ = feed.events.send(Bytes::from(event("rows", &changed)));
            if feed.events.receiver_count() == 0 {
                of.remove(&visitor);
                return;
            }
        }
        looks += 1;
        tokio::time::sleep(Duration::from_secs(LOOK)).await;
    }
}

impl Feed {
    fn shown<'a>(&self, rows: impl Iterator<Item = (&'a &'static str, &'a String)>) -> String {
        let panels: Vec<String> = rows.map(|(name, rows)| format!("\"{name}\":{rows}")).collect();
        let (at, may_stop) = (json!(self.at), self.may_stop);
        let panels = panels.join(",");
        format!("{{\"at\":{at},\"may_stop\":{may_stop},\"panels\":{{{panels}}}}}")
    }
}

/// Each line of the text is one of the event.
fn event(name: &str, text: &str) -> String {
    let data: String = text.lines().map(|line| format!("data: {line}\n")).collect();
    format!("event: {name}\n{data}\n")
}
