//! What each path is answered with.

use std::net::{Ipv4Addr, Ipv6Addr};

use hyper::body::Incoming;
use hyper::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HOST, VARY};
use hyper::{Method, Request, Response, StatusCode};

use super::site::{From, Site};
use crate::exposition::{Format, Names, render};
use crate::page;
use crate::response::{Answer, gzip, header, parts, takes_gzip, text, whole};
use crate::watched::Watched;

pub(super) async fn to(request: &Request<Incoming>, site: &Site, from: From) -> Answer {
    let path = request.uri().path();
    let is_page = page::has(path);
    let is_button = path == "/stop" && *request.method() == Method::POST;
    if !matches!(*request.method(), Method::GET | Method::HEAD) && !is_button {
        let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered\n");
        answer.headers_mut().insert(ALLOW, hyper::header::HeaderValue::from_static("GET, HEAD"));
        return answer;
    }
    // A page of another host may be shown by a browser on this machine, under a name that leads here.
    let mut hosts = request.headers().get_all(HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok()).unwrap_or_default();
    let has_one = hosts.next().is_none() && request.uri().authority().is_none();
    let must_be_local = site.is_local || (is_page && from.is_local);
    if must_be_local && !(has_one && names_loopback(host)) {
        return text(
            StatusCode::MISDIRECTED_REQUEST,
            "the host of a request is localhost or its address, unless metrics_address is another\n",
        );
    }
    let watched = &*site.watched;
    match path {
        "/metrics" => metrics(request, watched),
        "/health" => text(StatusCode::OK, "the process runs\n"),
        "/ready" => match watched.not_ready() {
            None => text(StatusCode::OK, "clients can connect\n"),
            Some(why) => text(StatusCode::SERVICE_UNAVAILABLE, &format!("{why}\n")),
        },
        _ if is_page => site.page.answer(request, watched, (from.peer, from.is_local)).await,
        _ => text(StatusCode::NOT_FOUND, "there is /, /metrics, /health and /ready\n"),
    }
}

fn metrics(request: &Request<Incoming>, watched: &Watched) -> Answer {
    let names = match names(request.uri().query().unwrap_or_default(), watched.names()) {
        Ok(names) => names,
        Err(why) => return text(StatusCode::BAD_REQUEST, &format!("{why}\n")),
    };
    let Some((registry, place)) = watched.registry() else {
        let why = watched.not_ready().unwrap_or("the node has no metrics yet");
        return text(StatusCode::SERVICE_UNAVAILABLE, &format!("{why}\n"));
    };
    let format = Format::accepted(header(request, ACCEPT));
    let shown = render(registry, names, place, format);
    let answer = Response::builder()
        .header(CONTENT_TYPE, format.content_type())
        .header(CACHE_CONTROL, "no-store")
        .header(VARY, "accept, accept-encoding");
    let compressed = takes_gzip(request).then(|| gzip(&shown));
    let answer = match compressed {
        Some(Ok(bytes)) => answer.header(CONTENT_ENCODING, "gzip").body(whole(bytes)),
        _ => answer.body(parts(shown)),
    };
    answer.unwrap_or_else(|_| {
        text(StatusCode::INTERNAL_SERVER_ERROR, "the answer could not be built\n")
    })
}

/// The naming scheme that the parameter `names` chooses, else the node's own. The last one counts; others are ignored.
fn names(query: &str, default: Names) -> Result<Names, String> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let chosen = pairs.rev().find(|(parameter, _)| *parameter == "names");
    chosen.map_or(Ok(default), |(_, name)| name.parse())
}

/// Whether a `Host` is an address of the loopback device, or its name; with or without a port.
fn names_loopback(host: &str) -> bool {
    let is_port = |port: &str| {
        port.is_empty() || port.strip_prefix(':').is_some_and(|of| of.parse::<u16>().is_ok())
    };
    if let Some(rest) = host.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else { return false };
        return is_port(port) && address.parse::<Ipv6Addr>().is_ok_and(|of| of.is_loopback());
    }
    let (name, port) = host.split_at(host.find(':').unwrap_or(host.len()));
    let is_name = name.eq_ignore_ascii_case("localhost")
        || name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback());
    is_port(port) && is_name
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a request chooses names, and that unknown ones are answered with those that are known.
    #[test]
    fn names_are_chosen() {
        let chosen = |query| names(query, Names::JmxExporter);
        assert_eq!(chosen(""), Ok(Names::JmxExporter));
        assert_eq!(chosen("names=management-api"), Ok(Names::ManagementApi));
        assert_eq!(chosen("x=1&names=criteo&names=otel"), Ok(Names::OpenTelemetry));
        let error = "unknown names 'mcac'; expected one of jmx_exporter, management-api, instaclustr, criteo, otel";
        assert_eq!(chosen("names=mcac"), Err(error.to_owned()));
    }

    /// Proves that only this machine's own names are taken for it.
    #[test]
    fn hosts() {
        for host in
            ["localhost", "LOCALHOST:9103", "127.0.0.1:9103", "127.1.2.3", "[::1]:9103", "[::1]"]
        {
            assert!(names_loopback(host), "{host}");
        }
        for host in [
            "localhost:evil",
            "[localhost]",
            "[::1]evil",
            "[::1",
            "127.0.0.1:99999",
            "",
            "example.com",
            "localhost.example.com:9103",
            "10.0.0.1",
            "[::2]:80",
            ":80",
        ] {
            assert!(!names_loopback(host), "{host}");
        }
    }
}
