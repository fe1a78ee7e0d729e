//! Accepts client connections.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_rustls::TlsAcceptor;

use super::serve::serve;
use crate::server::disconnect::DisconnectReason;
use crate::server::limits::client_budget::ConnectionSlot;
use crate::server::net::socket::Socket;
use crate::server::session::Session;
use crate::server::shared::Shared;

/// Pause after a failed accept, probably for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Accepts clients until `stop`, then waits until all clients are disconnected.
pub(in crate::server) async fn clients(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    shared: Arc<Shared>,
    mut stop: watch::Receiver<bool>,
) {
    let mut tasks = JoinSet::new();
    while let Some(accepted) = accept(&listener, &mut stop).await {
        // Otherwise the set would keep every past connection.
        while tasks.try_join_next().is_some() {}
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("Cannot accept an Electrum connection: {error}");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        match shared.accounts.connect(peer.ip()) {
            Ok(slot) => {
                shared.metrics.accepted();
                let client = Client { stream, peer, slot: Arc::new(slot), stop: stop.clone() };
                let (shared, tls) = (Arc::clone(&shared), tls.clone());
                tasks.spawn(client.serve(shared, tls));
            }
            Err(error) => {
                shared.metrics.turned_away();
                tracing::debug!("Turned {peer} away: {error}");
            }
        }
    }
    while tasks.join_next().await.is_some() {}
}

/// The next connection; `None` after `stop`.
async fn accept(
    listener: &TcpListener,
    stop: &mut watch::Receiver<bool>,
) -> Option<io::Result<(TcpStream, SocketAddr)>> {
    tokio::select! {
        accepted = listener.accept() => Some(accepted),
        _ = stop.wait_for(|stop| *stop) => None,
    }
}

struct Client {
    stream: TcpStream,
    peer: SocketAddr,
    slot: Arc<ConnectionSlot>,
    stop: watch::Receiver<bool>,
}

impl Client {
    async fn serve(self, shared: Arc<Shared>, tls: Option<TlsAcceptor>) {
        let Self { stream, peer, slot, stop } = self;
        let deadline = Instant::now() + shared.config.limits.first_request;
        // Responses are small and clients wait for each: Nagle's algorithm would only add latency.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!("Cannot set TCP_NODELAY for {peer}: {error}");
        }
        let stream = Socket::new(stream);
        let session = Arc::new(Session::new(&shared, peer, Arc::clone(&slot)));
        let Some(tls) = tls else {
            serve(stream, session, shared, deadline, stop).await;
            drop(slot);
            return;
        };
        let handshake = async {
            let _turn = slot.account().handshakes.acquire().await;
            tls.accept(stream).await
        };
        match timeout_at(deadline, handshake).await {
            Ok(Ok(stream)) => serve(stream, session, shared, deadline, stop).await,
            Ok(Err(error)) => {
                tracing::debug!("No TLS with {peer}: {error}");
                shared.metrics.ended(DisconnectReason::Handshake);
            }
            Err(_) => shared.metrics.ended(DisconnectReason::NoRequest),
        }
        drop(slot);
    }
}
