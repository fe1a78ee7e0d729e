//! TLS certificates and keys.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig, crypto};

use super::config::{Certificate, Config};

const CERTIFICATE_FILE: &str = "electrum-cert.pem";
const KEY_FILE: &str = "electrum-key.pem";

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file is missing, unreadable, or cannot be written.
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{} does not hold {what} in PEM: {source}", path.display())]
    Pem { path: PathBuf, what: &'static str, source: pem::Error },
    /// Only one of the two files exists.
    #[error("{} is missing, but its counterpart is there; remove that to have both made anew", path.display())]
    Half { path: PathBuf },
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    #[error("cannot use certificate and key: {0}")]
    Use(#[from] rustls::Error),
}

/// A TLS acceptor with the configured certificate and key, which are generated if necessary.
pub(super) fn acceptor(config: &Config) -> Result<TlsAcceptor, TlsError> {
    let (certificate, key) = match &config.certificate {
        Certificate::Files { certificate, key } => (certificate.clone(), key.clone()),
        Certificate::Own { directory } => own(directory, config)?,
    };
    let pem = |path: &Path, what| {
        let path = path.to_owned();
        move |source| match source {
            pem::Error::Io(source) => TlsError::File { path, source },
            source => TlsError::Pem { path, what, source },
        }
    };
    let certificates: Vec<_> = CertificateDer::pem_file_iter(&certificate)
        .map_err(pem(&certificate, "certificates"))?
        .collect::<Result<_, _>>()
        .map_err(pem(&certificate, "certificates"))?;
    let key = PrivateKeyDer::from_pem_file(&key).map_err(pem(&key, "a private key"))?;
    let provider = Arc::new(crypto::ring::default_provider());
    let server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(certificates, key)?;
    Ok(TlsAcceptor::from(Arc::new(server)))
}

/// The server's own files, generated at the first start. Clients pin the certificate, so it is kept and does not expire.
fn own(directory: &Path, config: &Config) -> Result<(PathBuf, PathBuf), TlsError> {
    let certificate = directory.join(CERTIFICATE_FILE);
    let key = directory.join(KEY_FILE);
    match (certificate.exists(), key.exists()) {
        (true, true) => return Ok((certificate, key)),
        (true, false) => return Err(TlsError::Half { path: key }),
        (false, true) => return Err(TlsError::Half { path: certificate }),
        (false, false) => {}
    }
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    names.extend(config.hosts.iter().map(|host| host.name.clone()));
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "assay electrum");
    let pair = KeyPair::generate()?;
    let made = params.self_signed(&pair)?;
    // The key first: a certificate without its key is useless.
    write(&key, 0o600, pair.serialize_pem().as_bytes())?;
    write(&certificate, 0o644, made.pem().as_bytes())?;
    tracing::info!("Made a TLS certificate: {}", certificate.display());
    Ok((certificate, key))
}

fn write(path: &Path, mode: u32, text: &[u8]) -> Result<(), TlsError> {
    let temporary = path.with_extension("pem.new");
    let written = || -> io::Result<()> {
        match std::fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary)?;
        file.write_all(text)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)?;
        File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
    };
    written().map_err(|source| TlsError::File { path: path.to_owned(), source })
}
