//! Identifiers as text: what parses prints as it was, in lower case.

#![no_main]

use assay_wire::{BlockHash, Txid};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let txid = text.parse::<Txid>();
    let hash = text.parse::<BlockHash>();
    assert_eq!(txid.is_ok(), hash.is_ok());
    let is_hex = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert_eq!(txid.is_ok(), is_hex);
    if let (Ok(txid), Ok(hash)) = (txid, hash) {
        assert_eq!(txid.to_string(), text.to_ascii_lowercase());
        assert_eq!(hash.to_string(), txid.to_string());
    }
});
