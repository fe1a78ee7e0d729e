//! Positional or named parameters, and their types.

use std::collections::HashMap;

use assay_wire::Txid;
use serde_json::value::RawValue;

use super::protocol::{Code, RpcError};
use crate::index::ScriptHash;

/// Maximum parsed parameters; more than any method has.
const PARAMS_MAX: usize = 16;

/// The parameters of a call, in the order of their names.
#[derive(Debug)]
pub(super) struct Params<'a> {
    names: &'a [&'a str],
    values: Vec<Option<&'a RawValue>>,
}

impl<'a> Params<'a> {
    /// Parses the member `params` by parameter `names`, of which the first `required` are mandatory. `open` ignores unknown ones.
    pub(super) fn read(
        text: Option<&'a str>,
        (names, required): (&'a [&'a str], usize),
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
        Ok(Self { names, values })
    }

    /// The parameter at `at`, if present and not null.
    pub(super) fn raw(&self, at: usize) -> Option<&'a RawValue> {
        self.values.get(at).copied().flatten().filter(|value| value.get() != "null")
    }

    /// The error of the parameter at `at`.
    fn wrong(&self, at: usize, expected: &str) -> RpcError {
        RpcError::bad(format!("{} {expected}", self.names[at]))
    }

    fn required(&self, at: usize) -> Result<&'a RawValue, RpcError> {
        self.raw(at).ok_or_else(|| self.wrong(at, "is needed"))
    }

    /// An integer from 0 to 2^32 - 1: a height, a count, an index.
    pub(super) fn number(&self, at: usize) -> Result<u32, RpcError> {
        let number = self.required(at)?.get().parse();
        number.map_err(|_| self.wrong(at, "should be a non-negative integer"))
    }

    pub(super) fn number_or(&self, at: usize, default: u32) -> Result<u32, RpcError> {
        if self.raw(at).is_some() { self.number(at) } else { Ok(default) }
    }

    /// A boolean, as JSON or as 0 and 1; defaults to false.
    pub(super) fn flag(&self, at: usize) -> Result<bool, RpcError> {
        match self.raw(at).map(RawValue::get) {
            None | Some("false" | "0") => Ok(false),
            Some("true" | "1") => Ok(true),
            Some(_) => Err(self.wrong(at, "should be a boolean value")),
        }
    }

    pub(super) fn text(&self, at: usize) -> Result<String, RpcError> {
        let text = serde_json::from_str(self.required(at)?.get());
        text.map_err(|_| self.wrong(at, "should be a string"))
    }

    pub(super) fn hex(&self, at: usize) -> Result<Vec<u8>, RpcError> {
        hex(self.required(at)?).ok_or_else(|| self.wrong(at, "should be a hex string"))
    }

    /// An array of 1 to `max` hex strings.
    pub(super) fn hexes(&self, at: usize, max: usize) -> Result<Vec<Vec<u8>>, RpcError> {
        let items: Vec<&RawValue> = serde_json::from_str(self.required(at)?.get())
            .map_err(|_| self.wrong(at, "should be a list"))?;
        if items.is_empty() || items.len() > max {
            return Err(self.wrong(at, &format!("should be a list of 1 to {max}")));
        }
        let bytes: Option<_> = items.into_iter().map(hex).collect();
        bytes.ok_or_else(|| self.wrong(at, "should be a hex string"))
    }

    pub(super) fn txid(&self, at: usize) -> Result<Txid, RpcError> {
        let wrong = || RpcError::bad("tx_hash should be a transaction hash");
        self.text(at).map_err(|_| wrong())?.parse().map_err(|_| wrong())
    }

    pub(super) fn script_hash(&self, at: usize) -> Result<ScriptHash, RpcError> {
        let wrong = || RpcError::bad("scripthash is not a valid script hash");
        self.text(at).map_err(|_| wrong())?.parse().map_err(|_| wrong())
    }

    /// A hex-encoded script, as its hash.
    pub(super) fn script(&self, at: usize) -> Result<ScriptHash, RpcError> {
        Ok(ScriptHash::of(&self.hex(at)?))
    }
}

fn hex(raw: &RawValue) -> Option<Vec<u8>> {
    // Hex digits need no escapes, so the text between the quotation marks can be used directly.
    let digits = raw.get().strip_prefix('"')?.strip_suffix('"')?.as_bytes();
    let mut bytes = vec![0; digits.len() / 2];
    let is_even = digits.len().is_multiple_of(2);
    (is_even && faster_hex::hex_decode(digits, &mut bytes).is_ok()).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &[&str] = &["a", "b", "c"];

    fn read(text: &str) -> Result<Params<'_>, Code> {
        Params::read(Some(text), (NAMES, 1), false).map_err(|error| error.code)
    }

    #[test]
    fn positional_and_named_params_are_equal() {
        for text in ["[1,true]", r#"{"b":true,"a":1}"#, r#"{"b":1,"a":1}"#] {
            let params = read(text).unwrap();
            assert_eq!(params.number(0).unwrap(), 1);
            assert!(params.flag(1).unwrap());
            assert_eq!(params.number_or(2, 7).unwrap(), 7);
        }
    }

    #[test]
    fn rejects_wrong_counts_and_names() {
        for text in ["[]", "[1,2,3,4]", r#"{"b":1}"#, r#"{"a":1,"d":1}"#, "1", "\"a\"", "null"] {
            assert_eq!(read(text).unwrap_err(), Code::InvalidParams, "{text}");
        }
        assert!(Params::read(Some("[1,2,3,4]"), (NAMES, 0), true).is_ok());
        assert!(Params::read(Some(r#"{"d":1}"#), (NAMES, 0), true).is_ok());
        assert!(Params::read(None, (NAMES, 0), false).is_ok());
    }

    #[test]
    fn rejects_wrong_types() {
        for value in ["-1", "1.5", "\"1\"", "4294967296", "1e3", "true", "[]", "{}", "null"] {
            let text = format!("[{value}]");
            assert_eq!(read(&text).unwrap().number(0).unwrap_err().code, Code::BadRequest);
        }
        for value in ["2", "\"true\"", "[]", "-1"] {
            let text = format!("[{value}]");
            assert_eq!(read(&text).unwrap().flag(0).unwrap_err().code, Code::BadRequest);
        }
        for value in ["\"0\"", "\"0g\"", "\"\\u0030\\u0030\"", "1", "[\"00\"]", "\"00 \""] {
            let text = format!("[{value}]");
            assert_eq!(read(&text).unwrap().hex(0).unwrap_err().code, Code::BadRequest);
        }
        for value in ["[]", "\"00\"", "[0]", "[\"00\",\"00\",\"00\"]", "{}"] {
            let text = format!("[{value}]");
            assert_eq!(read(&text).unwrap().hexes(0, 2).unwrap_err().code, Code::BadRequest);
        }
        for value in ["\"00\"", "1", "\"zz\"", "[]"] {
            let text = format!("[{value}]");
            assert_eq!(read(&text).unwrap().txid(0).unwrap_err().code, Code::BadRequest);
            assert_eq!(read(&text).unwrap().script_hash(0).unwrap_err().code, Code::BadRequest);
        }
    }
}
