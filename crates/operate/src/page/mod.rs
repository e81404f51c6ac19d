//! The page at `/`: charts and lists of what is in virtual tables, and a button that stops a compaction.
//!
//! ```text
//!  browser ── / page.js page.css ──► files of this program
//!          ◄─ /events ────────────── feed of its role ── every 2 s ──► console: SELECT JSON as that role
//!          ── POST /stop ──────────► console: INSERT INTO halcyon_views.commands as that role
//! ```
//! 1. The page is shown on the loopback device only, because its address has no TLS, and under names of this machine only.
//! 2. Where clients log in, a visitor does: HTTP's Basic scheme carries the role and its password to the check of CQL's logins.
//! 3. Visitors of one role share a feed ([`feeds`]). Without a visitor nothing is looked at.
//! 4. A browser sends a password to this address for pages of other sites too, so a POST needs a header and an origin that only the
//!    page itself can send.

mod credentials;
mod feeds;
mod files;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::Arc;

use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderName, HeaderValue, ORIGIN, REFRESH,
    WWW_AUTHENTICATE,
};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};

use crate::console::{Console, Login, Refusal, Visitor};
use crate::response::{Answer, gzip, header, takes_gzip, text, whole};
use crate::watched::Watched;
use feeds::Feeds;

/// Sent with every answer of the page. Nothing that a table contains is executed, and nothing is fetched from another host.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// A page of another site cannot send it without asking, and the answer to that is 405.
const OWN_HEADER: &str = "x-halcyon-page";

/// What the page needs between two requests.
#[derive(Default)]
pub(crate) struct Page {
    feeds: Arc<Feeds>,
}

/// Whether a path is one of the page's.
pub(crate) fn has(path: &str) -> bool {
    matches!(path, "/" | "/events" | "/stop") || files::find(path).is_some()
}

impl Page {
    /// Answers a request that came over the loopback device, if `is_local`.
    pub(crate) async fn answer(
        &self,
        request: &Request<Incoming>,
        watched: &Watched,
        (peer, is_local): (IpAddr, bool),
    ) -> Answer {
        let mut answer = match is_local {
            true => self.local(request, watched, peer).await,
            false => text(
                StatusCode::FORBIDDEN,
                "the page is shown on this machine only, because its address has no TLS: forward the port with \
                 ssh -L 9103:127.0.0.1:9103, and open http://127.0.0.1:9103/\n",
            ),
        };
        protect(answer.headers_mut());
        answer
    }

    async fn local(&self, request: &Request<Incoming>, watched: &Watched, peer: IpAddr) -> Answer {
        let path = request.uri().path();
        if let Some(file) = files::find(path).filter(|_| path != "/") {
            return of_file(request, file);
        }
        let Some(console) = watched.console() else {
            let why = watched.not_ready().unwrap_or("the node is starting");
            let mut answer = text(StatusCode::SERVICE_UNAVAILABLE, &format!("{why}\n"));
            answer.headers_mut().insert(REFRESH, HeaderValue::from_static("2"));
            return answer;
        };
        let visitor = match visitor(request, &**console, peer).await {
            Ok(visitor) => visitor,
            Err(answer) => return *answer,
        };
        match (path, request.method()) {
            ("/events", &Method::GET) => self.events(console.clone(), visitor),
            ("/stop", &Method::POST) => stop(request, &**console, visitor).await,
            ("/stop", _) => text(StatusCode::METHOD_NOT_ALLOWED, "the button sends a POST\n"),
            _ => files::find("/").map_or_else(not_found, |file| of_file(request, file)),
        }
    }

    fn events(&self, console: Arc<dyn Console>, visitor: Visitor) -> Answer {
        let Some(events) = feeds::subscribe(&self.feeds, console, visitor) else {
            return text(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many pages are open: close one of them\n",
            );
        };
        let mut answer = Response::new(StreamBody::new(events).boxed_unsync());
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        answer
    }
}

fn not_found() -> Answer {
    text(StatusCode::NOT_FOUND, "no such file\n")
}

fn protect(headers: &mut HeaderMap) {
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

fn of_file(request: &Request<Incoming>, file: &files::File) -> Answer {
    let is_get = matches!(*request.method(), Method::GET | Method::HEAD);
    if !is_get {
        return text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered\n");
    }
    let compressed = takes_gzip(request).then(|| gzip(&[file.bytes])).and_then(Result::ok);
    let is_compressed = compressed.is_some();
    let bytes = compressed.map_or(Bytes::from_static(file.bytes), Bytes::from);
    let mut answer = Response::new(whole(bytes));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(file.content_type));
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if is_compressed {
        let name = hyper::header::CONTENT_ENCODING;
        answer.headers_mut().insert(name, HeaderValue::from_static("gzip"));
    }
    answer
}

/// The visitor of a request, or the answer that refuses it.
async fn visitor(
    request: &Request<Incoming>,
    console: &dyn Console,
    peer: IpAddr,
) -> Result<Visitor, Box<Answer>> {
    let refused = |status, why: &str| Box::new(text(status, &format!("{why}\n")));
    match console.login() {
        Login::Never => return Ok(Visitor::Anonymous),
        Login::Certificate => {
            return Err(refused(
                StatusCode::FORBIDDEN,
                "clients of this node log in by certificate, which this address cannot ask for: use cqlsh with \
                 halcyon_views and system_views",
            ));
        }
        Login::Password => {}
    }
    let asking = |why: &str| {
        let mut answer = refused(StatusCode::UNAUTHORIZED, why);
        let scheme = HeaderValue::from_static("Basic realm=\"Halcyon\", charset=\"UTF-8\"");
        answer.headers_mut().insert(WWW_AUTHENTICATE, scheme);
        answer
    };
    let Some((role, password)) = credentials::basic(header(request, AUTHORIZATION)) else {
        return Err(asking("log in with a role of the node and its password"));
    };
    console.log_in(role, password, peer).await.map_err(|refusal| match refusal {
        Refusal::Credentials(why) => asking(&why),
        Refusal::Busy(why) => refused(StatusCode::SERVICE_UNAVAILABLE, &why),
    })
}

async fn stop(request: &Request<Incoming>, console: &dyn Console, visitor: Visitor) -> Answer {
    if !is_own(request.headers()) {
        return text(StatusCode::FORBIDDEN, "only the page itself may send this\n");
    }
    let query = request.uri().query().unwrap_or_default();
    let Some(id) = query.strip_prefix("id=").filter(|id| is_uuid(id)) else {
        return text(StatusCode::BAD_REQUEST, "expected ?id= and the id of a compaction\n");
    };
    match console.stop(visitor, id.to_owned()).await {
        Ok(()) => text(StatusCode::OK, "stopped\n"),
        Err(why) => text(StatusCode::FORBIDDEN, &format!("{why}\n")),
    }
}

/// Whether the page at this very address sent a request.
fn is_own(headers: &HeaderMap) -> bool {
    let of = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let host = of(HOST.as_str()).unwrap_or_default();
    let is_same_site = of("sec-fetch-site").is_none_or(|site| site == "same-origin");
    let origin = of(ORIGIN.as_str()).and_then(|origin| origin.strip_prefix("http://"));
    origin == Some(host) && is_same_site && of(OWN_HEADER).is_some()
}

fn is_uuid(id: &str) -> bool {
    id.len() == 36 && id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}
