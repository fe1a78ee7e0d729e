//! TLS and metrics.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, crypto};

#[cfg(target_os = "linux")]
use super::node::connect_from;
use super::node::{Client, Node, config};
use crate::server::{Certificate, Config, Limits, Server, StartError, TlsError};
use crate::testing::FakeChain;

fn any() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

fn with_tls(directory: &Path) -> Config {
    let certificate = Certificate::Own { directory: directory.to_owned() };
    Config { tls: vec![any()], certificate, ..config() }
}

/// Connects as a client that trusts `certificate` alone.
fn connect(
    address: SocketAddr,
    certificate: &Path,
) -> Client<StreamOwned<ClientConnection, TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate).unwrap()).unwrap();
    let provider = Arc::new(crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    Client::over(StreamOwned::new(connection, stream))
}

#[test]
fn a_certificate_is_made_once_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let certificate = folder.path().join("electrum-cert.pem");
    let key = folder.path().join("electrum-key.pem");
    let first = {
        let node = Node::with(with_tls(folder.path()));
        let mut client = connect(node.server.addresses().tls[0], &certificate);
        assert_eq!(client.call("server.version", &json!(["x", "1.6"]))[1], "1.6");
        let tip = client.call("blockchain.headers.subscribe", &json!([]));
        assert_eq!(tip["height"], 9);
        std::fs::read(&certificate).unwrap()
    };
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    let node = Node::with(with_tls(folder.path()));
    assert_eq!(std::fs::read(&certificate).unwrap(), first);
    let mut client = connect(node.server.addresses().tls[0], &certificate);
    client.call("server.ping", &json!([]));
    // The same files, given by name.
    let files = Certificate::Files { certificate: certificate.clone(), key };
    let node = Node::with(Config { certificate: files, ..with_tls(folder.path()) });
    connect(node.server.addresses().tls[0], &certificate).call("server.ping", &json!([]));
    // A client without TLS gets no response and affects no other client.
    let mut plain = Client::new(TcpStream::connect(node.server.addresses().tls[0]).unwrap());
    plain.send(r#"{"id":1,"method":"server.ping"}"#);
    assert!(plain.is_closed());
    connect(node.server.addresses().tls[0], &certificate).call("server.ping", &json!([]));
}

/// An address with stalled handshakes does not block other addresses.
#[test]
#[cfg(target_os = "linux")]
fn stalled_handshakes_affect_one_address() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { first_request: Duration::from_mins(10), ..Limits::default() };
    let node = Node::with(Config { limits, ..with_tls(folder.path()) });
    let tls = node.server.addresses().tls[0];
    let stalled: Vec<_> = (0..32).map(|_| connect_from([127, 0, 0, 5], tls)).collect();
    let certificate = folder.path().join("electrum-cert.pem");
    connect(tls, &certificate).call("server.ping", &json!([]));
    drop(stalled);
}

#[test]
fn rejects_unusable_certificates() {
    let folder = tempfile::tempdir().unwrap();
    let start = |config| match Server::start(config, Arc::new(FakeChain::default())) {
        Err(StartError::Tls(error)) => error,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it started"),
    };
    drop(Node::empty(with_tls(folder.path())));
    let key = folder.path().join("electrum-key.pem");
    std::fs::remove_file(&key).unwrap();
    assert!(matches!(start(with_tls(folder.path())), TlsError::Half { path } if path == key));
    std::fs::write(&key, "nothing").unwrap();
    assert!(matches!(start(with_tls(folder.path())), TlsError::Pem { path, .. } if path == key));
    let missing = folder.path().join("missing.pem");
    let files = Certificate::Files { certificate: missing.clone(), key };
    let config = Config { certificate: files, ..with_tls(folder.path()) };
    assert!(matches!(start(config), TlsError::File { path, .. } if path == missing));
}

#[test]
fn metrics_are_served() {
    let node = Node::with(Config { metrics: Some(any()), ..config() });
    let mut client = node.client_of("1.6");
    client.call("blockchain.block.header", &json!([1]));
    client.error("blockchain.block.header", &json!([100]));
    let ask = |request: &str| {
        let mut stream = TcpStream::connect(node.server.addresses().metrics.unwrap()).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    for line in [
        "assay_electrum_clients 1\n",
        "assay_electrum_index_height 9\n",
        "assay_electrum_request_seconds_count{method=\"blockchain.block.header\",since=\"1.4\"} 2\n",
        "assay_electrum_errors_total{method=\"blockchain.block.header\",since=\"1.4\"} 1\n",
        "assay_electrum_disconnections_total{reason=\"idle\"} 0\n",
    ] {
        assert!(answer.contains(line), "{line} in {answer}");
    }
    assert!(ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n").starts_with("HTTP/1.1 404"));
    assert!(ask("POST /metrics HTTP/1.1\r\nHost: x\r\n\r\n").starts_with("HTTP/1.1 405"));
    assert!(ask("nonsense\r\n\r\n").starts_with("HTTP/1.1 400"));
}
