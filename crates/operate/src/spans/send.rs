//! One message over HTTP or HTTPS.

use std::fmt;
use std::sync::Arc;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, rustls};

/// The path of traces (OTLP/HTTP).
const PATH: &str = "/v1/traces";

/// Where spans are sent.
pub struct Collector {
    uri: Uri,
    host: String,
    port: u16,
    /// `None`: without TLS.
    tls: Option<Arc<rustls::ClientConfig>>,
}

impl fmt::Display for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.uri.fmt(f)
    }
}

impl Collector {
    /// `http://host:port` or `https://host:port`; without a path, that of the specification.
    ///
    /// # Errors
    /// If the text does not have this form.
    pub fn parse(text: &str, tls: Option<&halcyon_tls::Client>) -> Result<Collector, String> {
        let wrong = || {
            format!(
                "`{text}` is not the address of a collector; expected http://HOST:PORT or https://HOST:PORT"
            )
        };
        let uri: Uri = text.parse().map_err(|_| wrong())?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(wrong());
        };
        let (usual, is_encrypted) = match scheme {
            "http" => (80, false),
            "https" => (443, true),
            _ => return Err(wrong()),
        };
        let (host, port) = (authority.host().to_owned(), authority.port_u16().unwrap_or(usual));
        let tls = match (is_encrypted, tls) {
            (false, _) => None,
            (true, Some(tls)) => Some(tls.config()),
            (true, None) => {
                return Err(format!(
                    "{text}: set tracing_otlp_truststore to the certificates that the collector's is trusted by"
                ));
            }
        };
        let path = match uri.path() {
            "/" => PATH,
            path => path,
        };
        let whole = format!("{scheme}://{authority}{path}").parse().map_err(|_| wrong())?;
        Ok(Collector { uri: whole, host, port, tls })
    }

    pub(super) async fn post(&self, body: Vec<u8>) -> Result<(), String> {
        let bare = self.host.trim_start_matches('[').trim_end_matches(']');
        let stream = TcpStream::connect((bare, self.port)).await.map_err(|e| e.to_string())?;
        match &self.tls {
            None => self.post_on(stream, body).await,
            Some(config) => {
                let name = halcyon_tls::server_name(bare).map_err(|e| e.to_string())?;
                let connector = TlsConnector::from(config.clone());
                let stream = connector.connect(name, stream).await.map_err(|e| e.to_string())?;
                self.post_on(stream, body).await
            }
        }
    }

    async fn post_on(
        &self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        body: Vec<u8>,
    ) -> Result<(), String> {
        let opened = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = opened.map_err(|e| e.to_string())?;
        let driven = tokio::spawn(connection);
        let host = self.uri.authority().map_or("", |authority| authority.as_str());
        let request = Request::post(self.uri.path())
            .header("host", host)
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(|e| e.to_string())?;
        let answer = sender.send_request(request).await.map_err(|e| e.to_string());
        driven.abort();
        let status = answer?.status();
        if status.is_success() { Ok(()) } else { Err(format!("the collector answers {status}")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which addresses are taken, and that the path of the specification is added where there is none.
    #[test]
    fn addresses_are_checked() {
        let shown =
            |text: &str| Collector::parse(text, None).map(|collector| collector.to_string());
        assert_eq!(shown("http://localhost:4318").unwrap(), "http://localhost:4318/v1/traces");
        assert_eq!(shown("http://[::1]:4318/x/y").unwrap(), "http://[::1]:4318/x/y");
        for wrong in ["localhost:4318", "/v1/traces", "ftp://a", "http://", ""] {
            assert!(
                shown(wrong).unwrap_err().contains("is not the address of a collector"),
                "{wrong}"
            );
        }
        assert!(shown("https://localhost").unwrap_err().contains("tracing_otlp_truststore"));
    }
}
