//! Minimal HTTP/1.1 client over a real socket, for assertions on the wire format.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use base64::Engine as _;
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) reason: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("answers are UTF-8")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the answer is JSON")
    }
}

pub(crate) struct Client {
    stream: BufReader<TcpStream>,
    authorization: String,
}

/// Connects from another local address: any of 127.0.0.0/8 on Linux.
pub(crate) fn connect_from(source: [u8; 4], address: SocketAddr) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let stream = runtime.expect("a runtime").block_on(async {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.bind((source, 0).into())?;
        socket.connect(address).await?.into_std()
    });
    let stream = stream.expect("the server listens");
    stream.set_nonblocking(false).expect("a socket option");
    stream
}

impl Client {
    pub(crate) fn connect(address: SocketAddr, credentials: &str) -> Self {
        Self::over(TcpStream::connect(address).expect("the server listens"), credentials)
    }

    pub(crate) fn over(stream: TcpStream, credentials: &str) -> Self {
        stream.set_nodelay(true).expect("a socket option");
        stream.set_read_timeout(Some(Duration::from_mins(1))).expect("a socket option");
        let encoded = base64::engine::general_purpose::STANDARD.encode(credentials);
        Self { stream: BufReader::new(stream), authorization: format!("Basic {encoded}") }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    pub(crate) fn post(&mut self, body: &str) -> Answer {
        self.request("POST", "/", body.as_bytes())
    }

    pub(crate) fn request(&mut self, method: &str, path: &str, body: &[u8]) -> Answer {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: test\r\nauthorization: {}\r\ncontent-length: {}\r\n\r\n",
            self.authorization,
            body.len()
        );
        self.send(head.as_bytes()).expect("the server reads");
        self.send(body).expect("the server reads");
        self.answer().expect("the server answers")
    }

    /// Calls a method; returns its result, or the error object.
    pub(crate) fn call(&mut self, method: &str, params: &str) -> Result<Value, Value> {
        let answer = self
            .post(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#));
        assert_eq!(answer.status, 200, "{}", answer.text());
        let mut reply = answer.json();
        match reply.get_mut("error") {
            Some(error) => Err(error.take()),
            None => Ok(reply["result"].take()),
        }
    }

    /// Reads one response; `None` when the server has closed the connection.
    pub(crate) fn answer(&mut self) -> Option<Answer> {
        let mut line = String::new();
        if self.stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let (_, status) = line.trim_end().split_once(' ')?;
        let (status, reason) = status.split_once(' ')?;
        let (status, reason) = (status.parse().ok()?, reason.to_owned());
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).ok()?;
            match line.trim_end().split_once(": ") {
                Some((key, value)) => headers.push((key.to_owned(), value.to_owned())),
                None => break,
            }
        }
        let mut answer = Answer { status, reason, headers, body: Vec::new() };
        let length = answer.header("content-length").map_or(0, |text| text.parse().unwrap_or(0));
        answer.body.resize(length, 0);
        self.stream.read_exact(&mut answer.body).ok()?;
        Some(answer)
    }

    /// True if the server has closed the connection.
    pub(crate) fn is_closed(&mut self) -> bool {
        let mut byte = [0];
        matches!(self.stream.read(&mut byte), Ok(0) | Err(_))
    }

    pub(crate) fn authorization(&self) -> &str {
        &self.authorization
    }
}
