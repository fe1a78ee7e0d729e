//! Sockets that can move between runtimes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// A connected socket; I/O works only while it is registered with a runtime.
#[derive(Debug)]
pub(super) struct Socket(Place);

#[derive(Debug)]
enum Place {
    /// Registered with a runtime.
    With(TcpStream),
    /// Registered with none.
    Between(std::net::TcpStream),
    Lost,
}

impl Socket {
    /// A socket registered with the runtime that accepted it.
    pub(super) fn new(stream: TcpStream) -> Self {
        Self(Place::With(stream))
    }

    /// Deregisters it from its runtime.
    pub(super) fn part(&mut self) -> io::Result<()> {
        if let Place::With(stream) = std::mem::replace(&mut self.0, Place::Lost) {
            self.0 = Place::Between(stream.into_std()?);
        }
        Ok(())
    }

    /// Registers it with the current runtime.
    pub(super) fn join(&mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.0, Place::Lost) {
            Place::Between(stream) => self.0 = Place::With(TcpStream::from_std(stream)?),
            Place::With(stream) => self.0 = Place::With(stream),
            Place::Lost => return Err(lost()),
        }
        Ok(())
    }

    fn poll<T>(
        &mut self,
        poll: impl FnOnce(Pin<&mut TcpStream>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match &mut self.0 {
            Place::With(stream) => poll(Pin::new(stream)),
            Place::Between(_) | Place::Lost => Poll::Ready(Err(lost())),
        }
    }
}

fn lost() -> io::Error {
    io::ErrorKind::NotConnected.into()
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll(|stream| stream.poll_read(cx, buffer))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll(|stream| stream.poll_write(cx, bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(|stream| stream.poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(|stream| stream.poll_shutdown(cx))
    }
}

pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    fn socket(&mut self) -> &mut Socket;
}

impl Stream for Socket {
    fn socket(&mut self) -> &mut Socket {
        self
    }
}

impl Stream for TlsStream<Socket> {
    fn socket(&mut self) -> &mut Socket {
        self.get_mut().0
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn socket_moves_with_received_bytes() {
        let runtimes = [1, 2].map(|_| Builder::new_current_thread().enable_all().build().unwrap());
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        peer.set_nonblocking(true).unwrap();
        let (stream, _) = listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        let mut socket = Socket(Place::Between(stream));
        let mut byte = [0];
        for (number, runtime) in (0..6).zip(runtimes.iter().cycle()) {
            runtime.block_on(async {
                let mut peer = TcpStream::from_std(peer.try_clone().unwrap()).unwrap();
                assert!(socket.read(&mut byte).await.is_err());
                peer.write_all(&[number]).await.unwrap();
                socket.join().unwrap();
                socket.read_exact(&mut byte).await.unwrap();
                assert_eq!(byte, [number]);
                socket.write_all(&[number + 100]).await.unwrap();
                peer.read_exact(&mut byte).await.unwrap();
                assert_eq!(byte, [number + 100]);
                socket.part().unwrap();
            });
        }
    }
}
