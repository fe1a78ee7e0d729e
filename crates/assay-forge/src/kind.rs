//! Script kinds of forged outputs, with size and cost bounds of spending them.

use assay_ledger::Series;

/// Script kind of an output. The discriminants are stored, one byte per coin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// Pay to public key hash, ECDSA.
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
    pub const ALL: [Self; 10] = [
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

    /// Name in recipes and ledgers.
    pub fn name(self) -> &'static str {
        match self {
            Self::P2pkh => "p2pkh",
            Self::P2shP2wpkh => "p2sh_p2wpkh",
            Self::P2wpkh => "p2wpkh",
            Self::P2wsh => "p2wsh_2of3",
            Self::P2trKey => "p2tr_key",
            Self::P2trScript => "p2tr_script",
            Self::P2pk => "p2pk",
            Self::P2shMulti => "p2sh_2of3",
            Self::Multi => "multisig_1of2",
            Self::OpReturn => "op_return",
        }
    }

    /// Bytes of an output of this kind: value, script length and script.
    pub fn output_bytes(self) -> u64 {
        9 + match self {
            Self::P2pkh => 25,
            Self::P2shP2wpkh | Self::P2shMulti => 23,
            Self::P2wpkh | Self::OpReturn => 22,
            Self::P2wsh | Self::P2trKey | Self::P2trScript => 34,
            Self::P2pk => 67,
            Self::Multi => 71,
        }
    }

    /// Upper bound of the bytes of an input without its witness. A low-S DER signature with its hash type has at most 72 bytes.
    pub fn input_bytes_max(self) -> u64 {
        match self {
            Self::P2pkh => 36 + 1 + 73 + 34 + 4,
            Self::P2shP2wpkh => 36 + 1 + 23 + 4,
            Self::P2pk => 36 + 1 + 73 + 4,
            Self::P2shMulti => 36 + 3 + 1 + 73 + 73 + 107 + 4,
            Self::Multi => 36 + 1 + 1 + 73 + 4,
            _ => 36 + 1 + 4,
        }
    }

    /// Upper bound of the bytes of its witness, including the item count.
    pub fn witness_bytes_max(self) -> u64 {
        match self {
            Self::P2pkh | Self::P2pk | Self::P2shMulti | Self::Multi | Self::OpReturn => 1,
            Self::P2shP2wpkh | Self::P2wpkh => 1 + 73 + 34,
            Self::P2wsh => 1 + 1 + 73 + 73 + 106,
            Self::P2trKey => 1 + 65,
            Self::P2trScript => 1 + 65 + 35 + 34,
        }
    }

    /// Valid signatures that spending one such output verifies.
    pub fn signatures(self) -> u64 {
        match self {
            Self::P2wsh | Self::P2shMulti => 2,
            Self::OpReturn => 0,
            _ => 1,
        }
    }

    /// Signature-operation cost of spending (Core, `GetTransactionSigOpCost`).
    pub fn input_sigops_cost(self) -> u64 {
        match self {
            Self::P2shP2wpkh | Self::P2wpkh => 1,
            Self::P2wsh => 3,
            // Legacy operations cost four, and a redeem script counts its keys exactly (BIP141).
            Self::P2shMulti => 12,
            Self::P2pkh
            | Self::P2trKey
            | Self::P2trScript
            | Self::P2pk
            | Self::Multi
            | Self::OpReturn => 0,
        }
    }

    /// Signature-operation cost of creating: a bare CHECKSIG counts four times (BIP141), a bare CHECKMULTISIG as 20 of them.
    pub fn output_sigops_cost(self) -> u64 {
        match self {
            Self::P2pkh | Self::P2pk => 4,
            Self::Multi => 80,
            _ => 0,
        }
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
