//! Arguments of a call: ordering, type checks and parsing.
//!
//! Rules and error texts are Bitcoin Core's (`rpc/server.cpp`, `rpc/util.cpp`), because client libraries match
//! them.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::{Display, Write as _};
use std::str::FromStr;

use super::spec::ArgSpec;
use crate::jsonrpc::body_decoder::Text;
use crate::jsonrpc::{Code, Params, RpcError, Value};
use assay_wire::{BlockHash, Txid};

/// Arguments of one call in the order of the method's specification; `None` if missing or null.
#[derive(Debug)]
pub(crate) struct Args<'a> {
    specs: &'static [ArgSpec],
    values: Vec<Option<Value<'a>>>,
    /// Members of an options argument that were passed by their own names.
    options: Vec<(String, Value<'a>)>,
    given: usize,
}

/// Arguments apart from the request, whose memory can be freed.
#[derive(Debug)]
pub(crate) struct OwnedArgs {
    specs: &'static [ArgSpec],
    /// Array of the arguments and then of the options.
    values: Text,
    option_names: Vec<String>,
    given: usize,
}

impl OwnedArgs {
    pub(super) fn args(&self) -> Args<'_> {
        let mut values = Value::all(&self.values);
        let options = values.split_off(self.specs.len());
        Args {
            specs: self.specs,
            values: values.into_iter().map(|value| Some(value).filter(|v| !v.is_null())).collect(),
            options: self.option_names.iter().cloned().zip(options).collect(),
            given: self.given,
        }
    }
}

impl<'a> Args<'a> {
    /// Orders and checks the arguments of a call; `help` is the error text for a wrong number.
    pub(super) fn new(
        specs: &'static [ArgSpec],
        params: Params<'a>,
        help: impl FnOnce() -> String,
    ) -> Result<Self, RpcError> {
        let (values, options) = match params {
            Params::None => (Vec::new(), Vec::new()),
            Params::Positional(values) => (values.into_iter().map(Some).collect(), Vec::new()),
            Params::Named(members) => {
                let (members, options) = split_options(specs, members)?;
                (order_by_name(specs, &members)?, options)
            }
        };
        let required = specs.iter().rposition(|arg| !arg.optional()).map_or(0, |at| at + 1);
        if !(required..=specs.len()).contains(&values.len()) {
            return Err(RpcError::new(Code::Misc, help()));
        }
        let given = values.len();
        let mut values: Vec<_> =
            values.into_iter().map(|value| value.filter(|value| !value.is_null())).collect();
        values.resize(specs.len(), None);
        let args = Self { specs, values, options, given };
        args.check_types()?;
        Ok(args)
    }

    fn check_types(&self) -> Result<(), RpcError> {
        let mut mismatches = String::new();
        for (index, spec) in self.specs.iter().enumerate() {
            let found = self.values[index].map_or("null", Value::type_name);
            let fits = match spec.json_type() {
                _ if found == "null" && spec.optional() => true,
                None => true,
                Some(expected) => expected == found,
            };
            if !fits {
                let comma = if mismatches.is_empty() { "" } else { "," };
                let expected = spec.json_type().unwrap_or_default();
                let (position, names) = (index + 1, spec.names);
                write!(
                    mismatches,
                    "{comma}\n    \"Position {position} ({names})\": \"JSON value of type {found} is not of expected type {expected}\""
                )
                .expect("writing to a string does not fail");
            }
        }
        if mismatches.is_empty() {
            return Ok(());
        }
        Err(RpcError::new(Code::Type, format!("Wrong type passed:\n{{{mismatches}\n}}")))
    }

    /// Copies the arguments; long strings move.
    pub(super) fn detach(self) -> OwnedArgs {
        let (option_names, options): (Vec<_>, Vec<_>) = self.options.into_iter().unzip();
        let values = self.values.into_iter().chain(options.into_iter().map(Some));
        let values = Value::array(values);
        OwnedArgs { specs: self.specs, values, option_names, given: self.given }
    }

    /// Number of given positions, up to the last one even if null.
    pub(crate) fn given(&self) -> usize {
        self.given
    }

    pub(crate) fn value(&self, index: usize) -> Option<Value<'a>> {
        self.values[index]
    }

    /// Bytes of a hexadecimal string; `None` for other values.
    pub(crate) fn hex(&self, index: usize) -> Option<Vec<u8>> {
        self.values[index]?.hex()
    }

    pub(crate) fn string(&self, index: usize) -> Result<Cow<'a, str>, RpcError> {
        let value = self.values[index];
        value.and_then(Value::string).ok_or_else(|| wrong_type(value, "string"))
    }

    pub(crate) fn optional_string(&self, index: usize) -> Result<Option<Cow<'a, str>>, RpcError> {
        self.values[index].map(|_| self.string(index)).transpose()
    }

    pub(crate) fn integer<T: TryFrom<i64>>(&self, index: usize) -> Result<T, RpcError> {
        let value = self.values[index];
        let number = value.filter(|value| value.type_name() == "number");
        let text = number.ok_or_else(|| wrong_type(value, "number"))?.json();
        // Rejects -0, 1e3 and 1.0.
        let parsed = text.parse::<i64>().ok().and_then(|number| T::try_from(number).ok());
        parsed.ok_or_else(|| RpcError::new(Code::Misc, "JSON integer out of range"))
    }

    pub(crate) fn integer_or<T: TryFrom<i64>>(
        &self,
        index: usize,
        default: T,
    ) -> Result<T, RpcError> {
        self.values[index].map_or(Ok(default), |_| self.integer(index))
    }

    pub(crate) fn bool_or(&self, index: usize, default: bool) -> Result<bool, RpcError> {
        as_bool(self.values[index], default)
    }

    /// Boolean member of an object, or `default`.
    pub(crate) fn option_or(
        &self,
        index: usize,
        name: &str,
        default: bool,
    ) -> Result<bool, RpcError> {
        as_bool(self.option(index, name), default)
    }

    /// Option: a member of the object, or passed by its own name.
    pub(crate) fn option(&self, index: usize, name: &str) -> Option<Value<'a>> {
        let named = || self.options.iter().find(|option| option.0 == name);
        let member = self.values[index].and_then(|object| object.member(name));
        member.or_else(|| named().map(|option| option.1)).filter(|value| !value.is_null())
    }

    /// Verbosity: a number, or `true` for 1 and `false` for 0.
    pub(crate) fn verbosity(&self, index: usize, default: i32) -> Result<i32, RpcError> {
        match self.values[index].map(Value::type_name) {
            Some("bool") => Ok(i32::from(self.bool_or(index, false)?)),
            _ => self.integer_or(index, default),
        }
    }

    /// Block hash; `name` appears in the error.
    pub(crate) fn block_hash(&self, index: usize, name: &str) -> Result<BlockHash, RpcError> {
        hash_of(&self.string(index)?, name)
    }

    pub(crate) fn optional_block_hash(
        &self,
        index: usize,
        name: &str,
    ) -> Result<Option<BlockHash>, RpcError> {
        self.values[index].map(|_| self.block_hash(index, name)).transpose()
    }

    /// Txid; `name` appears in the error.
    pub(crate) fn txid(&self, index: usize, name: &str) -> Result<Txid, RpcError> {
        hash_of(&self.string(index)?, name)
    }

    /// Amount in coins, as a number or string, converted to satoshis; `None` if missing.
    pub(crate) fn amount(&self, index: usize) -> Result<Option<i64>, RpcError> {
        self.values[index].map(amount_of).transpose()
    }

    /// Fee rate in coins per 1,000 virtual bytes, converted to satoshis, or `default`.
    pub(crate) fn fee_rate_or(&self, index: usize, default: i64) -> Result<i64, RpcError> {
        let rate = self.amount(index)?.unwrap_or(default);
        if rate >= COIN {
            return Err(RpcError::new(
                Code::InvalidParameter,
                "Fee rates larger than or equal to 1BTC/kvB are not accepted",
            ));
        }
        Ok(rate)
    }
}

pub(crate) fn string_of(value: Value<'_>) -> Result<Cow<'_, str>, RpcError> {
    value.string().ok_or_else(|| wrong_type(Some(value), "string"))
}

pub(crate) fn integer_of<T: TryFrom<i64>>(value: Value<'_>) -> Result<T, RpcError> {
    if value.type_name() != "number" {
        return Err(wrong_type(Some(value), "number"));
    }
    let parsed = value.json().parse::<i64>().ok().and_then(|number| T::try_from(number).ok());
    parsed.ok_or_else(|| RpcError::new(Code::Misc, "JSON integer out of range"))
}

pub(crate) fn integer_member<T: TryFrom<i64>>(
    object: Value<'_>,
    name: &str,
) -> Result<T, RpcError> {
    object.member(name).map_or_else(|| Err(wrong_type(None, "number")), integer_of)
}

/// Hash; `name` appears in the error.
pub(crate) fn hash_of<T: FromStr>(text: &str, name: &str) -> Result<T, RpcError> {
    text.parse().map_err(|_| bad_hash(text, name))
}

pub(crate) fn hash_member(object: Value<'_>, name: &str) -> Result<Txid, RpcError> {
    let value = object.member(name).ok_or_else(|| wrong_type(None, "string"))?;
    hash_of(&string_of(value)?, name)
}

pub(crate) fn hex_member(object: Value<'_>, name: &str) -> Result<Vec<u8>, RpcError> {
    let value = object.member(name).ok_or_else(|| wrong_type(None, "string"))?;
    hex_of(value, name)
}

/// Hexadecimal data; `name` appears in the error.
pub(crate) fn hex_of(value: Value<'_>, name: &str) -> Result<Vec<u8>, RpcError> {
    value.hex().ok_or_else(|| {
        let shown: String = value.string().unwrap_or_default().chars().take(SHOWN_MAX).collect();
        let text = format!("{name} must be hexadecimal string (not '{shown}')");
        RpcError::new(Code::InvalidParameter, text)
    })
}

/// Amount in coins, converted to satoshis.
pub(crate) fn amount_of(value: Value<'_>) -> Result<i64, RpcError> {
    let text = match value.type_name() {
        "string" => string_of(value)?,
        "number" => Cow::Borrowed(value.json()),
        _ => return Err(RpcError::new(Code::Type, "Amount is not a number or string")),
    };
    let sat = parse_amount(&text).ok_or_else(|| RpcError::new(Code::Type, "Invalid amount"))?;
    if !(0..=MONEY_MAX_SAT).contains(&sat) {
        return Err(RpcError::new(Code::Type, "Amount out of range"));
    }
    Ok(sat)
}

/// Checks the types of an object's members; all are optional, others are rejected (`RPCTypeCheckObj`).
pub(crate) fn check_members(
    object: Option<Value<'_>>,
    types: &[(&str, &str)],
) -> Result<(), RpcError> {
    for (name, value) in object.and_then(Value::members).unwrap_or_default() {
        let Some((_, expected)) = types.iter().find(|(known, _)| *known == name) else {
            return Err(RpcError::new(Code::Type, format!("Unexpected key {name}")));
        };
        check_member(&name, value, expected)?;
    }
    Ok(())
}

/// As [`check_members`], with all members required.
pub(crate) fn require_members(object: Value<'_>, types: &[(&str, &str)]) -> Result<(), RpcError> {
    if object.type_name() != "object" {
        return Err(wrong_type(Some(object), "object"));
    }
    for (name, expected) in types {
        require_member(object, name, expected)?;
    }
    check_members(Some(object), types)
}

pub(crate) fn require_member(
    object: Value<'_>,
    name: &str,
    expected: &str,
) -> Result<(), RpcError> {
    match object.member(name) {
        Some(value) => check_member(name, value, expected),
        None => Err(RpcError::new(Code::Type, format!("Missing {name}"))),
    }
}

fn check_member(name: &str, value: Value<'_>, expected: &str) -> Result<(), RpcError> {
    let found = value.type_name();
    if found == expected || found == "null" {
        return Ok(());
    }
    let text =
        format!("JSON value of type {found} for field {name} is not of expected type {expected}");
    Err(RpcError::new(Code::Type, text))
}

type Members<'a> = Vec<(String, Value<'a>)>;

/// Extracts members of an options argument (Core's `OBJ_NAMED_PARAMS`).
fn split_options<'a>(
    specs: &[ArgSpec],
    members: Members<'a>,
) -> Result<(Members<'a>, Members<'a>), RpcError> {
    let with_options = |spec: &ArgSpec| Some((spec.names, spec.options()?.collect::<Vec<_>>()));
    let Some((whole, names)) = specs.iter().find_map(with_options) else {
        return Ok((members, Vec::new()));
    };
    let is_option = |member: &(String, Value<'a>)| names.contains(&member.0.as_str());
    let (options, members): (Members<'a>, Members<'a>) = members.into_iter().partition(is_option);
    let bad = |message: String| Err(RpcError::new(Code::InvalidParameter, message));
    for (index, (name, _)) in options.iter().enumerate() {
        if members.iter().any(|member| member.0 == whole) {
            return bad(format!("Parameter {whole} conflicts with parameter {name}"));
        }
        if options[..index].iter().any(|other| other.0 == *name) {
            return bad(format!("Parameter {name} specified multiple times"));
        }
    }
    Ok((members, options))
}

/// Orders named arguments by the specification. An argument `args` holds leading positional ones.
fn order_by_name<'a>(
    specs: &[ArgSpec],
    members: &[(String, Value<'a>)],
) -> Result<Vec<Option<Value<'a>>>, RpcError> {
    let bad = |message: String| Err(RpcError::new(Code::InvalidParameter, message));
    let mut seen = HashSet::with_capacity(members.len());
    if let Some((name, _)) = members.iter().find(|(name, _)| !seen.insert(name)) {
        return bad(format!("Parameter {name} specified multiple times"));
    }
    let mut left: Vec<&(String, Value<'a>)> = members.iter().collect();
    let mut take = |name: &str| {
        let at = left.iter().position(|member| member.0 == name)?;
        Some(left.remove(at).1)
    };
    // Of several names of one argument the first in the specification is used, and the others are unknown arguments.
    let mut values: Vec<_> =
        specs.iter().map(|spec| spec.names.split('|').find_map(&mut take)).collect();
    let positional = take("args");
    if let Some(positional) = positional.filter(|value| value.type_name() == "array") {
        for (index, value) in positional.elements().unwrap_or_default().into_iter().enumerate() {
            match values.get_mut(index) {
                None => values.push(Some(value)),
                Some(place @ None) => *place = Some(value),
                Some(Some(_)) => {
                    return bad(format!(
                        "Parameter {} specified twice both as positional and named argument",
                        specs[index].names
                    ));
                }
            }
        }
    } else if positional.is_some() {
        return bad("Unknown named parameter args".to_owned());
    }
    if let Some((name, _)) = left.first() {
        return bad(format!("Unknown named parameter {name}"));
    }
    let given = values.iter().rposition(Option::is_some).map_or(0, |at| at + 1);
    values.truncate(given);
    Ok(values)
}

fn as_bool(value: Option<Value<'_>>, default: bool) -> Result<bool, RpcError> {
    match value.map(Value::json) {
        None => Ok(default),
        Some("true") => Ok(true),
        Some("false") => Ok(false),
        Some(_) => Err(wrong_type(value, "bool")),
    }
}

/// Error for an argument, or a part of one, of the wrong JSON type.
pub(crate) fn wrong_type(value: Option<Value<'_>>, expected: impl Display) -> RpcError {
    let found = value.map_or("null", Value::type_name);
    RpcError::new(
        Code::Type,
        format!("JSON value of type {found} is not of expected type {expected}"),
    )
}

fn bad_hash(text: &str, name: &str) -> RpcError {
    let message = if text.len() == 64 {
        format!("{name} must be hexadecimal string (not '{text}')")
    } else {
        // Truncate: the text may be a whole block in the wrong position.
        let shown: String = text.chars().take(128).collect();
        format!("{name} must be of length 64 (not {}, for '{shown}')", text.len())
    };
    RpcError::new(Code::InvalidParameter, message)
}

/// JSON number with at most eight decimals, times 10^8 (`ParseFixedPoint`).
fn parse_amount(text: &str) -> Option<i64> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (mantissa, ""),
    };
    let digits_only = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let padded = whole.len() > 1 && whole.starts_with('0');
    if whole.is_empty() || padded || !digits_only(whole) || !digits_only(fraction) {
        return None;
    }
    let digits = format!("{whole}{fraction}");
    // Trailing zeros are not decimals.
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return Some(0);
    }
    let dropped = i32::try_from(digits.len() - significant.len()).ok()?;
    let scale = exponent
        .checked_sub(i32::try_from(fraction.len()).ok()?)?
        .checked_add(dropped)?
        .checked_add(AMOUNT_DECIMALS)?;
    let factor = 10i64.checked_pow(u32::try_from(scale).ok()?)?;
    let magnitude = significant.parse::<i64>().ok()?.checked_mul(factor)?;
    Some(if negative { -magnitude } else { magnitude })
}

/// Maximum length of invalid data in an error.
const SHOWN_MAX: usize = 1024;
const COIN: i64 = 100_000_000;
const AMOUNT_DECIMALS: i32 = 8;
const MONEY_MAX_SAT: i64 = 21_000_000 * COIN;

#[cfg(test)]
mod tests {
    use super::super::method;
    use super::*;
    use crate::jsonrpc::request::Body;

    /// Arguments of a call in the order of the method's specification.
    fn args(method: &str, params: &str) -> Result<Vec<Option<String>>, RpcError> {
        let method = method::find(method).unwrap();
        let text = format!(r#"{{"method":"x","params":{params}}}"#);
        let text = Text::from(text.as_bytes());
        let Ok(Body::Single(envelope)) = Body::parse(text.as_bytes()) else { panic!("{params}") };
        let request = envelope.check(&text).1.unwrap();
        let args = method.arguments(request.params)?;
        Ok(args.values.iter().map(|value| value.map(|v| v.json().to_owned())).collect())
    }

    fn message(method: &str, params: &str) -> (i32, String) {
        let error = args(method, params).unwrap_err();
        (error.code.number(), error.message.into_owned())
    }

    #[test]
    fn arguments_are_ordered_by_position_or_name() {
        let hash = "\"00\"";
        let given = |values: &[Option<&str>]| values.iter().map(|v| v.map(str::to_owned)).collect();
        for (params, expected) in [
            (r#"["00"]"#, [Some(hash), None]),
            (r#"["00",2]"#, [Some(hash), Some("2")]),
            (r#"["00",null]"#, [Some(hash), None]),
            (r#"{"blockhash":"00"}"#, [Some(hash), None]),
            (r#"{"verbosity":2,"blockhash":"00"}"#, [Some(hash), Some("2")]),
            (r#"{"verbose":true,"blockhash":"00"}"#, [Some(hash), Some("true")]),
            (r#"{"args":["00"],"verbosity":0}"#, [Some(hash), Some("0")]),
        ] {
            let expected: Vec<Option<String>> = given(&expected);
            assert_eq!(args("getblock", params).unwrap(), expected, "{params}");
        }
    }

    #[test]
    fn rejects_bad_arguments_with_core_errors() {
        for (method, params, code, text) in [
            (
                "getblockhash",
                r#"{"height":1,"height":2}"#,
                -8,
                "Parameter height specified multiple times",
            ),
            ("getblockhash", r#"{"hight":1}"#, -8, "Unknown named parameter hight"),
            (
                "getblockhash",
                r#"{"args":[1],"height":2}"#,
                -8,
                "Parameter height specified twice both as positional and named argument",
            ),
            (
                "getblock",
                r#"{"blockhash":"00","verbose":1,"verbosity":1}"#,
                -8,
                "Unknown named parameter verbose",
            ),
            (
                "dumptxoutset",
                r#"{"path":"x","options":{},"rollback":1}"#,
                -8,
                "Parameter options conflicts with parameter rollback",
            ),
            ("dumptxoutset", r#"{"path":"x","rolback":1}"#, -8, "Unknown named parameter rolback"),
            (
                "getblockhash",
                r#"["x"]"#,
                -3,
                "Wrong type passed:\n{\n    \"Position 1 (height)\": \"JSON value of type string is not of expected type number\"\n}",
            ),
            (
                "getblockhash",
                "[null]",
                -3,
                "Wrong type passed:\n{\n    \"Position 1 (height)\": \"JSON value of type null is not of expected type number\"\n}",
            ),
            (
                "gettxout",
                "[1,true]",
                -3,
                "Wrong type passed:\n{\n    \"Position 1 (txid)\": \"JSON value of type number is not of expected type string\",\n    \"Position 2 (n)\": \"JSON value of type bool is not of expected type number\"\n}",
            ),
        ] {
            assert_eq!(message(method, params), (code, text.to_owned()), "{params}");
        }
    }

    #[test]
    fn wrong_argument_count_returns_the_help() {
        for (method, params) in
            [("getblockhash", "[]"), ("getblockhash", "[1,2]"), ("uptime", "[1]")]
        {
            let (code, text) = message(method, params);
            assert!(code == -1 && text.starts_with(method), "{text}");
        }
    }

    #[test]
    fn amounts_parse_exactly() {
        for (text, expected) in [
            ("0", Some(0)),
            ("0.00000001", Some(1)),
            ("1", Some(COIN)),
            ("1.10000000000", Some(110_000_000)),
            ("21000000", Some(MONEY_MAX_SAT)),
            ("1e-8", Some(1)),
            ("1.5E2", Some(15_000_000_000)),
            ("-1", Some(-COIN)),
            ("0.000000001", None),
            ("01", None),
            (".5", None),
            ("5.", None),
            ("", None),
            ("+1", None),
            ("1e99", None),
            ("0x1", None),
            ("99999999999999999999", None),
            ("1e-2147483648", None),
        ] {
            assert_eq!(parse_amount(text), expected, "{text}");
        }
    }
}
