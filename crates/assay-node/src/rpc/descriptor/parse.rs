//! Descriptor parser; errors use Bitcoin Core's wording (`script/descriptor.cpp`, `ParseScript`).

use assay_consensus::params::ChainParams;
use assay_consensus::script::opcode::{MAX_ELEMENT_SIZE, MAX_MULTISIG_KEYS};

use super::{Descriptor, Key, KeyContext};
use crate::jsonrpc::unhex;
use crate::rpc::decode::Payee;
use crate::rpc::lock::multisig;
use crate::rpc::script;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Context {
    Top,
    Sh,
    Wsh,
}

impl Context {
    const fn keys(self) -> KeyContext {
        if matches!(self, Self::Wsh) { KeyContext::Witness } else { KeyContext::Legacy }
    }
}

/// Parses a descriptor with or without checksum.
pub(super) fn parse(params: &ChainParams, text: &str) -> Result<Vec<Descriptor>, String> {
    let parts: Vec<&str> = text.split('#').collect();
    let (text, checksum) = match parts[..] {
        [text] => (text, None),
        [text, checksum] => (text, Some(checksum)),
        _ => return Err("Multiple '#' symbols".to_owned()),
    };
    if let Some(given) = checksum.filter(|checksum| checksum.len() != 8) {
        return Err(format!("Expected 8 character checksum, not {} characters", given.len()));
    }
    let Some(computed) = script::descriptor_checksum(text) else {
        return Err("Invalid characters in payload".to_owned());
    };
    if let Some(given) = checksum.filter(|given| *given != computed) {
        return Err(format!(
            "Provided checksum '{given}' does not match computed checksum '{computed}'"
        ));
    }
    expression(params, text, Context::Top)
}

/// Argument text of `name(…)`.
fn inside<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')')
}

fn expression(
    params: &ChainParams,
    text: &str,
    context: Context,
) -> Result<Vec<Descriptor>, String> {
    let keys = |name: &str, inner: &str, context: KeyContext| {
        Key::parse(params, inner, context).map_err(|error| format!("{name}(): {error}"))
    };
    let wrap = |keys: Vec<Key>, of: fn(Key) -> Descriptor| keys.into_iter().map(of).collect();
    if let Some(inner) = inside(text, "pk") {
        return Ok(wrap(keys("pk", inner, context.keys())?, Descriptor::Pk));
    }
    if let Some(inner) = inside(text, "pkh") {
        return Ok(wrap(keys("pkh", inner, context.keys())?, Descriptor::Pkh));
    }
    for (name, is_sorted) in [("multi", false), ("sortedmulti", true)] {
        if let Some(inner) = inside(text, name) {
            return multi(params, inner, is_sorted, context);
        }
    }
    if let Some(inner) = inside(text, "wpkh") {
        if context == Context::Wsh {
            return Err("Can only have wpkh() at top level or inside sh()".to_owned());
        }
        return Ok(wrap(keys("wpkh", inner, KeyContext::Witness)?, Descriptor::Wpkh));
    }
    if let Some(inner) = inside(text, "wsh") {
        if context == Context::Wsh {
            return Err("Can only have wsh() at top level or inside sh()".to_owned());
        }
        let inner = expression(params, inner, Context::Wsh)?;
        return Ok(inner.into_iter().map(|one| Descriptor::Wsh(Box::new(one))).collect());
    }
    if context != Context::Top {
        return Err(misplaced(text, context));
    }
    if let Some(inner) = inside(text, "sh") {
        let inner = expression(params, inner, Context::Sh)?;
        return Ok(inner.into_iter().map(|one| Descriptor::Sh(Box::new(one))).collect());
    }
    if let Some(inner) = inside(text, "combo") {
        return Ok(wrap(keys("combo", inner, KeyContext::Legacy)?, Descriptor::Combo));
    }
    if let Some(inner) = inside(text, "tr") {
        if inner.contains(',') {
            return Err("tr(): script trees are not supported".to_owned());
        }
        return Ok(wrap(keys("tr", inner, KeyContext::Taproot)?, Descriptor::Tr));
    }
    if let Some(inner) = inside(text, "rawtr") {
        if inner.contains(',') {
            return Err("rawtr(): only one key expected.".to_owned());
        }
        return Ok(wrap(keys("rawtr", inner, KeyContext::Taproot)?, Descriptor::RawTr));
    }
    if let Some(inner) = inside(text, "addr") {
        let payee = Payee::parse(params, inner).map_err(|_| "Address is not valid".to_owned())?;
        return Ok(vec![Descriptor::Addr(payee.script())]);
    }
    if let Some(inner) = inside(text, "raw") {
        let script = unhex(inner.as_bytes()).filter(|script| !script.is_empty());
        let script = script.ok_or_else(|| "Raw script is not hex".to_owned())?;
        return Ok(vec![Descriptor::Raw(script)]);
    }
    Err(format!("'{text}' is not a valid descriptor function"))
}

/// Error for an expression in the wrong context.
fn misplaced(text: &str, context: Context) -> String {
    let at_top = [
        ("sh", "Can only have sh() at top level"),
        ("combo", "Can only have combo() at top level"),
        ("tr", "Can only have tr at top level"),
        ("rawtr", "Can only have rawtr at top level"),
        ("addr", "Can only have addr() at top level"),
        ("raw", "Can only have raw() at top level"),
    ];
    let found = at_top.into_iter().find(|(name, _)| inside(text, name).is_some());
    let missing = match context {
        Context::Sh => "A function is needed within P2SH",
        _ => "A function is needed within P2WSH",
    };
    found.map_or(missing, |(_, error)| error).to_owned()
}

fn multi(
    params: &ChainParams,
    inner: &str,
    is_sorted: bool,
    context: Context,
) -> Result<Vec<Descriptor>, String> {
    let mut parts = inner.split(',');
    let threshold_text = parts.next().unwrap_or_default();
    let threshold: u32 = threshold_text
        .parse()
        .map_err(|_| format!("Multi threshold '{threshold_text}' is not valid"))?;
    let mut keys: Vec<Vec<Key>> = Vec::new();
    for text in parts {
        let key = Key::parse(params, text, context.keys());
        keys.push(key.map_err(|error| format!("Multi: {error}"))?);
    }
    let count = keys.len();
    if !(1..=KEYS_MAX).contains(&count) {
        return Err(format!(
            "Cannot have {count} keys in multisig; must have between 1 and {KEYS_MAX} keys, inclusive"
        ));
    }
    if threshold < 1 {
        return Err(format!("Multisig threshold cannot be {threshold}, must be at least 1"));
    }
    if threshold as usize > count {
        return Err(format!(
            "Multisig threshold cannot be larger than the number of keys; threshold is {threshold} but only {count} keys specified"
        ));
    }
    if context == Context::Top && count > BARE_KEYS_MAX {
        return Err(format!(
            "Cannot have {count} pubkeys in bare multisig; only at most {BARE_KEYS_MAX} pubkeys"
        ));
    }
    let threshold = threshold as u8;
    if context == Context::Sh {
        let sizes = keys.iter().map(|one| if one[0].is_uncompressed() { 65 } else { 33 });
        let blanks: Vec<Vec<u8>> = sizes.map(|size| vec![0; size]).collect();
        let blanks: Vec<&[u8]> = blanks.iter().map(Vec::as_slice).collect();
        let bytes = multisig(threshold, &blanks).len();
        if bytes > MAX_ELEMENT_SIZE {
            return Err(format!(
                "P2SH script is too large, {bytes} bytes is larger than {MAX_ELEMENT_SIZE} bytes"
            ));
        }
    }
    let alternatives = keys.iter().map(Vec::len).max().unwrap_or(1);
    if keys.iter().any(|one| one.len() != 1 && one.len() != alternatives) {
        return Err("multi(): Multipath derivation paths have mismatched lengths".to_owned());
    }
    let pick = |at: usize| keys.iter().map(|one| one[at.min(one.len() - 1)].clone()).collect();
    let all =
        (0..alternatives).map(|at| Descriptor::Multi { is_sorted, threshold, keys: pick(at) });
    Ok(all.collect())
}

/// Core's `MAX_PUBKEYS_PER_MULTISIG`.
const KEYS_MAX: usize = MAX_MULTISIG_KEYS as usize;
/// Maximum number of keys in a standard bare multisig output.
const BARE_KEYS_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn scripts(text: &str) -> Vec<(String, String)> {
        let params = ChainParams::by_name("regtest").unwrap();
        let mut out = Vec::new();
        for one in parse(&params, text).unwrap() {
            for expanded in one.expand(&params, 0).unwrap() {
                out.push((faster_hex::hex_string(&expanded.script), expanded.descriptor));
            }
        }
        out
    }

    #[test]
    fn scripts_of_plain_keys() {
        let g = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
        let hash = "751e76e8199196d454941c45d1b3a323f1433bd6";
        let one = |text: &str| scripts(text).remove(0).0;
        assert_eq!(one(&format!("pk({g})")), format!("21{g}ac"));
        assert_eq!(one(&format!("pkh({g})")), format!("76a914{hash}88ac"));
        assert_eq!(one(&format!("wpkh({g})")), format!("0014{hash}"));
        let nested = one(&format!("sh(wpkh({g}))"));
        assert_eq!(nested, "a914bcfeb728b584253d5f3f70bcb780e9ef218a68f487");
        // BIP86 has no vector for this key; Core's own address verifies the tweak.
        let taproot = one(&format!("tr({})", &g[2..]));
        assert_eq!(taproot, "5120da4710964f7852695de2da025290e24af6d8c281de5a0b902b7135fd9fd74d21");
        assert_eq!(one(&format!("multi(1,{g})")), format!("5121{g}51ae"));
        let combo = scripts(&format!("combo({g})"));
        assert_eq!(combo.len(), 4);
        assert_eq!(
            combo[1].1[..],
            format!("pkh([751e76e8]{g})#{}", &combo[1].1[combo[1].1.len() - 8..])
        );
    }

    #[test]
    fn extended_keys_derive_like_core() {
        let tprv = "tprv8ZgxMBicQKsPd7Uf69XL1XwhmjHopUGep8GuEiJDZmbQz6o58LninorQAfcKZWARbtRtfnLcJ5MQ2AtHcQJCCRUcMRvmDUjyEmNUWwx8UbK";
        let found = scripts(&format!("pkh({tprv}/0h/0h/0)"));
        assert_eq!(
            found[0].1,
            "pkh([0c5f9a1e/0h/0h/0]026dbd8b2315f296d36e6b6920b1579ca75569464875c7ebe869b536a7d9503c8c)#rthll0rg"
        );
        assert_eq!(scripts(&format!("pkh({tprv}/1/1/<0;1>)")).len(), 2);
        let params = ChainParams::by_name("regtest").unwrap();
        let tpub = "tpubD6NzVbkrYhZ4WaWSyoBvQwbpLkojyoTZPRsgXELWz3Popb3qkjcJyJUGLnL4qHHoQvao8ESaAstxYSnhyswJ76uZPStJRJCTKvosUCJZL5B";
        let hardened = parse(&params, &format!("pkh({tpub}/0'/0)")).unwrap().remove(0);
        assert!(hardened.expand(&params, 0).is_err() && !hardened.is_range());
        assert!(parse(&params, &format!("pkh({tpub}/0/*)")).unwrap()[0].is_range());
    }

    #[test]
    fn detects_private_keys() {
        let params = ChainParams::by_name("regtest").unwrap();
        let wif = "cVpF924EspNh8KjYsfhgY96mmxvT6DgdWiTYMtMjuM74hJaU5psW";
        let tprv = "tprv8ZgxMBicQKsPd7Uf69XL1XwhmjHopUGep8GuEiJDZmbQz6o58LninorQAfcKZWARbtRtfnLcJ5MQ2AtHcQJCCRUcMRvmDUjyEmNUWwx8UbK";
        let key = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
        for (text, expected) in [
            (format!("pkh({wif})"), true),
            (format!("wsh(multi(1,{key},{tprv}/0/*))"), true),
            (format!("sh(wpkh({key}))"), false),
            (format!("addr({})", "mjTkW3DjgyZck4KbiRusZsqTgaYTxdSz6z"), false),
        ] {
            let all = parse(&params, &text).unwrap();
            assert_eq!(all[0].has_private_keys(), expected, "{text}");
        }
        let again = parse(&params, &format!("pkh({tprv}/<0;1;0>)")).unwrap_err();
        assert_eq!(again, "pkh(): Duplicated key path value 0 in multipath specifier");
    }

    #[test]
    fn errors_match_core() {
        let params = ChainParams::by_name("regtest").unwrap();
        for (text, expected) in [
            ("1234", "'1234' is not a valid descriptor function"),
            ("raw(5)", "Raw script is not hex"),
            ("raw(51)#", "Expected 8 character checksum, not 0 characters"),
            (
                "raw(51)#aaaaaaaa",
                "Provided checksum 'aaaaaaaa' does not match computed checksum '8lvh9jxk'",
            ),
            ("a#b#c", "Multiple '#' symbols"),
            ("addr(x)", "Address is not valid"),
            ("sh(addr(x))", "Can only have addr() at top level"),
            ("wsh(wsh(raw(51)))", "Can only have wsh() at top level or inside sh()"),
            ("pk()", "pk(): No key provided"),
            ("multi(2,03)", "Multi: Pubkey '03' is invalid"),
            ("é", "Invalid characters in payload"),
        ] {
            assert_eq!(parse(&params, text).unwrap_err(), expected, "{text}");
        }
    }
}
