//! Parts of every answer.

use std::convert::Infallible;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT_ENCODING, CONTENT_TYPE, HeaderName};
use hyper::{Request, Response, StatusCode};

pub(crate) type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

pub(crate) fn takes_gzip(request: &Request<Incoming>) -> bool {
    header(request, ACCEPT_ENCODING).split(',').any(|coding| coding.trim() == "gzip")
}

pub(crate) fn gzip(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 8), Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}

pub(crate) fn whole(bytes: impl Into<Bytes>) -> UnsyncBoxBody<Bytes, Infallible> {
    Full::new(bytes.into()).boxed_unsync()
}

pub(crate) fn text(status: StatusCode, what: &str) -> Answer {
    let mut answer = Response::new(whole(what.to_owned()));
    *answer.status_mut() = status;
    let of_text = hyper::header::HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, of_text);
    answer
}

pub(crate) fn header(request: &Request<Incoming>, name: HeaderName) -> &str {
    request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
