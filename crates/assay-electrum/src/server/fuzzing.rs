//! Entry point for the fuzz target of the request parser. Built only under `--cfg fuzzing` and for tests, so it is not part of
//! the public API.

use serde::de::IgnoredAny;

use super::methods::METHODS;
use super::params::Params;
use super::protocol::{Offer, Out};
use super::request::{self, Request};

/// Parses a line, and the parameters of every request as those of every method and as every type.
///
/// # Panics
/// If a part of a request is not valid JSON of the parsed type.
pub fn line(bytes: &[u8]) {
    let requests = request::parse(bytes, 100);
    assert!((1..=100).contains(&requests.items.len()));
    for request in requests.items {
        look_at(bytes, &request);
    }
}

fn look_at(bytes: &[u8], request: &Request) {
    if let Err(error) = &request.method {
        let is_json = serde_json::from_slice::<IgnoredAny>(bytes).is_ok();
        let is_known = matches!(error.code.number(), -32700 | -32600);
        assert!(is_known || is_json && error.code.number() == -32601);
    }
    if let Some(id) = &request.id {
        let text = &bytes[id.clone()];
        assert!(serde_json::from_slice::<IgnoredAny>(text).is_ok(), "an id that is not JSON");
    }
    let params = request.params.clone().map(|range| {
        std::str::from_utf8(&bytes[range]).expect("parameters were read as JSON, which is text")
    });
    for method in METHODS {
        let Ok(params) = Params::read(params, method.params, method.is_open()) else {
            continue;
        };
        for at in 0..method.params.0.len() {
            read_as_everything(&params, at);
        }
    }
}

fn read_as_everything(params: &Params<'_>, at: usize) {
    let _ = (params.number(at), params.flag(at), params.txid(at));
    let _ = (params.script_hash(at), params.script(at), params.hexes(at, 3));
    if let Ok(text) = params.text(at) {
        let mut out = Out::new();
        out.string(&text);
        let again: String = serde_json::from_slice(&out.into_bytes()).expect("we write JSON");
        assert_eq!(again, text);
    }
    if let Ok(bytes) = params.hex(at) {
        let mut out = Out::new();
        out.hex(&bytes);
        let shown = params.raw(at).map(|raw| raw.get().to_ascii_lowercase());
        assert_eq!(shown.as_deref(), std::str::from_utf8(&out.into_bytes()).ok());
    }
    let _ = params.raw(at).and_then(Offer::read);
}

/// Thousands of almost valid lines: a short version of the fuzz run.
#[cfg(test)]
mod tests {
    const LINES: [&[u8]; 3] = [
        br#"{"jsonrpc":"2.0","id":"a","method":"server.version","params":["4.6",["1.4","1.6"]]}"#,
        br#"[{"id":1,"method":"server.ping","params":{"pong_len":3,"data":"00"}},{"method":"x"},7]"#,
        br#"{"id":-1.5,"params":["00ff","4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b",true,["00"]],"method":"\u0041"}"#,
    ];

    #[test]
    fn damaged_lines_parse_or_fail() {
        const USUAL: &[u8] = b"{}[]\",:0129abcdef\\u-+.eE tn\xff\x00";
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            (state >> 33) as usize % below
        };
        for round in 0..20_000 {
            let mut line = LINES[round % LINES.len()].to_vec();
            for _ in 0..=random(4) {
                let at = random(line.len());
                match random(4) {
                    0 => line[at] = USUAL[random(USUAL.len())],
                    1 => line.insert(at, USUAL[random(USUAL.len())]),
                    2 => _ = line.remove(at),
                    _ => {
                        let end = at + random(line.len() - at);
                        let piece = line[at..end].to_vec();
                        line.splice(at..at, piece);
                    }
                }
            }
            super::line(&line);
        }
    }
}
