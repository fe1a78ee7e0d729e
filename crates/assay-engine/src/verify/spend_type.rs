//! Spend types for statistics.

use assay_consensus::script::Flags;
use assay_consensus::script::opcode::{Instructions, is_p2sh, op, witness_program};
use assay_wire::{TxIn, TxOut, Witness};

/// Type of an output and of its spend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpendType {
    P2pk,
    P2pkh,
    /// Bare m-of-n.
    Multisig,
    P2shP2wpkh,
    P2shP2wsh,
    /// P2SH with any other script.
    P2shOther,
    P2wpkh,
    P2wsh,
    P2trKey,
    P2trScript,
    Other,
}

impl SpendType {
    /// All types in output order.
    pub const ALL: [Self; 11] = [
        Self::P2pk,
        Self::P2pkh,
        Self::Multisig,
        Self::P2shP2wpkh,
        Self::P2shP2wsh,
        Self::P2shOther,
        Self::P2wpkh,
        Self::P2wsh,
        Self::P2trKey,
        Self::P2trScript,
        Self::Other,
    ];

    /// The name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::P2pk => "p2pk",
            Self::P2pkh => "p2pkh",
            Self::Multisig => "multisig",
            Self::P2shP2wpkh => "p2sh-p2wpkh",
            Self::P2shP2wsh => "p2sh-p2wsh",
            Self::P2shOther => "p2sh-other",
            Self::P2wpkh => "p2wpkh",
            Self::P2wsh => "p2wsh",
            Self::P2trKey => "p2tr-key",
            Self::P2trScript => "p2tr-script",
            Self::Other => "other",
        }
    }

    /// The type of an input under these script rules. Uses patterns only: the spend may be invalid.
    pub fn of(input: &TxIn<'_>, spent: &TxOut<'_>, witness: Witness<'_>, flags: Flags) -> Self {
        let script = spent.script_pubkey;
        if is_p2sh(script) && flags.contains(Flags::P2SH) {
            return p2sh_type(input.script_sig, flags);
        }
        if let Some((version, program)) = witness_program(script)
            && flags.contains(Flags::WITNESS)
        {
            return match (version, program.len()) {
                (0, 20) => Self::P2wpkh,
                (0, 32) => Self::P2wsh,
                (1, 32) if flags.contains(Flags::TAPROOT) => taproot_type(witness),
                _ => Self::Other,
            };
        }
        match script {
            [op::DUP, op::HASH160, 20, hash @ .., op::EQUALVERIFY, op::CHECKSIG]
                if hash.len() == 20 =>
            {
                Self::P2pkh
            }
            [33, 2 | 3, key @ .., op::CHECKSIG] if key.len() == 32 => Self::P2pk,
            [65, 4 | 6 | 7, key @ .., op::CHECKSIG] if key.len() == 64 => Self::P2pk,
            _ if is_multisig(script) => Self::Multisig,
            _ => Self::Other,
        }
    }
}

/// A witness program in P2SH is the only push of the input script (BIP141).
fn p2sh_type(script_sig: &[u8], flags: Flags) -> SpendType {
    let program = match script_sig {
        [length, program @ ..] if usize::from(*length) == program.len() => witness_program(program),
        _ => None,
    };
    match program {
        Some((0, program)) if flags.contains(Flags::WITNESS) && program.len() == 20 => {
            SpendType::P2shP2wpkh
        }
        Some((0, program)) if flags.contains(Flags::WITNESS) && program.len() == 32 => {
            SpendType::P2shP2wsh
        }
        _ => SpendType::P2shOther,
    }
}

/// One item, without the annex, is a signature; more are a script with its inputs (BIP341).
fn taproot_type(witness: Witness<'_>) -> SpendType {
    let items = witness.len();
    let has_annex =
        items >= 2 && witness.iter().last().is_some_and(|item| item.first() == Some(&0x50));
    if items - usize::from(has_annex) >= 2 { SpendType::P2trScript } else { SpendType::P2trKey }
}

fn is_multisig(script: &[u8]) -> bool {
    let [op::PUSH1..=op::PUSH16, .., op::PUSH1..=op::PUSH16, op::CHECKMULTISIG] = script else {
        return false;
    };
    let keys = &script[1..script.len() - 2];
    let mut count = 0;
    for instruction in Instructions::new(keys) {
        match instruction.map(|instruction| instruction.data.len()) {
            Some(33 | 65) => count += 1,
            _ => return false,
        }
    }
    let (required, claimed) = (script[0] - op::PUSH1 + 1, script[script.len() - 2] - op::PUSH1 + 1);
    count == usize::from(claimed) && required <= claimed
}

/// Sums over the inputs of one type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TypeCount {
    pub inputs: u64,
    /// Executed signature checks; `SigChecks` on Bitcoin Cash.
    pub sig_checks: u64,
}

/// Numbers of inputs and signatures by type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TypeCounts([TypeCount; SpendType::ALL.len()]);

impl TypeCounts {
    pub(super) fn add(&mut self, spend_type: SpendType, inputs: u64, sig_checks: u64) {
        let count = &mut self.0[spend_type as usize];
        count.inputs += inputs;
        count.sig_checks += sig_checks;
    }

    /// The count of one type.
    pub fn get(&self, spend_type: SpendType) -> TypeCount {
        self.0[spend_type as usize]
    }

    pub fn total(&self) -> TypeCount {
        self.0.iter().fold(TypeCount::default(), |sum, count| TypeCount {
            inputs: sum.inputs + count.inputs,
            sig_checks: sum.sig_checks + count.sig_checks,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_testkit::chain::TxBuilder;
    use assay_wire::OutPoint;

    fn check(script_pubkey: &[u8], script_sig: &[u8], expected: SpendType) {
        let input = TxIn { prevout: OutPoint::NULL, script_sig, sequence: 0 };
        let spent = TxOut { value: 0, script_pubkey };
        let found = SpendType::of(&input, &spent, Witness::EMPTY, Flags::BITCOIN_BLOCK);
        assert_eq!(found, expected, "{}", found.name());
    }

    fn script(parts: &[&[u8]]) -> Vec<u8> {
        parts.concat()
    }

    #[test]
    fn patterns() {
        let (key, hash, program) = ([2; 33], [7; 20], [9; 32]);
        check(&script(&[&[33], &key, &[0xac]]), &[], SpendType::P2pk);
        check(&script(&[&[65, 4], &[1; 64], &[0xac]]), &[], SpendType::P2pk);
        check(&script(&[&[0x76, 0xa9, 20], &hash, &[0x88, 0xac]]), &[], SpendType::P2pkh);
        let two_of_two = script(&[&[0x52, 33], &key, &[33], &key, &[0x52, 0xae]]);
        check(&two_of_two, &[], SpendType::Multisig);
        check(&script(&[&[0x53], &two_of_two[1..]]), &[], SpendType::Other);
        let p2sh = script(&[&[0xa9, 20], &hash, &[0x87]]);
        check(&p2sh, &script(&[&[22, 0, 20], &hash]), SpendType::P2shP2wpkh);
        check(&p2sh, &script(&[&[34, 0, 32], &program]), SpendType::P2shP2wsh);
        check(&p2sh, &script(&[&[0, 1, 0x51]]), SpendType::P2shOther);
        check(&script(&[&[0, 20], &hash]), &[], SpendType::P2wpkh);
        check(&script(&[&[0, 32], &program]), &[], SpendType::P2wsh);
        check(&script(&[&[0x51, 32], &program]), &[], SpendType::P2trKey);
        check(&script(&[&[0x52, 32], &program]), &[], SpendType::Other);
        check(&[], &[], SpendType::Other);
    }

    #[test]
    fn an_annex_is_no_script() {
        let spend = |items: &[&[u8]]| {
            let tx = TxBuilder::new(2).input(1, 1, &[], 0).output(0, &[]).witness(items).build();
            taproot_type(tx.view().witness(0))
        };
        assert_eq!(spend(&[&[1; 64]]), SpendType::P2trKey);
        assert_eq!(spend(&[&[1; 64], &[0x50, 1]]), SpendType::P2trKey);
        assert_eq!(spend(&[&[0x50]]), SpendType::P2trKey);
        assert_eq!(spend(&[&[0x51], &[0xc0; 33]]), SpendType::P2trScript);
        assert_eq!(spend(&[&[1], &[0x51], &[0xc0; 33], &[0x50]]), SpendType::P2trScript);
    }

    #[test]
    fn sums() {
        let mut counts = TypeCounts::default();
        counts.add(SpendType::Multisig, 1, 3);
        counts.add(SpendType::Multisig, 1, 2);
        counts.add(SpendType::Other, 1, 0);
        assert_eq!(counts.get(SpendType::Multisig), TypeCount { inputs: 2, sig_checks: 5 });
        assert_eq!(counts.total(), TypeCount { inputs: 3, sig_checks: 5 });
        for (index, spend_type) in SpendType::ALL.into_iter().enumerate() {
            assert_eq!(spend_type as usize, index);
        }
    }
}
