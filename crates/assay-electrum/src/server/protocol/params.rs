//! Positional or named parameters, and their types.

use std::collections::HashMap;

use assay_wire::Txid;
use serde_json::value::RawValue;

use super::error::{Code, RpcError};
use crate::index::ScriptHash;

/// Maximum parsed parameters; more than any method has.
const PARAMS_MAX: usize = 16;

/// The parameters of a call, in the order of [`super::methods::Method::params`].
#[derive(Debug)]
pub(in crate::server) struct Params<'a> {
    values: Vec<Option<&'a RawValue>>,
}

impl<'a> Params<'a> {
    /// Parses the member `params` by parameter `names`, of which the first `required` are mandatory. `open` ignores unknown ones.
    pub(in crate::server) fn read(
        text: Option<&'a str>,
        names: &[&str],
        required: usize,
        open: bool,
    ) -> Result<Self, RpcError> {
        let wrong = |message: String| RpcError::new(Code::InvalidParams, message);
        let text = text.unwrap_or("[]");
        let mut values: Vec<Option<&'a RawValue>> = vec![None; names.len()];
        if text.starts_with('{') {
            let given: HashMap<String, &'a RawValue> = serde_json::from_str(text)
                .map_err(|_| wrong("the parameters cannot be read".to_owned()))?;
            for (name, value) in given {
                match names.iter().position(|known| *known == name) {
                    Some(at) => values[at] = Some(value),
                    None if open => {}
                    None => return Err(wrong("unknown parameter".to_owned())),
                }
            }
        } else {
            let given: Vec<&'a RawValue> = serde_json::from_str(text)
                .map_err(|_| wrong("the parameters must be an array or an object".to_owned()))?;
            if given.len() > names.len() && !open || given.len() > PARAMS_MAX {
                let message =
                    format!("{} parameters where up to {} are known", given.len(), names.len());
                return Err(wrong(message));
            }
            for (place, value) in values.iter_mut().zip(given) {
                *place = Some(value);
            }
        }
        for (name, value) in names.iter().zip(&values).take(required) {
            if value.is_none() {
                return Err(wrong(format!("the parameter {name} is missing")));
            }
        }
        Ok(Self { values })
    }

    /// The parameter at `at`, if present and not null.
    pub(in crate::server) fn raw(&self, at: usize) -> Option<&'a RawValue> {
        self.values.get(at).copied().flatten().filter(|value| value.get() != "null")
    }

    fn required(&self, at: usize, what: &str) -> Result<&'a RawValue, RpcError> {
        self.raw(at).ok_or_else(|| RpcError::bad(format!("{what} is needed")))
    }

    /// An integer from 0 to 2^32 - 1: a height, a count, an index.
    pub(in crate::server) fn number(&self, at: usize, what: &str) -> Result<u32, RpcError> {
        let raw = self.required(at, what)?;
        raw.get()
            .parse()
            .map_err(|_| RpcError::bad(format!("{what} should be a non-negative integer")))
    }

    pub(in crate::server) fn number_or(
        &self,
        at: usize,
        what: &str,
        default: u32,
    ) -> Result<u32, RpcError> {
        if self.raw(at).is_some() { self.number(at, what) } else { Ok(default) }
    }

    /// A boolean, as JSON or as 0 and 1; defaults to false.
    pub(in crate::server) fn flag(&self, at: usize, what: &str) -> Result<bool, RpcError> {
        match self.raw(at).map(RawValue::get) {
            None | Some("false" | "0") => Ok(false),
            Some("true" | "1") => Ok(true),
            Some(_) => Err(RpcError::bad(format!("{what} should be a boolean value"))),
        }
    }

    pub(in crate::server) fn text(&self, at: usize, what: &str) -> Result<String, RpcError> {
        let raw = self.required(at, what)?;
        serde_json::from_str(raw.get())
            .map_err(|_| RpcError::bad(format!("{what} should be a string")))
    }

    pub(in crate::server) fn hex(&self, at: usize, what: &str) -> Result<Vec<u8>, RpcError> {
        hex(self.required(at, what)?, what)
    }

    /// An array of 1 to `max` hex strings.
    pub(in crate::server) fn hexes(
        &self,
        at: usize,
        what: &str,
        max: usize,
    ) -> Result<Vec<Vec<u8>>, RpcError> {
        let raw = self.required(at, what)?;
        let items: Vec<&RawValue> = serde_json::from_str(raw.get())
            .map_err(|_| RpcError::bad(format!("{what} should be a list")))?;
        if items.is_empty() || items.len() > max {
            return Err(RpcError::bad(format!("{what} should be a list of 1 to {max}")));
        }
        items.into_iter().map(|item| hex(item, what)).collect()
    }

    pub(in crate::server) fn txid(&self, at: usize) -> Result<Txid, RpcError> {
        let wrong = || RpcError::bad("tx_hash should be a transaction hash");
        self.text(at, "tx_hash").map_err(|_| wrong())?.parse().map_err(|_| wrong())
    }

    pub(in crate::server) fn script_hash(&self, at: usize) -> Result<ScriptHash, RpcError> {
        let wrong = || RpcError::bad("scripthash is not a valid script hash");
        self.text(at, "scripthash").map_err(|_| wrong())?.parse().map_err(|_| wrong())
    }

    /// A hex-encoded script, as its hash.
    pub(in crate::server) fn script(&self, at: usize) -> Result<ScriptHash, RpcError> {
        Ok(ScriptHash::of(&self.hex(at, "scriptpubkey")?))
    }
}

fn hex(raw: &RawValue, what: &str) -> Result<Vec<u8>, RpcError> {
    let wrong = || RpcError::bad(format!("{what} should be a hex string"));
    // Hex digits need no escapes, so the text between the quotation marks can be used directly.
    let digits = raw.get().strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let digits = digits.ok_or_else(wrong)?.as_bytes();
    if digits.len() % 2 != 0 {
        return Err(wrong());
    }
    let mut bytes = vec![0; digits.len() / 2];
    faster_hex::hex_decode(digits, &mut bytes).map_err(|_| wrong())?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &[&str] = &["a", "b", "c"];

    fn read(text: &str) -> Result<Params<'_>, Code> {
        Params::read(Some(text), NAMES, 1, false).map_err(|error| error.code)
    }

    #[test]
    fn positional_and_named_params_are_equal() {
        for text in ["[1,true]", r#"{"b":true,"a":1}"#, r#"{"b":1,"a":1}"#] {
            let params = read(text).unwrap();
            assert_eq!(params.number(0, "a").unwrap(), 1);
            assert!(params.flag(1, "b").unwrap());
            assert_eq!(params.number_or(2, "c", 7).unwrap(), 7);
        }
    }

    #[test]
    fn rejects_wrong_counts_and_names() {
        for text in ["[]", "[1,2,3,4]", r#"{"b":1}"#, r#"{"a":1,"d":1}"#, "1", "\"a\"", "null"] {
            assert_eq!(read(text).unwrap_err(), Code::InvalidParams, "{text}");
        }
        assert!(Params::read(Some("[1,2,3,4]"), NAMES, 0, true).is_ok());
        assert!(Params::read(Some(r#"{"d":1}"#), NAMES, 0, true).is_ok());
        assert!(Params::read(None, NAMES, 0, false).is_ok());
    }

    #[test]
    fn rejects_wrong_types() {
        for value in ["-1", "1.5", "\"1\"", "4294967296", "1e3", "true", "[]", "{}", "null"] {
            let text = format!("[{value}]");
            assert_eq!(read(&text).unwrap().number(0, "a").unwrap_err().code, Code::BadRequest);
        }
        for value in ["2", "\"true\"", "[]", "-1"] {
            let text = format!("[{value}]");
            assert_eq!(read(&text).unwrap().flag(0, "a").unwrap_err().code, Code::BadRequest);
        }
        for value in ["\"0\"", "\"0g\"", "\"\\u0030\\u0030\"", "1", "[\"00\"]", "\"00 \""] {
            let text = format!("[{value}]");
            assert_eq!(read(&text).unwrap().hex(0, "a").unwrap_err().code, Code::BadRequest);
        }
        for value in ["[]", "\"00\"", "[0]", "[\"00\",\"00\",\"00\"]", "{}"] {
            let text = format!("[{value}]");
            assert_eq!(read(&text).unwrap().hexes(0, "a", 2).unwrap_err().code, Code::BadRequest);
        }
        for value in ["\"00\"", "1", "\"zz\"", "[]"] {
            let text = format!("[{value}]");
            assert_eq!(read(&text).unwrap().txid(0).unwrap_err().code, Code::BadRequest);
            assert_eq!(read(&text).unwrap().script_hash(0).unwrap_err().code, Code::BadRequest);
        }
    }
}
