//! Parts of every answer.

use std::convert::Infallible;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{ACCEPT_ENCODING, CONTENT_TYPE, HeaderName};
use hyper::{Request, Response, StatusCode};

pub(crate) type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

pub(crate) fn takes_gzip(request: &Request<Incoming>) -> bool {
    header(request, ACCEPT_ENCODING).split(',').any(|coding| coding.trim() == "gzip")
}

pub(crate) fn gzip(parts: &[impl AsRef<[u8]>]) -> std::io::Result<Vec<u8>> {
    let length: usize = parts.iter().map(|part| part.as_ref().len()).sum();
    let mut encoder = GzEncoder::new(Vec::with_capacity(length / 8), Compression::fast());
    parts.iter().try_for_each(|part| encoder.write_all(part.as_ref()))?;
    encoder.finish()
}

/// A body in parts, which are not copied.
pub(crate) fn parts(texts: Vec<String>) -> UnsyncBoxBody<Bytes, Infallible> {
    let frames = texts.into_iter().map(|text| Ok(Frame::data(Bytes::from(text))));
    StreamBody::new(futures_util::stream::iter(frames)).boxed_unsync()
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
