//! Encodes requests and decodes messages of a server.

use std::borrow::Cow;
use std::fmt;
use std::io::Write as _;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::dataset::Dataset;
use super::timeline::display_hex;

/// Methods with separate counts and latencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Method {
    Version,
    Features,
    Ping,
    Tip,
    Header,
    Headers,
    EstimateFee,
    FeeHistogram,
    SubscribeBatch,
    Subscribe,
    Unsubscribe,
    History,
    Balance,
    Unspent,
    Transaction,
    Merkle,
}

impl Method {
    #[cfg(test)]
    const ALL: [Self; 16] = [
        Self::Version,
        Self::Features,
        Self::Ping,
        Self::Tip,
        Self::Header,
        Self::Headers,
        Self::EstimateFee,
        Self::FeeHistogram,
        Self::SubscribeBatch,
        Self::Subscribe,
        Self::Unsubscribe,
        Self::History,
        Self::Balance,
        Self::Unspent,
        Self::Transaction,
        Self::Merkle,
    ];

    /// Name in the protocol.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Version => "server.version",
            Self::Features => "server.features",
            Self::Ping => "server.ping",
            Self::Tip => "blockchain.headers.subscribe",
            Self::Header => "blockchain.block.header",
            Self::Headers => "blockchain.block.headers",
            Self::EstimateFee => "blockchain.estimatefee",
            Self::FeeHistogram => "mempool.get_fee_histogram",
            Self::SubscribeBatch => "batch of scripthash.subscribe",
            Self::Subscribe => "blockchain.scripthash.subscribe",
            Self::Unsubscribe => "blockchain.scripthash.unsubscribe",
            Self::History => "blockchain.scripthash.get_history",
            Self::Balance => "blockchain.scripthash.get_balance",
            Self::Unspent => "blockchain.scripthash.listunspent",
            Self::Transaction => "blockchain.transaction.get",
            Self::Merkle => "blockchain.transaction.get_merkle",
        }
    }
}

/// One request. Scripts and transactions are indices into the [`Dataset`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Ask {
    Version,
    Features,
    Ping,
    Tip,
    Header(u32),
    Headers { start: u32, count: u32 },
    EstimateFee(u32),
    FeeHistogram,
    Subscribe(u32),
    Unsubscribe(u32),
    History(u32),
    Balance(u32),
    Unspent(u32),
    Transaction(u32),
    Merkle(u32),
}

/// Method and subject: a height, an index of a script or transaction, or blocks.
impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.method().name();
        match self {
            Self::Version | Self::Features | Self::Ping | Self::Tip | Self::FeeHistogram => {
                f.write_str(name)
            }
            Self::Headers { start, count } => write!(f, "{name} {start} {count}"),
            Self::Header(of)
            | Self::EstimateFee(of)
            | Self::Subscribe(of)
            | Self::Unsubscribe(of)
            | Self::History(of)
            | Self::Balance(of)
            | Self::Unspent(of)
            | Self::Transaction(of)
            | Self::Merkle(of) => write!(f, "{name} {of}"),
        }
    }
}

impl Ask {
    pub(crate) const fn method(self) -> Method {
        match self {
            Self::Version => Method::Version,
            Self::Features => Method::Features,
            Self::Ping => Method::Ping,
            Self::Tip => Method::Tip,
            Self::Header(_) => Method::Header,
            Self::Headers { .. } => Method::Headers,
            Self::EstimateFee(_) => Method::EstimateFee,
            Self::FeeHistogram => Method::FeeHistogram,
            Self::Subscribe(_) => Method::Subscribe,
            Self::Unsubscribe(_) => Method::Unsubscribe,
            Self::History(_) => Method::History,
            Self::Balance(_) => Method::Balance,
            Self::Unspent(_) => Method::Unspent,
            Self::Transaction(_) => Method::Transaction,
            Self::Merkle(_) => Method::Merkle,
        }
    }

    /// Appends the request without a newline.
    pub(crate) fn write(self, id: u64, dataset: &Dataset, out: &mut Vec<u8>) {
        let method = self.method().name();
        // Writing to memory does not fail.
        let _ = write!(out, r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":["#);
        let _ = match self {
            Self::Version => write!(out, r#""assay-load",["1.4","1.6"]"#),
            Self::Features | Self::Ping | Self::Tip | Self::FeeHistogram => Ok(()),
            Self::Header(height) => write!(out, "{height}"),
            Self::Headers { start, count } => write!(out, "{start},{count}"),
            Self::EstimateFee(blocks) => write!(out, "{blocks}"),
            Self::Subscribe(script)
            | Self::Unsubscribe(script)
            | Self::History(script)
            | Self::Balance(script)
            | Self::Unspent(script) => {
                write!(out, r#""{}""#, display_hex(&dataset.scripts[script as usize].hash))
            }
            Self::Transaction(tx) => {
                write!(out, r#""{}""#, display_hex(&dataset.txs[tx as usize].tx.txid))
            }
            Self::Merkle(tx) => {
                let tx = dataset.txs[tx as usize].tx;
                write!(out, r#""{}",{}"#, display_hex(&tx.txid), tx.height)
            }
        };
        out.extend_from_slice(b"]}");
    }
}

/// One message of a server.
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
    /// Result as JSON text.
    pub(crate) fn result_text(&self) -> &str {
        self.result.map_or("null", RawValue::get)
    }

    /// Code and message of the error, short enough for a key.
    pub(crate) fn error_kind(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct ErrorObject {
            code: i64,
            message: String,
        }
        let text = self.error?.get();
        let kind = match serde_json::from_str::<ErrorObject>(text) {
            Ok(error) => format!("{}: {}", error.code, error.message),
            Err(_) => text.to_owned(),
        };
        Some(kind.chars().take(ERROR_CHARS_MAX).collect())
    }
}

/// Longest kept error.
const ERROR_CHARS_MAX: usize = 96;

/// Messages of one line, single or batch; `Err` if it violates the protocol.
pub(crate) fn parse_line(line: &[u8]) -> Result<Line<'_>, serde_json::Error> {
    if line.first() == Some(&b'[') {
        return Ok(Line::Batch(serde_json::from_slice(line)?));
    }
    Ok(Line::One(serde_json::from_slice(line)?))
}

/// A line of a server.
#[derive(Debug)]
pub(crate) enum Line<'a> {
    One(Message<'a>),
    Batch(Vec<Message<'a>>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_is_listed_once() {
        let asks = [
            Ask::Version,
            Ask::Features,
            Ask::Ping,
            Ask::Tip,
            Ask::Header(1),
            Ask::Headers { start: 1, count: 2 },
            Ask::EstimateFee(2),
            Ask::FeeHistogram,
            Ask::Subscribe(0),
            Ask::Unsubscribe(0),
            Ask::History(0),
            Ask::Balance(0),
            Ask::Unspent(0),
            Ask::Transaction(0),
            Ask::Merkle(0),
        ];
        for (index, method) in Method::ALL.into_iter().enumerate() {
            assert_eq!(method as usize, index);
            let asked = asks.iter().filter(|ask| ask.method() == method).count();
            assert_eq!(asked, usize::from(method != Method::SubscribeBatch), "{method:?}");
        }
    }

    #[test]
    fn lines() {
        let one = br#"{"jsonrpc":"2.0","id":7,"result":null}"#;
        assert!(
            matches!(parse_line(one), Ok(Line::One(message)) if message.result_text() == "null")
        );
        let error = br#"{"id":7,"error":{"code":-32601,"message":"unknown \"method\""}}"#;
        let Ok(Line::One(message)) = parse_line(error) else { panic!("an error") };
        assert_eq!(message.error_kind().as_deref(), Some("-32601: unknown \"method\""));
        let batch = br#"[{"id":1,"result":[]},{"id":2,"error":"odd"}]"#;
        let Ok(Line::Batch(messages)) = parse_line(batch) else { panic!("a batch") };
        assert_eq!(messages[0].result_text(), "[]");
        assert_eq!(messages[1].error_kind().as_deref(), Some("\"odd\""));
        let notification = br#"{"method":"blockchain.headers.subscribe","params":[{"height":1}]}"#;
        let Ok(Line::One(message)) = parse_line(notification) else { panic!("a notification") };
        assert_eq!(message.method.as_deref(), Some("blockchain.headers.subscribe"));
        assert!(parse_line(b"garbage").is_err());
    }
}
