use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, ready};
use halcyon_io::Mutex;

use super::feeds::PAGES_MAX;
use crate::console::{Console, Login, Refusal, Visitor};
use crate::exposition::Names;
use crate::http::Endpoint;
use crate::panels::Panel;
use crate::watched::Watched;

/// A node with the role `r`, whose password is `p`.
struct Told {
    login: Login,
    stopped: Mutex<Vec<(Visitor, String)>>,
}

impl Console for Told {
    fn login(&self) -> Login {
        self.login
    }

    fn log_in(
        &self,
        role: String,
        password: String,
        address: IpAddr,
    ) -> BoxFuture<'_, Result<Visitor, Refusal>> {
        Box::pin(ready(match (role.as_str(), password.as_str()) {
            ("r", "p") => Ok(Visitor::Role { name: role, address }),
            ("busy", _) => Err(Refusal::Busy("too many logins".to_owned())),
            _ => Err(Refusal::Credentials("wrong".to_owned())),
        }))
    }

    fn rows(
        &self,
        _: Visitor,
        panel: &'static Panel,
    ) -> BoxFuture<'_, Result<Vec<String>, String>> {
        Box::pin(ready(match panel.name {
            "log" => Err("User r has no SELECT permission".to_owned()),
            name => Ok(vec![format!("{{\"of\":\"{name}\",\"text\":\"a\nb\"}}")]),
        }))
    }

    fn may_stop(&self, visitor: Visitor) -> BoxFuture<'_, bool> {
        Box::pin(ready(visitor != Visitor::Anonymous))
    }

    fn stop(&self, visitor: Visitor, id: String) -> BoxFuture<'_, Result<(), String>> {
        self.stopped.lock().push((visitor, id));
        Box::pin(ready(Ok(())))
    }
}

struct Site {
    endpoint: Endpoint,
    console: Arc<Told>,
}

impl Site {
    fn open(login: Login) -> Site {
        let watched = Arc::new(Watched::starting(Names::default()));
        let address = (Ipv4Addr::LOCALHOST, 0).into();
        let endpoint = Endpoint::open(address, watched.clone()).expect("a free port");
        let console = Arc::new(Told { login, stopped: Mutex::default() });
        watched.open_page(console.clone());
        Site { endpoint, console }
    }

    fn connect(&self, head: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.endpoint.address()).expect("listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        write!(stream, "{head}\r\nConnection: close\r\n\r\n").expect("reads");
        stream
    }

    fn ask(&self, head: &str) -> String {
        let mut answer = Vec::new();
        self.connect(head).read_to_end(&mut answer).expect("answers");
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn get(&self, path: &str, more: &str) -> String {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: localhost{more}"))
    }

    fn address(&self) -> SocketAddr {
        self.endpoint.address()
    }
}

/// Reads until the text comes.
fn until(stream: &mut TcpStream, text: &str) -> String {
    let (mut seen, mut byte) = (Vec::new(), [0]);
    while !seen.ends_with(text.as_bytes()) {
        assert_eq!(stream.read(&mut byte).expect("more"), 1, "{}", String::from_utf8_lossy(&seen));
        seen.push(byte[0]);
    }
    String::from_utf8_lossy(&seen).into_owned()
}

const AS_R: &str = "\r\nAuthorization: Basic cjpw";

/// Proves that every file of the page comes with the policy that forbids whatever is not the page's own, refusals included.
#[test]
fn answers_have_the_policy() {
    let site = Site::open(Login::Password);
    for path in ["/", "/page.js", "/page.css", "/charts.js", "/uPlot.js", "/events", "/stop"] {
        let answer = site.get(path, "").to_ascii_lowercase();
        assert!(answer.contains("content-security-policy: default-src 'none'; "), "{answer}");
        assert!(!answer.contains("unsafe-inline") && answer.contains("nosniff"), "{answer}");
    }
    let compressed = site.get("/page.js", "\r\nAccept-Encoding: gzip").to_ascii_lowercase();
    assert!(compressed.contains("content-encoding: gzip"), "{compressed}");
    assert!(site.get("/page.jsx", "").starts_with("HTTP/1.1 404"));
    let foreign = site.ask("GET / HTTP/1.1\r\nHost: example.com");
    assert!(foreign.starts_with("HTTP/1.1 421"), "{foreign}");
}

/// Proves that a role and its password open the page where clients log in, that nothing else does, and that a node whose clients log in
/// by certificate shows no page.
#[test]
fn visitors_log_in_as_clients_do() {
    let site = Site::open(Login::Password);
    for more in ["", "\r\nAuthorization: Basic cjpx", "\r\nAuthorization: Bearer cjpw"] {
        for path in ["/", "/events"] {
            let answer = site.get(path, more);
            assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
            assert!(answer.contains("Basic realm=\"Halcyon\""), "{answer}");
        }
    }
    assert!(site.get("/", AS_R).starts_with("HTTP/1.1 200"));
    assert!(site.get("/", "\r\nAuthorization: Basic YnVzeTpw").starts_with("HTTP/1.1 503"));
    let by_certificate = Site::open(Login::Certificate).get("/", AS_R);
    assert!(by_certificate.starts_with("HTTP/1.1 403"), "{by_certificate}");
    assert!(Site::open(Login::Never).get("/", "").starts_with("HTTP/1.1 200"));
}

/// Proves that a new page gets what panels there are and the rows of each, refusals of some included, as events of one line each.
#[test]
fn pages_get_the_rows_of_their_role() {
    let site = Site::open(Login::Password);
    let mut page = site.connect(&format!("GET /events HTTP/1.1\r\nHost: localhost{AS_R}"));
    let about = until(&mut page, "event: rows\n");
    assert!(about.contains("text/event-stream") && about.contains("\"role\":\"r\""), "{about}");
    assert!(about.contains("halcyon_views.request_latency"), "{about}");
    let rows = until(&mut page, "no SELECT permission\"}");
    assert!(rows.contains("\"may_stop\":true"), "{rows}");
    assert!(rows.contains("data: b\"}"), "the row's end of line begins a line of data: {rows}");
    let mut second = site.connect(&format!("GET /events HTTP/1.1\r\nHost: localhost{AS_R}"));
    let snapshot = until(&mut second, "\"write_latency\":{\"rows\":[{");
    assert!(snapshot.contains("\"log\":{\"error\":"), "{snapshot}");
}

/// Proves that the number of open pages is bounded, and that a closed one makes room.
#[test]
fn open_pages_are_bounded() {
    let site = Site::open(Login::Never);
    let open = || site.connect("GET /events HTTP/1.1\r\nHost: localhost");
    let mut pages: Vec<TcpStream> = (0..PAGES_MAX).map(|_| open()).collect();
    for page in &mut pages {
        until(page, "event: about\n");
    }
    let refused = site.get("/events", "");
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("too many"), "{refused}");
    pages.clear();
    // The endpoint sees a closed page when it next sends it something.
    let is_open = |_: &u32| until(&mut open(), "\r\n").starts_with("HTTP/1.1 200");
    let pause = |_: &u32| std::thread::sleep(Duration::from_millis(200));
    assert!((0..100).inspect(pause).any(|at| is_open(&at)));
}

/// Proves that only the page itself stops a compaction: not a form of another site, not a page without the header, not a wrong id.
#[test]
fn only_the_page_stops_compactions() {
    let site = Site::open(Login::Password);
    let host = site.address().to_string();
    let id = "5b6f0a10-0000-11ee-8000-000000000001";
    let post = |id: &str, more: &str| {
        let head = format!("POST /stop?id={id} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0");
        site.ask(&format!("{head}{more}"))
    };
    let own = format!("\r\nOrigin: http://{host}\r\nX-Halcyon-Page: 1");
    for (id, more, status) in [
        (id, own.clone(), "401"),
        (id, format!("{AS_R}\r\nOrigin: http://{host}"), "403"),
        (id, format!("{AS_R}\r\nX-Halcyon-Page: 1"), "403"),
        (id, format!("{AS_R}\r\nX-Halcyon-Page: 1\r\nOrigin: http://example.com"), "403"),
        (id, format!("{AS_R}{own}\r\nSec-Fetch-Site: cross-site"), "403"),
        ("1' OR", format!("{AS_R}{own}"), "400"),
        ("1", format!("{AS_R}{own}"), "400"),
    ] {
        let answer = post(id, &more);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{id} {more}: {answer}");
    }
    assert!(site.console.stopped.lock().is_empty());
    let answer = post(id, &format!("{AS_R}{own}\r\nSec-Fetch-Site: same-origin"));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let visitor = Visitor::Role { name: "r".to_owned(), address: Ipv4Addr::LOCALHOST.into() };
    assert_eq!(*site.console.stopped.lock(), [(visitor, id.to_owned())]);
    let preflight = site.ask(&format!("OPTIONS /stop HTTP/1.1\r\nHost: {host}"));
    assert!(preflight.starts_with("HTTP/1.1 405"), "{preflight}");
}
