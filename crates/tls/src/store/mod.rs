//! Stores of keys and certificates: JKS and PKCS12, as the JDK's `keytool` makes them, and PEM.
//!
//! Which of Java's two formats a file has, its first bytes say: Java too reads both as either `store_type`.

mod der;
mod ec;
mod entries;
mod jks;
pub(crate) mod pem;
mod pkcs12;

pub(crate) use entries::{KeyEntry, Store, Wanted};

/// Reads a Java key store. Without a password its integrity is not checked, as in Java. An error names the defect of the store.
pub(crate) fn read(bytes: &[u8], password: Option<&str>, wanted: Wanted) -> Result<Store, String> {
    match bytes {
        [0xfe, 0xed, 0xfe, 0xed, ..] => jks::read(bytes, password, wanted),
        [0xce, 0xce, 0xce, 0xce, ..] => {
            Err("it is a JCEKS store, which is not supported".to_owned())
        }
        [b'-', b'-', b'-', b'-', b'-', ..] => {
            Err("it is PEM, which PEMBasedSslContextFactory reads".to_owned())
        }
        [0x30, ..] => match password {
            Some(password) => pkcs12::read(bytes, password),
            None => Err("a PKCS12 store is not read without its password".to_owned()),
        },
        [] => Err("it is empty".to_owned()),
        _ => Err("it is neither a JKS nor a PKCS12 store".to_owned()),
    }
}
