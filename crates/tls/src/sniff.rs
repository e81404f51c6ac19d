//! Whether a client begins with TLS: the port of `optional: true` takes both.

/// Bytes that decide it (`OptionalSslHandler`).
pub const SNIFFED: usize = 5;

/// Whether the first [`SNIFFED`] bytes are the header of a TLS record: its type, version 3.x and a length. A frame of CQL begins with its
/// version, which is at most 6. SSLv2's header does not count: a server of TLS 1.2 does not answer it.
pub fn is_tls(header: [u8; SNIFFED]) -> bool {
    let [kind, major, _, length @ ..] = header;
    (20..=24).contains(&kind) && major == 3 && u16::from_be_bytes(length) > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the first bytes of each protocol version differ from those of a ClientHello.
    #[test]
    fn frames_are_told_from_records() {
        assert!(is_tls([0x16, 3, 1, 2, 0]));
        assert!(is_tls([0x16, 3, 3, 0, 80]));
        assert!(is_tls([0x15, 3, 3, 0, 2]));
        for version in 1..=6 {
            assert!(!is_tls([version, 0, 0, 0, 5]));
            assert!(!is_tls([version, 3, 3, 3, 3]));
        }
        assert!(!is_tls([0x80, 0x2e, 1, 3, 1]));
        assert!(!is_tls(*b"GET /"));
    }
}
