//! A door to the parser of requests, for the target in `fuzz/`. Built under `--cfg fuzzing` alone, so that nothing here is part of the crate for
//! anyone else.

use serde::de::IgnoredAny;

use super::methods::table::METHODS;
use super::protocol::request::{self, Message, Request};
use super::protocol::version::Offer;
use super::protocol::{Out, Params};

/// Takes a line apart and reads the parameters of every request as those of every method and as every type.
///
/// # Panics
/// When a part of a request is not the JSON that it was taken for.
pub fn line(bytes: &[u8]) {
    let requests = match request::parse(bytes, 100) {
        Message::Single(request) => vec![request],
        Message::Batch(requests) => {
            assert!((1..=100).contains(&requests.len()));
            requests
        }
        Message::Bad(error) => {
            assert!(matches!(error.code.number(), -32700 | -32600));
            return;
        }
    };
    for request in requests {
        look_at(bytes, &request);
    }
}

fn look_at(bytes: &[u8], request: &Request) {
    if let Some(id) = &request.id {
        let text = &bytes[id.clone()];
        assert!(serde_json::from_slice::<IgnoredAny>(text).is_ok(), "an id that is not JSON");
    }
    let params = request.params.clone().map(|range| {
        std::str::from_utf8(&bytes[range]).expect("parameters were read as JSON, which is text")
    });
    for method in METHODS {
        let Ok(params) = Params::read(params, method.params, method.required, method.is_open())
        else {
            continue;
        };
        for at in 0..method.params.len() {
            read_as_everything(&params, at);
        }
    }
}

fn read_as_everything(params: &Params<'_>, at: usize) {
    let _ = (params.number(at, "it"), params.flag(at, "it"), params.txid(at));
    let _ = (params.script_hash(at), params.script(at), params.hexes(at, "they", 3));
    if let Ok(text) = params.text(at, "it") {
        let mut out = Out::new();
        out.string(&text);
        let again: String = serde_json::from_slice(&out.into_bytes()).expect("we write JSON");
        assert_eq!(again, text);
    }
    if let Ok(bytes) = params.hex(at, "it") {
        let mut out = Out::new();
        out.hex(&bytes);
        let shown = params.raw(at).map(|raw| raw.get().to_ascii_lowercase());
        assert_eq!(shown.as_deref(), std::str::from_utf8(&out.into_bytes()).ok());
    }
    let _ = params.raw(at).and_then(Offer::read);
}
