//! TLS of the commands that ask a server. The options are named as those of Cassandra's `sstableloader`.

use std::path::{Path, PathBuf};

use clap::Args;
use halcyon_io::Disk;
use halcyon_tls::{Client, ClientOptions, STORE_MAX, Secret};

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct EncryptionArgs {
    /// Encrypt the connection (TLS)
    #[arg(long, requires = "truststore")]
    pub(crate) ssl: bool,
    /// Certificates that the server's is trusted by: PEM, JKS or PKCS12
    #[arg(long, value_name = "FILE", requires = "ssl")]
    pub(crate) truststore: Option<PathBuf>,
    #[arg(
        long,
        value_name = "PASSWORD",
        env = "HALCYON_TRUSTSTORE_PASSWORD",
        hide_env_values = true
    )]
    pub(crate) truststore_password: Option<String>,
    /// The client's own key and certificate, for servers that require one: PEM, JKS or PKCS12
    #[arg(long, value_name = "FILE", requires = "ssl")]
    pub(crate) keystore: Option<PathBuf>,
    #[arg(
        long,
        value_name = "PASSWORD",
        env = "HALCYON_KEYSTORE_PASSWORD",
        hide_env_values = true
    )]
    pub(crate) keystore_password: Option<String>,
    /// Accept a trusted certificate that does not name the server's host
    #[arg(long, requires = "ssl")]
    pub(crate) no_hostname_verification: bool,
}

/// What connections are encrypted with; `None`: they are not. The error has the cure.
pub(crate) async fn client(disk: &Disk, args: &EncryptionArgs) -> Result<Option<Client>, String> {
    if !args.ssl {
        return Ok(None);
    }
    let Some(truststore) = &args.truststore else {
        return Err(
            "--ssl needs --truststore: the file with the certificate of the server's authority"
                .to_owned(),
        );
    };
    let secret = |text: &Option<String>| text.clone().filter(|t| !t.is_empty()).map(Secret);
    let key = match &args.keystore {
        Some(file) => Some(read(disk, file).await?),
        None => None,
    };
    let options = ClientOptions {
        trust: read(disk, truststore).await?,
        trust_password: secret(&args.truststore_password),
        key,
        key_password: secret(&args.keystore_password),
        verifies_name: !args.no_hostname_verification,
    };
    Client::build(options).map(Some).map_err(|e| e.to_string())
}

async fn read(disk: &Disk, file: &Path) -> Result<(String, Vec<u8>), String> {
    let bytes = disk.read(file, STORE_MAX).await.map_err(|e| e.to_string())?;
    Ok((file.display().to_string(), bytes))
}
