//! Script kinds of forged outputs, with size and cost bounds of spending them.

use assay_ledger::Series;

/// Script kind of an output. The discriminants are stored, one byte per coin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Kind {
    P2pkh = 0,
    /// P2WPKH nested in P2SH (BIP141), ECDSA.
    P2shP2wpkh = 1,
    /// Pay to witness public key hash (BIP141), ECDSA.
    P2wpkh = 2,
    /// Pay to witness script hash: 2-of-3 CHECKMULTISIG (BIP141), ECDSA.
    P2wsh = 3,
    /// Taproot, spent by the key path (BIP341), Schnorr. The derived key is the output key, without a tweak.
    P2trKey = 4,
    /// Taproot, spent by a one-leaf script `<key> CHECKSIG` (BIP342), Schnorr.
    P2trScript = 5,
    /// Pay to an uncompressed public key, ECDSA: used by miners and the first wallets.
    P2pk = 6,
    /// Pay to script hash (BIP16): 2-of-3 CHECKMULTISIG, ECDSA.
    P2shMulti = 7,
    /// Bare 1-of-2 CHECKMULTISIG, ECDSA.
    Multi = 8,
    /// `OP_RETURN` with 20 bytes: unspendable, never in the UTXO set.
    OpReturn = 9,
}

impl From<Series> for Kind {
    fn from(series: Series) -> Self {
        match series {
            Series::Legacy => Self::P2pkh,
            Series::Segwit => Self::P2wpkh,
            Series::Taproot => Self::P2trKey,
        }
    }
}

impl Kind {
    /// In the order of the discriminants.
    pub(crate) const ALL: [Self; 10] = [
        Self::P2pkh,
        Self::P2shP2wpkh,
        Self::P2wpkh,
        Self::P2wsh,
        Self::P2trKey,
        Self::P2trScript,
        Self::P2pk,
        Self::P2shMulti,
        Self::Multi,
        Self::OpReturn,
    ];

    fn properties(self) -> &'static Properties {
        &PROPERTIES[self as usize]
    }

    pub(crate) fn name(self) -> &'static str {
        self.properties().0
    }

    /// Bytes of an output of this kind: value, script length and script.
    pub(crate) fn output_bytes(self) -> u64 {
        9 + self.properties().1
    }

    /// Upper bound of the bytes of an input without its witness.
    pub(crate) fn input_bytes_max(self) -> u64 {
        self.properties().2
    }

    /// Upper bound of the bytes of its witness, including the item count.
    pub(crate) fn witness_bytes_max(self) -> u64 {
        self.properties().3
    }

    /// Valid signatures that spending one such output verifies.
    pub(crate) fn signatures(self) -> u64 {
        self.properties().4
    }

    /// Signature-operation cost of spending (Core, `GetTransactionSigOpCost`).
    pub(crate) fn input_sigops_cost(self) -> u64 {
        self.properties().5
    }

    pub(crate) fn output_sigops_cost(self) -> u64 {
        self.properties().6
    }

    pub(crate) fn has_witness(self) -> bool {
        self.is_taproot() || matches!(self, Self::P2shP2wpkh | Self::P2wpkh | Self::P2wsh)
    }

    /// True if spending uses the original signature hash, which covers the whole transaction for every input.
    pub(crate) fn is_legacy(self) -> bool {
        !self.has_witness() && self != Self::OpReturn
    }

    pub(crate) fn is_taproot(self) -> bool {
        matches!(self, Self::P2trKey | Self::P2trScript)
    }

    /// The kind in the low bits of a stored byte.
    pub(crate) fn from_stored(byte: u8) -> Self {
        Self::ALL[usize::from(byte & !FUNDING)]
    }
}

/// Name; bytes of the output script, of an input at most, and of its witness at most; signatures; signature-operation cost of
/// spending and of creating.
type Properties = (&'static str, u64, u64, u64, u64, u64, u64);

/// In the order of [`Kind::ALL`]. A low-S DER signature with its hash type has at most 72 bytes. Legacy operations cost four: a redeem
/// script counts its keys exactly, a bare CHECKMULTISIG as 20 CHECKSIG (BIP141).
const PROPERTIES: [Properties; Kind::ALL.len()] = [
    ("p2pkh", 25, 36 + 1 + 73 + 34 + 4, 1, 1, 0, 4),
    ("p2sh_p2wpkh", 23, 36 + 1 + 23 + 4, 1 + 73 + 34, 1, 1, 0),
    ("p2wpkh", 22, 36 + 1 + 4, 1 + 73 + 34, 1, 1, 0),
    ("p2wsh_2of3", 34, 36 + 1 + 4, 1 + 1 + 73 + 73 + 106, 2, 3, 0),
    ("p2tr_key", 34, 36 + 1 + 4, 1 + 65, 1, 0, 0),
    ("p2tr_script", 34, 36 + 1 + 4, 1 + 65 + 35 + 34, 1, 0, 0),
    ("p2pk", 67, 36 + 1 + 73 + 4, 1, 1, 0, 4),
    ("p2sh_2of3", 23, 36 + 3 + 1 + 73 + 73 + 107 + 4, 1, 2, 12, 0),
    ("multisig_1of2", 71, 36 + 1 + 1 + 73 + 4, 1, 1, 0, 80),
    ("op_return", 22, 36 + 1 + 4, 1, 0, 0, 0),
];

/// Flag in the byte of a stored kind: this output pays the key of the coinbase that funded its block instead of its own (split
/// and change outputs of the published generator).
pub(crate) const FUNDING: u8 = 0x80;

/// Size bound of a transaction being planned.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bound {
    inputs: u64,
    outputs: u64,
    base: u64,
    witness: u64,
    any_witness: bool,
    sigops_cost: u64,
}

impl Bound {
    pub(crate) fn input(&mut self, kind: Kind) {
        self.inputs += 1;
        self.base += kind.input_bytes_max();
        self.witness += kind.witness_bytes_max();
        self.any_witness |= kind.has_witness();
        self.sigops_cost += kind.input_sigops_cost();
    }

    pub(crate) fn outputs(&mut self, kinds: &[Kind]) {
        for kind in kinds {
            self.output(*kind);
        }
    }

    pub(crate) fn output(&mut self, kind: Kind) {
        self.outputs += 1;
        self.base += kind.output_bytes();
        self.sigops_cost += kind.output_sigops_cost();
    }

    /// Upper bound of the weight; four times the size without witnesses.
    pub(crate) fn weight(&self) -> u64 {
        let counts = compact_len(self.inputs) + compact_len(self.outputs);
        let witness = if self.any_witness { self.witness + 2 } else { 0 };
        4 * (self.base + counts + 8) + witness
    }

    /// Upper bound of the virtual size (BIP141), which determines the fee.
    pub(crate) fn vsize(&self) -> u64 {
        self.weight().div_ceil(4)
    }

    pub(crate) fn sigops_cost(&self) -> u64 {
        self.sigops_cost
    }
}

fn compact_len(n: u64) -> u64 {
    assay_wire::encode::compact_size_len(n) as u64
}
