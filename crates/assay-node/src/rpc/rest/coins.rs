//! `/rest/getutxos`: unspent outputs (response of BIP64; request in path or body).

use assay_engine::Tip;
use assay_wire::{Coin, OutPoint, Reader, encode};

use super::super::script::write_script_pubkey;
use super::{Answer, Failure, Format, Request, bad, integral, no_format};
use crate::jsonrpc::{self, Json, RpcError};
use crate::rpc::Node;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Question {
    /// True to include unconfirmed transactions.
    pub(super) with_mempool: bool,
    pub(super) outpoints: Vec<OutPoint>,
}

pub(super) fn coins(node: &Node<'_>, request: &Request<'_>) -> Answer {
    let question = question(request)?;
    let count = question.outpoints.len();
    if count > OUTPOINTS_MAX {
        let text = format!("Error: max outpoints exceeded (max: {OUTPOINTS_MAX}, tried: {count})");
        return Err(bad(text));
    }
    let (tip, found) = look_up(node, &question)?;
    request.content(|| bytes(&tip, &found), |out| json(node, &tip, &found, out))
}

/// Parses the request from the path or, for binary and hexadecimal formats, from the body.
pub(super) fn question(request: &Request<'_>) -> Result<Question, Failure> {
    let empty = || bad("Error: empty request");
    // Rest after "getutxos", which begins with a slash.
    let path = request.path.get(1..).filter(|path| !path.is_empty());
    if path.is_none() && request.body.is_empty() {
        return Err(empty());
    }
    let mut question = Question::default();
    if let Some(path) = path {
        let outpoints = match path.strip_prefix("checkmempool") {
            Some("") => return Err(empty()),
            Some(rest) if rest.starts_with('/') => {
                question.with_mempool = true;
                &rest[1..]
            }
            _ => path,
        };
        let outpoints: Option<Vec<_>> = outpoints.split('/').map(outpoint).collect();
        question.outpoints = outpoints.ok_or_else(|| bad("Parse error"))?;
    }
    match request.format {
        None => return Err(no_format(".bin, .hex, .json")),
        Some(Format::Json) if path.is_none() => return Err(empty()),
        Some(Format::Json) => return Ok(question),
        Some(Format::Bin | Format::Hex) => {}
    }
    let body = match request.format {
        Some(Format::Hex) => unhex(request.body),
        _ => request.body.to_vec(),
    };
    if body.is_empty() {
        return Ok(question);
    }
    if path.is_some() {
        return Err(bad("Combination of URI scheme inputs and raw post data is not allowed"));
    }
    from_body(&body).ok_or_else(|| bad("Parse error"))
}

/// `TXID-INDEX`.
fn outpoint(text: &str) -> Option<OutPoint> {
    let (txid, vout) = text.split_once('-')?;
    Some(OutPoint { txid: txid.parse().ok()?, vout: integral(vout)? })
}

/// Hexadecimal text with whitespace; empty if invalid, as in Core's `ParseHex`.
fn unhex(text: &[u8]) -> Vec<u8> {
    let digits: Vec<u8> = text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    jsonrpc::unhex(&digits).unwrap_or_default()
}

/// Mempool flag byte, then a list of outpoints.
fn from_body(body: &[u8]) -> Option<Question> {
    let mut reader = Reader::new(body, 0);
    let [with_mempool] = *reader.take().ok()?;
    let count = reader.count(36).ok()?;
    let outpoints = (0..count).map_while(|_| reader.take().ok().map(OutPoint::from_bytes));
    Some(Question { with_mempool: with_mempool != 0, outpoints: outpoints.collect() })
}

/// Coins, all at the same tip.
fn look_up(node: &Node<'_>, question: &Question) -> Result<(Tip, Vec<Option<Coin>>), Failure> {
    loop {
        let tip = node.engine.chain().tip();
        let find = |outpoint| node.engine.chain().coin(outpoint, question.with_mempool);
        let found: Result<Vec<_>, _> = question.outpoints.iter().map(find).collect();
        let found = found.map_err(RpcError::from)?;
        let is_one = found.iter().flatten().all(|(_, seen)| seen.hash == tip.hash);
        if is_one && node.engine.chain().tip().hash == tip.hash || node.context.interrupted() {
            let coins = found.into_iter().map(|found| found.map(|(coin, _)| coin));
            return Ok((tip, coins.collect()));
        }
    }
}

fn bytes(tip: &Tip, found: &[Option<Coin>]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(tip.height.to_le_bytes());
    out.extend(tip.hash.0);
    let mut bitmap = vec![0; found.len().div_ceil(8)];
    for (index, _) in found.iter().enumerate().filter(|(_, coin)| coin.is_some()) {
        bitmap[index / 8] |= 1 << (index % 8);
    }
    encode::compact_size(&mut out, bitmap.len() as u64);
    out.extend(bitmap);
    encode::compact_size(&mut out, found.iter().flatten().count() as u64);
    for coin in found.iter().flatten() {
        // Transaction version, which Core no longer stores.
        out.extend(0_u32.to_le_bytes());
        out.extend(coin.height.to_le_bytes());
        out.extend(coin.value.to_le_bytes());
        encode::compact_size(&mut out, coin.script_pubkey.len() as u64);
        out.extend(coin.script_pubkey.iter());
    }
    out
}

fn json(node: &Node<'_>, tip: &Tip, found: &[Option<Coin>], out: &mut Vec<u8>) {
    let mut object = Json::new(out).object();
    object.key("chainHeight").int(tip.height);
    object.key("chaintipHash").text(tip.hash);
    let bitmap: String = found.iter().map(|coin| if coin.is_some() { '1' } else { '0' }).collect();
    object.key("bitmap").string(&bitmap);
    object.key("utxos").objects(found.iter().flatten(), |coin, utxo| {
        utxo.key("height").int(coin.height);
        utxo.key("value").amount(coin.value);
        let mut script = utxo.key("scriptPubKey").object();
        write_script_pubkey(&node.rpc.params, &coin.script_pubkey, &mut script);
    });
}

/// Core's `MAX_GETUTXOS_OUTPOINTS`.
const OUTPOINTS_MAX: usize = 15;
