//! Encodes requests and decodes messages of a server.

use std::io::Write as _;

use super::dataset::{Dataset, KnownTx};
use crate::electrum::Message;

/// Batches of subscriptions count as a method of their own.
pub(crate) const SUBSCRIBE_BATCH: &str = "batch of scripthash.subscribe";

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

impl Ask {
    pub(crate) const fn method(self) -> &'static str {
        match self {
            Self::Version => "server.version",
            Self::Features => "server.features",
            Self::Ping => "server.ping",
            Self::Tip => "blockchain.headers.subscribe",
            Self::Header(_) => "blockchain.block.header",
            Self::Headers { .. } => "blockchain.block.headers",
            Self::EstimateFee(_) => "blockchain.estimatefee",
            Self::FeeHistogram => "mempool.get_fee_histogram",
            Self::Subscribe(_) => "blockchain.scripthash.subscribe",
            Self::Unsubscribe(_) => "blockchain.scripthash.unsubscribe",
            Self::History(_) => "blockchain.scripthash.get_history",
            Self::Balance(_) => "blockchain.scripthash.get_balance",
            Self::Unspent(_) => "blockchain.scripthash.listunspent",
            Self::Transaction(_) => "blockchain.transaction.get",
            Self::Merkle(_) => "blockchain.transaction.get_merkle",
        }
    }

    /// Appends the request without a newline.
    pub(crate) fn write(self, id: u64, dataset: &Dataset, out: &mut Vec<u8>) {
        let method = self.method();
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
                write!(out, r#""{}""#, dataset.scripts[script as usize].hash)
            }
            Self::Transaction(tx) => write!(out, r#""{}""#, dataset.txs[tx as usize].txid),
            Self::Merkle(tx) => {
                let KnownTx { txid, height, .. } = &dataset.txs[tx as usize];
                write!(out, r#""{txid}",{height}"#)
            }
        };
        out.extend_from_slice(b"]}");
    }

    pub(crate) fn write_line(self, id: u64, dataset: &Dataset, out: &mut Vec<u8>) {
        self.write(id, dataset, out);
        out.push(b'\n');
    }
}

/// Appends a batch of `count` requests with a newline; `write` appends the one with an index.
pub(crate) fn write_batch(count: u64, out: &mut Vec<u8>, mut write: impl FnMut(u64, &mut Vec<u8>)) {
    for index in 0..count {
        out.push(if index == 0 { b'[' } else { b',' });
        write(index, out);
    }
    out.extend_from_slice(b"]\n");
}

/// Code and message of an error, short enough for a key.
pub(crate) fn error_kind(message: &Message<'_>) -> Option<String> {
    let (code, message) = message.error()?;
    Some(format!("{code}: {message}").chars().take(ERROR_CHARS_MAX).collect())
}

const ERROR_CHARS_MAX: usize = 96;

/// Messages of one line, single or batch; `Err` if it violates the protocol.
pub(crate) fn parse_line(line: &[u8]) -> Result<Line<'_>, serde_json::Error> {
    if line.first() == Some(&b'[') {
        return Ok(Line::Batch(serde_json::from_slice(line)?));
    }
    Ok(Line::One(serde_json::from_slice(line)?))
}

#[derive(Debug)]
pub(crate) enum Line<'a> {
    One(Message<'a>),
    Batch(Vec<Message<'a>>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let one = br#"{"jsonrpc":"2.0","id":7,"result":null}"#;
        assert!(
            matches!(parse_line(one), Ok(Line::One(message)) if message.result_text() == "null")
        );
        let error = br#"{"id":7,"error":{"code":-32601,"message":"unknown \"method\""}}"#;
        let Ok(Line::One(message)) = parse_line(error) else { panic!("an error") };
        assert_eq!(error_kind(&message).as_deref(), Some("-32601: unknown \"method\""));
        let batch = br#"[{"id":1,"result":[]},{"id":2,"error":"odd"}]"#;
        let Ok(Line::Batch(messages)) = parse_line(batch) else { panic!("a batch") };
        assert_eq!(messages[0].result_text(), "[]");
        assert_eq!(error_kind(&messages[1]).as_deref(), Some("0: odd"));
        let notification = br#"{"method":"blockchain.headers.subscribe","params":[{"height":1}]}"#;
        let Ok(Line::One(message)) = parse_line(notification) else { panic!("a notification") };
        assert_eq!(message.method.as_deref(), Some("blockchain.headers.subscribe"));
        assert!(parse_line(b"garbage").is_err());
    }
}
