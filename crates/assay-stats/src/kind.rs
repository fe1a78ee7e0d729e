//! Kinds of outputs.

use assay_consensus::script;
use assay_consensus::script::opcode::op;
use assay_wire::Encoding;
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputKind {
    P2pk,
    P2pkh,
    P2sh,
    P2wpkh,
    P2wsh,
    P2tr,
    Multisig,
    /// Any script that begins with `OP_RETURN`.
    OpReturn,
    Other,
}

impl OutputKind {
    /// All kinds, in the order of [`crate::Counts::by_kind`].
    pub const ALL: [Self; 9] = [
        Self::P2pk,
        Self::P2pkh,
        Self::P2sh,
        Self::P2wpkh,
        Self::P2wsh,
        Self::P2tr,
        Self::Multisig,
        Self::OpReturn,
        Self::Other,
    ];

    /// Name in tables and columns.
    pub fn name(self) -> &'static str {
        match self {
            Self::P2pk => "p2pk",
            Self::P2pkh => "p2pkh",
            Self::P2sh => "p2sh",
            Self::P2wpkh => "p2wpkh",
            Self::P2wsh => "p2wsh",
            Self::P2tr => "p2tr",
            Self::Multisig => "multisig",
            Self::OpReturn => "op_return",
            Self::Other => "other",
        }
    }

    /// Kind of an output script. Without witness encoding, witness programs are [`Self::Other`].
    pub fn of(script_pubkey: &[u8], encoding: Encoding) -> Self {
        let is_cash = encoding == Encoding::Legacy;
        match script::OutputKind::of(script_pubkey, is_cash) {
            _ if script_pubkey.first() == Some(&op::RETURN) => Self::OpReturn,
            script::OutputKind::PubKey(_) => Self::P2pk,
            script::OutputKind::PubKeyHash(_) => Self::P2pkh,
            script::OutputKind::ScriptHash(hash) if hash.len() == 20 => Self::P2sh,
            script::OutputKind::WitnessKeyHash(_) => Self::P2wpkh,
            script::OutputKind::WitnessScriptHash(_) => Self::P2wsh,
            script::OutputKind::Taproot(_) => Self::P2tr,
            script::OutputKind::Multisig { .. } => Self::Multisig,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(parts: &[&[u8]]) -> Vec<u8> {
        parts.concat()
    }

    #[test]
    fn every_kind_is_recognised() {
        use OutputKind::{Multisig, OpReturn, Other, P2pk, P2pkh, P2sh, P2tr, P2wpkh, P2wsh};
        let (short, long) = ([&[2u8][..], &[7; 32]].concat(), [&[4u8][..], &[7; 64]].concat());
        let push = |key: &[u8]| [&[key.len() as u8][..], key].concat();
        let of_2 = [push(&short), push(&long)].concat();
        let cases: [(Vec<u8>, OutputKind); 16] = [
            (script(&[&[33], &short, &[0xac]]), P2pk),
            (script(&[&[65], &long, &[0xac]]), P2pk),
            (script(&[&[33], &[9; 33], &[0xac]]), Other),
            (script(&[&[0x76, 0xa9, 20], &[1; 20], &[0x88, 0xac]]), P2pkh),
            (script(&[&[0xa9, 20], &[1; 20], &[0x87]]), P2sh),
            (script(&[&[0, 20], &[1; 20]]), P2wpkh),
            (script(&[&[0, 32], &[1; 32]]), P2wsh),
            (script(&[&[0x51, 32], &[1; 32]]), P2tr),
            (script(&[&[0x52, 32], &[1; 32]]), Other),
            (script(&[&[0x51], &of_2, &[0x52, 0xae]]), Multisig),
            (script(&[&[0x53], &of_2, &[0x52, 0xae]]), Other),
            (script(&[&[0x51], &of_2, &[0x53, 0xae]]), Other),
            (script(&[&[0x51], &of_2, &[0x52, 0xae, 0xae]]), Other),
            (vec![0x6a], OpReturn),
            (vec![0x6a, 4, 1, 2], OpReturn),
            (Vec::new(), Other),
        ];
        for (script, kind) in cases {
            assert_eq!(OutputKind::of(&script, Encoding::Segwit), kind, "{script:02x?}");
            let legacy = if matches!(kind, P2wpkh | P2wsh | P2tr) { Other } else { kind };
            assert_eq!(OutputKind::of(&script, Encoding::Legacy), legacy, "{script:02x?}");
        }
    }

    #[test]
    fn the_order_of_counting_is_the_order_of_variants() {
        for (index, kind) in OutputKind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, index, "{}", kind.name());
        }
    }
}
