//! Black-box client of Electrum servers: connection, tip watch, and comparison of responses with the chain.
//!
//! The protocol is one JSON object per line over TCP. Assay's server is queried like any other. A connection blocks; requests may
//! be pipelined ([`Client::send`], [`Client::flush`], [`Client::receive`]). Responses carry the request id and may arrive out of
//! order. Notifications between responses are queued.

pub mod check;
pub mod expected;
pub(crate) mod watch;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// Longest accepted line; a history of a million transactions takes about 100 MB.
const LINE_BYTES_MAX: u64 = 1 << 30;
/// Maximum number of queued notifications; the oldest are dropped.
const NOTIFICATIONS_MAX: usize = 100_000;
/// Offered protocol versions.
const VERSIONS: [&str; 2] = ["1.4", "1.6"];

#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
    timeout: Duration,
    last_id: u64,
    out: Vec<u8>,
    // An incomplete line survives a time-out.
    line: Vec<u8>,
    notifications: VecDeque<Notification>,
}

#[derive(Debug)]
pub struct Reply {
    pub id: u64,
    /// Result as JSON text, or error code and message.
    pub result: Result<Box<RawValue>, (i64, String)>,
}

#[derive(Debug)]
pub(crate) struct Notification {
    pub(crate) method: String,
    pub(crate) params: Box<RawValue>,
}

/// A header as in `blockchain.headers.subscribe`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct HeaderTip {
    pub hex: String,
    pub height: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ServerName {
    pub software: String,
    pub protocol: String,
}

#[derive(Debug, thiserror::Error)]
pub enum ElectrumError {
    #[error("cannot connect to {address}")]
    Connect { address: SocketAddr, source: io::Error },
    #[error("the connection broke while {doing}")]
    Broken { doing: &'static str, source: io::Error },
    #[error("the server closed the connection while {doing}")]
    Closed { doing: &'static str },
    #[error("no answer within {seconds} s while {doing}")]
    Timeout { doing: &'static str, seconds: u64 },
    #[error("a line of more than {max} bytes")]
    Oversized { max: u64 },
    #[error("not a message of the protocol: {excerpt:?}")]
    Malformed { excerpt: String, source: serde_json::Error },
    #[error("{method}: error {code}: {message}")]
    Refused { method: String, code: i64, message: String },
    #[error("{method}: unexpected result")]
    Result { method: String, source: serde_json::Error },
    #[error("an answer to request {id}, which was not asked")]
    Unasked { id: u64 },
}

#[derive(Debug, Deserialize)]
pub(crate) struct Message<'a> {
    pub(crate) id: Option<u64>,
    #[serde(borrow)]
    pub(crate) result: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) params: Option<&'a RawValue>,
}

impl Message<'_> {
    pub(crate) fn result_text(&self) -> &str {
        self.result.map_or("null", RawValue::get)
    }

    /// Code and message of the error; some servers older than JSON-RPC 2.0 send a text alone.
    pub(crate) fn error(&self) -> Option<(i64, String)> {
        let text = self.error?.get();
        let error: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        let code = error["code"].as_i64().unwrap_or_default();
        let message = error["message"].as_str().or_else(|| error.as_str()).unwrap_or(text);
        Some((code, message.to_owned()))
    }
}

impl Client {
    /// Connects; `timeout` limits the connection attempt and each wait for a response.
    ///
    /// # Errors
    /// When the connection fails.
    pub fn connect(address: SocketAddr, timeout: Duration) -> Result<Self, ElectrumError> {
        let fail = |source| ElectrumError::Connect { address, source };
        let stream = TcpStream::connect_timeout(&address, timeout).map_err(fail)?;
        Self::over(stream, timeout).map_err(fail)
    }

    /// Uses a connection; `timeout` limits each wait for a response.
    pub(crate) fn over(stream: TcpStream, timeout: Duration) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(timeout))?;
        let reader = BufReader::with_capacity(1 << 16, stream.try_clone()?);
        Ok(Self {
            stream,
            reader,
            timeout,
            last_id: 0,
            out: Vec::new(),
            line: Vec::new(),
            notifications: VecDeque::new(),
        })
    }

    /// Negotiates the version; must be the first request.
    ///
    /// # Errors
    /// When the server supports none of the versions, or the exchange fails.
    pub fn hello(&mut self) -> Result<ServerName, ElectrumError> {
        let [low, high] = VERSIONS;
        let params = format!(r#"["assay-lab",["{low}","{high}"]]"#);
        let (software, protocol) = self.call("server.version", &params)?;
        Ok(ServerName { software, protocol })
    }

    /// Subscribes to headers and returns the server's tip.
    ///
    /// # Errors
    /// When the exchange fails.
    pub fn subscribe_headers(&mut self) -> Result<HeaderTip, ElectrumError> {
        self.call("blockchain.headers.subscribe", "[]")
    }

    /// Sends one request and waits for its response; `params` is a JSON array.
    ///
    /// # Errors
    /// When the exchange fails, the server rejects the request, or the result has another type.
    pub fn call<T: DeserializeOwned>(
        &mut self,
        method: &str,
        params: &str,
    ) -> Result<T, ElectrumError> {
        let id = self.send(method, params);
        self.flush()?;
        let reply = self.receive()?;
        if reply.id != id {
            return Err(ElectrumError::Unasked { id: reply.id });
        }
        let result = reply.result.map_err(|(code, message)| ElectrumError::Refused {
            method: method.to_owned(),
            code,
            message,
        })?;
        serde_json::from_str(result.get())
            .map_err(|source| ElectrumError::Result { method: method.to_owned(), source })
    }

    /// Queues a request for the next [`Client::flush`]; returns its id.
    pub fn send(&mut self, method: &str, params: &str) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        let mut line = String::with_capacity(method.len() + params.len() + 64);
        // Writing to a string cannot fail.
        let _ = writeln!(
            line,
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
        );
        self.out.extend_from_slice(line.as_bytes());
        id
    }

    /// Sends the queued requests.
    ///
    /// # Errors
    /// When the connection breaks.
    pub fn flush(&mut self) -> Result<(), ElectrumError> {
        let doing = "sending requests";
        let sent = self.stream.write_all(&self.out);
        self.out.clear();
        match sent {
            Err(error) if is_timeout(&error) => Err(self.timed_out(doing)),
            Err(source) => Err(ElectrumError::Broken { doing, source }),
            Ok(()) => Ok(()),
        }
    }

    /// Returns the next response to any request and queues notifications before it.
    ///
    /// # Errors
    /// When none arrives in time, the connection breaks, or the line is malformed.
    pub fn receive(&mut self) -> Result<Reply, ElectrumError> {
        let doing = "waiting for an answer";
        let deadline = Instant::now() + self.timeout;
        loop {
            match self.next_message(deadline, doing)? {
                Some(Incoming::Reply(reply)) => return Ok(reply),
                Some(Incoming::Notification(notification)) => {
                    self.notifications.push_back(notification);
                    if self.notifications.len() > NOTIFICATIONS_MAX {
                        self.notifications.pop_front();
                    }
                }
                None => return Err(self.timed_out(doing)),
            }
        }
    }

    /// Returns the next notification, or `None` after `wait`. Only valid while no response is due.
    pub(crate) fn notification(
        &mut self,
        wait: Duration,
    ) -> Result<Option<Notification>, ElectrumError> {
        if let Some(notification) = self.notifications.pop_front() {
            return Ok(Some(notification));
        }
        match self.next_message(Instant::now() + wait, "waiting for a notification")? {
            Some(Incoming::Notification(notification)) => Ok(Some(notification)),
            Some(Incoming::Reply(reply)) => Err(ElectrumError::Unasked { id: reply.id }),
            None => Ok(None),
        }
    }

    fn timed_out(&self, doing: &'static str) -> ElectrumError {
        ElectrumError::Timeout { doing, seconds: self.timeout.as_secs() }
    }

    /// Reads the next line; `None` if the deadline passes first.
    fn next_message(
        &mut self,
        deadline: Instant,
        doing: &'static str,
    ) -> Result<Option<Incoming>, ElectrumError> {
        let broken = |source| ElectrumError::Broken { doing, source };
        while self.line.last() != Some(&b'\n') {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.stream.set_read_timeout(Some(left)).map_err(broken)?;
            let room = LINE_BYTES_MAX.saturating_sub(self.line.len() as u64);
            if room == 0 {
                return Err(ElectrumError::Oversized { max: LINE_BYTES_MAX });
            }
            match self.reader.by_ref().take(room).read_until(b'\n', &mut self.line) {
                Ok(0) => return Err(ElectrumError::Closed { doing }),
                Ok(_) => {}
                Err(error) if is_timeout(&error) => return Ok(None),
                Err(source) => return Err(broken(source)),
            }
        }
        let message = read_message(&self.line);
        self.line.clear();
        // Release the memory of a very large response.
        self.line.shrink_to(1 << 20);
        message.map(Some)
    }
}

enum Incoming {
    Reply(Reply),
    Notification(Notification),
}

fn read_message(line: &[u8]) -> Result<Incoming, ElectrumError> {
    let malformed = |source| {
        let excerpt = String::from_utf8_lossy(&line[..line.len().min(120)]).trim().to_owned();
        ElectrumError::Malformed { excerpt, source }
    };
    let message: Message<'_> = serde_json::from_slice(line).map_err(malformed)?;
    let custom = |what: &str| malformed(<serde_json::Error as serde::de::Error>::custom(what));
    match (message.id, &message.method, message.error()) {
        (None, Some(method), _) => {
            let params = message.params.ok_or_else(|| custom("a notification without params"))?;
            let (method, params) = (method.to_string(), params.to_owned());
            Ok(Incoming::Notification(Notification { method, params }))
        }
        (Some(id), None, Some(error)) => Ok(Incoming::Reply(Reply { id, result: Err(error) })),
        (Some(id), None, None) => {
            let result = Ok(message.result.map_or_else(null, RawValue::to_owned));
            Ok(Incoming::Reply(Reply { id, result }))
        }
        // An error without a request id: the server did not understand a line.
        (None, None, Some((code, message))) => {
            Err(ElectrumError::Refused { method: "a request".to_owned(), code, message })
        }
        _ => Err(custom("neither answer nor notification")),
    }
}

fn null() -> Box<RawValue> {
    RawValue::from_string("null".to_owned()).expect("null is JSON")
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    /// A server that reads `requests` lines and then writes `answers` piece by piece.
    fn served(requests: usize, answers: Vec<&'static str>) -> Client {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut lines = BufReader::new(stream.try_clone().expect("a socket")).lines();
            for _ in 0..requests {
                lines.next().expect("a line").expect("readable");
            }
            for answer in answers {
                stream.write_all(answer.as_bytes()).expect("the client reads");
                thread::sleep(Duration::from_millis(20));
            }
            // Open until the client disconnects.
            while let Some(Ok(_)) = lines.next() {}
        });
        Client::connect(address, Duration::from_secs(5)).expect("it listens")
    }

    #[test]
    fn answers_come_in_pieces_and_between_notifications() {
        let mut client = served(
            1,
            vec![
                "{\"jsonrpc\":\"2.0\",\"method\":\"blockchain.headers.subscribe\",\"params\":[{\"hex\":\"aa\",\"height\":7}]}\n{\"id\":1,\"re",
                "sult\":[\"Server 1\",\"1.4\"]}\n",
            ],
        );
        let name = client.hello().expect("an answer");
        assert_eq!((name.software.as_str(), name.protocol.as_str()), ("Server 1", "1.4"));
        let kept = client.notification(Duration::from_secs(1)).expect("no fault").expect("kept");
        assert_eq!(kept.method, "blockchain.headers.subscribe");
        let [tip]: [HeaderTip; 1] = serde_json::from_str(kept.params.get()).expect("a header");
        assert_eq!(tip, HeaderTip { hex: "aa".to_owned(), height: 7 });
        let none = client.notification(Duration::from_millis(10)).expect("no fault");
        assert!(none.is_none());
    }

    #[test]
    fn answers_may_overtake_each_other() {
        let mut client = served(2, vec!["{\"id\":2,\"result\":2}\n{\"id\":1,\"result\":null}\n"]);
        assert_eq!((client.send("a", "[]"), client.send("b", "[]")), (1, 2));
        client.flush().expect("sent");
        let (first, second) = (client.receive().expect("one"), client.receive().expect("two"));
        assert_eq!((first.id, second.id), (2, 1));
        assert_eq!(second.result.expect("no error").get(), "null");
    }

    #[test]
    fn distinguishes_failures() {
        let mut client = served(
            1,
            vec!["{\"id\":1,\"error\":{\"code\":-32601,\"message\":\"unknown method\"}}\n"],
        );
        let error = client.call::<u32>("no.such", "[]").expect_err("refused");
        assert_eq!(error.to_string(), "no.such: error -32601: unknown method");

        let mut client = served(1, vec!["{\"id\":1,\"result\":\"text\"}\n"]);
        let error = client.call::<u32>("x", "[]").expect_err("not a number");
        assert!(matches!(error, ElectrumError::Result { .. }), "{error}");

        let mut client = served(1, vec!["<html>\n"]);
        let error = client.call::<u32>("x", "[]").expect_err("no JSON");
        assert!(error.to_string().contains("<html>"), "{error}");

        let mut client = served(0, vec![]);
        client.timeout = Duration::from_millis(30);
        let error = client.call::<u32>("x", "[]").expect_err("silence");
        assert!(matches!(error, ElectrumError::Timeout { .. }), "{error}");

        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let mut client = Client::connect(address, Duration::from_secs(5)).expect("it listens");
        drop(listener.accept().expect("a client"));
        let error = client.call::<u32>("x", "[]").expect_err("closed");
        let is_end = matches!(error, ElectrumError::Closed { .. } | ElectrumError::Broken { .. });
        assert!(is_end, "{error}");
        drop(listener);
        let error = Client::connect(address, Duration::from_secs(1)).expect_err("nobody");
        assert!(matches!(error, ElectrumError::Connect { .. }), "{error}");
    }
}
