//! The kinds of outputs that scripts make (Core `script/solver.cpp`, `Solver`).

use super::opcode::{has_key_size, is_p2pkh, is_p2sh, is_push_only, multisig, op, witness_program};

/// The program of Core's `ANCHOR` outputs, which anybody may spend.
const ANCHOR_PROGRAM: [u8; 2] = [0x4e, 0x73];

/// The kind of an output, with what identifies its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputKind<'a> {
    PubKey(&'a [u8]),
    PubKeyHash(&'a [u8]),
    /// The hash of a script; on Bitcoin Cash of 20 or 32 bytes.
    ScriptHash(&'a [u8]),
    Multisig {
        /// Number of keys that must sign.
        required: u8,
        keys: Vec<&'a [u8]>,
    },
    /// `OP_RETURN` and pushes.
    NullData,
    WitnessKeyHash(&'a [u8]),
    WitnessScriptHash(&'a [u8]),
    /// A Taproot output key.
    Taproot(&'a [u8]),
    /// Core's pay to anchor: its program.
    Anchor(&'a [u8]),
    /// A witness program of a later version.
    WitnessUnknown {
        version: u8,
        program: &'a [u8],
    },
    NonStandard,
}

impl<'a> OutputKind<'a> {
    /// The kind of a locking script; `is_cash` selects the rules of Bitcoin Cash.
    pub fn of(script: &'a [u8], is_cash: bool) -> Self {
        if is_p2sh(script) {
            return Self::ScriptHash(&script[2..22]);
        }
        if is_p2pkh(script) {
            return Self::PubKeyHash(&script[3..23]);
        }
        if is_cash {
            // Pay to a 32-byte script hash, on Bitcoin Cash since May 2023.
            if let [op::HASH256, 32, hash @ .., op::EQUAL] = script
                && hash.len() == 32
            {
                return Self::ScriptHash(hash);
            }
        } else if let Some((version, program)) = witness_program(script) {
            return match (version, program.len()) {
                (0, 20) => Self::WitnessKeyHash(program),
                (0, 32) => Self::WitnessScriptHash(program),
                (0, _) => Self::NonStandard,
                (1, 32) => Self::Taproot(program),
                (1, 2) if program == ANCHOR_PROGRAM => Self::Anchor(program),
                _ => Self::WitnessUnknown { version, program },
            };
        }
        match script {
            [op::RETURN, rest @ ..] if is_push_only(rest) => Self::NullData,
            [length @ (33 | 65), key @ .., op::CHECKSIG]
                if key.len() == usize::from(*length) && has_key_size(key) =>
            {
                Self::PubKey(key)
            }
            _ => multisig(script)
                .map_or(Self::NonStandard, |(required, keys)| Self::Multisig { required, keys }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_on_its_chain() {
        use OutputKind as K;
        let key = [&[2u8][..], &[7; 32]].concat();
        let long = [&[6u8][..], &[7; 64]].concat();
        let pay_to = |key: &[u8]| [&[key.len() as u8][..], key, &[op::CHECKSIG]].concat();
        let keys = [&[33][..], &key, &[65], &long].concat();
        let of_2 = |required: u8, total: u8| {
            [&[0x50 + required][..], &keys, &[0x50 + total, op::CHECKMULTISIG]].concat()
        };
        let program =
            |version: u8, bytes: &[u8]| [&[version, bytes.len() as u8][..], bytes].concat();
        let (h20, h32) = ([1u8; 20], [1u8; 32]);
        let p2sh32 = [&[0xaa, 32][..], &h32, &[0x87]].concat();
        let multisig = K::Multisig { required: 1, keys: vec![&key[..], &long[..]] };
        for (script, bitcoin, cash) in [
            (pay_to(&key), K::PubKey(&key), K::PubKey(&key)),
            (pay_to(&long), K::PubKey(&long), K::PubKey(&long)),
            (pay_to(&[9; 33]), K::NonStandard, K::NonStandard),
            (
                [&[0x76, 0xa9, 20][..], &h20, &[0x88, 0xac]].concat(),
                K::PubKeyHash(&h20),
                K::PubKeyHash(&h20),
            ),
            ([&[0xa9, 20][..], &h20, &[0x87]].concat(), K::ScriptHash(&h20), K::ScriptHash(&h20)),
            (p2sh32, K::NonStandard, K::ScriptHash(&h32)),
            (of_2(1, 2), multisig.clone(), multisig),
            (of_2(3, 2), K::NonStandard, K::NonStandard),
            (of_2(1, 3), K::NonStandard, K::NonStandard),
            (vec![0x6a], K::NullData, K::NullData),
            (vec![0x6a, 3, 1, 2, 3], K::NullData, K::NullData),
            (vec![0x6a, 3, 1, 2], K::NonStandard, K::NonStandard),
            (program(0, &h20), K::WitnessKeyHash(&h20), K::NonStandard),
            (program(0, &h32), K::WitnessScriptHash(&h32), K::NonStandard),
            (program(0, &[1; 21]), K::NonStandard, K::NonStandard),
            (program(0x51, &h32), K::Taproot(&h32), K::NonStandard),
            (program(0x51, &ANCHOR_PROGRAM), K::Anchor(&ANCHOR_PROGRAM), K::NonStandard),
            (program(0x52, &h32), K::WitnessUnknown { version: 2, program: &h32 }, K::NonStandard),
            (Vec::new(), K::NonStandard, K::NonStandard),
        ] {
            assert_eq!(K::of(&script, false), bitcoin, "{script:02x?}");
            assert_eq!(K::of(&script, true), cash, "{script:02x?}");
        }
    }
}
