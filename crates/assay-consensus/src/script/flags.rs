//! Which script rules apply: a set of bits, named as Bitcoin Core names them.

use std::ops::{BitAnd, BitOr, BitOrAssign, Not};

/// A set of script rules.
///
/// The low bits are Bitcoin Core's `SCRIPT_VERIFY_*` in its order (`script/interpreter.h`), the bits
/// from 32 up belong to the Bitcoin Cash family (BCHN `script/script_flags.h`, and one bit per
/// upgrade where BCHN no longer has a switch because it treats the upgrade as always active).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Flags(u64);

macro_rules! flags {
    ($($bit:literal $name:ident: $doc:literal;)*) => {
        impl Flags {
            $(#[doc = $doc] pub const $name: Self = Self(1 << $bit);)*

            /// Every flag with its name, in bit order.
            pub const NAMED: &'static [(&'static str, Self)] =
                &[$((stringify!($name), Self::$name)),*];
        }
    };
}

flags! {
    0 P2SH: "Evaluate the redeem script of pay-to-script-hash outputs (BIP-0016).";
    1 STRICTENC: "Signatures must be strict DER with a defined hash type, keys 02/03/04 only.";
    2 DERSIG: "Signatures must be strict DER (BIP-0066).";
    3 LOW_S: "Signatures must be strict DER with S at most half the order (BIP-0062 rule 5).";
    4 NULLDUMMY: "The extra element CHECKMULTISIG consumes must be empty (BIP-0147).";
    5 SIGPUSHONLY: "The input script may only push (BIP-0062 rule 2).";
    6 MINIMALDATA: "Pushes and numbers must use the shortest encoding (BIP-0062 rules 3 and 4).";
    7 DISCOURAGE_UPGRADABLE_NOPS: "Executed NOP1, NOP4 to NOP10 fail.";
    8 CLEANSTACK: "Exactly one element may remain (BIP-0062 rule 6).";
    9 CHECKLOCKTIMEVERIFY: "NOP2 is CHECKLOCKTIMEVERIFY (BIP-0065).";
    10 CHECKSEQUENCEVERIFY: "NOP3 is CHECKSEQUENCEVERIFY (BIP-0112).";
    11 WITNESS: "Witness programs are evaluated (BIP-0141).";
    12 DISCOURAGE_UPGRADABLE_WITNESS_PROGRAM: "Unknown witness programs fail.";
    13 MINIMALIF: "The argument of IF and NOTIF must be empty or the single byte 01.";
    14 NULLFAIL: "Signatures of a failed check must be empty (BIP-0146).";
    15 WITNESS_PUBKEYTYPE: "Keys in version 0 witness programs must be compressed.";
    16 CONST_SCRIPTCODE: "CODESEPARATOR and signature deletion fail in pre-segwit scripts.";
    17 TAPROOT: "Version 1 programs of 32 bytes are Taproot (BIP-0341, BIP-0342).";
    18 DISCOURAGE_UPGRADABLE_TAPROOT_VERSION: "Unknown Taproot leaf versions fail.";
    19 DISCOURAGE_OP_SUCCESS: "`OP_SUCCESSx` fails instead of succeeding.";
    20 DISCOURAGE_UPGRADABLE_PUBKEYTYPE: "Unknown key types in tapscript fail.";

    32 BCH: "The Bitcoin Cash family's opcode semantics and order of checks.";
    33 SIGHASH_FORKID: "August 2017: signatures commit by BIP-0143 and must carry the fork bit.";
    34 MONOLITH_OPCODES: "May 2018: CAT SPLIT NUM2BIN BIN2NUM AND OR XOR DIV MOD.";
    35 CHECKDATASIG: "November 2018: CHECKDATASIG and CHECKDATASIGVERIFY.";
    36 DISALLOW_SEGWIT_RECOVERY: "No exemption for pay-to-script-hash outputs of witness programs.";
    37 SCHNORR: "May 2019: signatures of 64 bytes are Schnorr signatures.";
    38 SCHNORR_MULTISIG: "November 2019: a non-empty dummy selects Schnorr multisig.";
    39 REVERSEBYTES: "May 2020: REVERSEBYTES.";
    40 ENFORCE_SIGCHECKS: "May 2020: the caller enforces the limits on `SigChecks`.";
    41 INPUT_SIGCHECKS: "May 2020 policy: `SigChecks` of an input bounded by its script length.";
    42 INTEGERS_64_BIT: "May 2022: numbers of up to eight bytes, and MUL (CHIP-2021-02).";
    43 NATIVE_INTROSPECTION: "May 2022: opcodes that read the transaction (CHIP-2021-02).";
    44 P2SH_32: "May 2023: scripts may be paid to by hashes of 32 bytes; in no chain's rules here.";
}

impl Flags {
    /// No rule beyond the original script language.
    pub const NONE: Self = Self(0);

    /// Rules a block at the tip of Bitcoin must obey (Core `policy/policy.h`,
    /// `MANDATORY_SCRIPT_VERIFY_FLAGS`).
    pub const BITCOIN_BLOCK: Self = Self(
        Self::P2SH.0
            | Self::DERSIG.0
            | Self::NULLDUMMY.0
            | Self::CHECKLOCKTIMEVERIFY.0
            | Self::CHECKSEQUENCEVERIFY.0
            | Self::WITNESS.0
            | Self::TAPROOT.0,
    );

    /// Rules Bitcoin Core's mempool adds (`STANDARD_SCRIPT_VERIFY_FLAGS`).
    pub const BITCOIN_STANDARD: Self = Self(
        Self::BITCOIN_BLOCK.0
            | Self::STRICTENC.0
            | Self::MINIMALDATA.0
            | Self::DISCOURAGE_UPGRADABLE_NOPS.0
            | Self::CLEANSTACK.0
            | Self::MINIMALIF.0
            | Self::NULLFAIL.0
            | Self::LOW_S.0
            | Self::DISCOURAGE_UPGRADABLE_WITNESS_PROGRAM.0
            | Self::WITNESS_PUBKEYTYPE.0
            | Self::CONST_SCRIPTCODE.0
            | Self::DISCOURAGE_UPGRADABLE_TAPROOT_VERSION.0
            | Self::DISCOURAGE_OP_SUCCESS.0
            | Self::DISCOURAGE_UPGRADABLE_PUBKEYTYPE.0,
    );

    /// Bitcoin Cash from August 2017 (UAHF).
    pub const BCH_AUG_2017: Self = Self(
        Self::BCH.0
            | Self::P2SH.0
            | Self::DERSIG.0
            | Self::CHECKLOCKTIMEVERIFY.0
            | Self::CHECKSEQUENCEVERIFY.0
            | Self::STRICTENC.0
            | Self::SIGHASH_FORKID.0
            | Self::DISALLOW_SEGWIT_RECOVERY.0,
    );
    pub const BCH_NOV_2017: Self = Self(Self::BCH_AUG_2017.0 | Self::LOW_S.0 | Self::NULLFAIL.0);
    pub const BCH_MAY_2018: Self = Self(Self::BCH_NOV_2017.0 | Self::MONOLITH_OPCODES.0);
    pub const BCH_NOV_2018: Self = Self(
        Self::BCH_MAY_2018.0 | Self::CHECKDATASIG.0 | Self::SIGPUSHONLY.0 | Self::CLEANSTACK.0,
    );
    /// Bitcoin Cash from May 2019: the exemption for recovering segwit coins begins.
    pub const BCH_MAY_2019: Self =
        Self((Self::BCH_NOV_2018.0 | Self::SCHNORR.0) & !Self::DISALLOW_SEGWIT_RECOVERY.0);
    pub const BCH_NOV_2019: Self =
        Self(Self::BCH_MAY_2019.0 | Self::SCHNORR_MULTISIG.0 | Self::MINIMALDATA.0);
    pub const BCH_MAY_2020: Self =
        Self(Self::BCH_NOV_2019.0 | Self::REVERSEBYTES.0 | Self::ENFORCE_SIGCHECKS.0);
    /// Bitcoin Cash from May 2022, the rules of the regression-test chain. The upgrades of November
    /// 2020 and May 2021 changed difficulty and policy alone.
    pub const BCH_MAY_2022: Self =
        Self(Self::BCH_MAY_2020.0 | Self::INTEGERS_64_BIT.0 | Self::NATIVE_INTROSPECTION.0);
    /// The rules that BCHN's mempool adds to [`Self::BCH_MAY_2022`].
    pub const BCH_STANDARD: Self = Self(
        Self::BCH_MAY_2022.0
            | Self::DISCOURAGE_UPGRADABLE_NOPS.0
            | Self::DISALLOW_SEGWIT_RECOVERY.0
            | Self::INPUT_SIGCHECKS.0,
    );
    /// The rules of [`Self::BCH_STANDARD`] that BCHN's `policy/policy.h` does not call mandatory. Some of them are rules of
    /// blocks as well, but a transaction that breaks no other is only called non-standard.
    pub const BCH_NOT_MANDATORY: Self = Self(
        Self::DERSIG.0
            | Self::SIGPUSHONLY.0
            | Self::DISCOURAGE_UPGRADABLE_NOPS.0
            | Self::CLEANSTACK.0
            | Self::CHECKLOCKTIMEVERIFY.0
            | Self::CHECKSEQUENCEVERIFY.0
            | Self::DISALLOW_SEGWIT_RECOVERY.0
            | Self::INPUT_SIGCHECKS.0,
    );

    /// Returns `true` if every flag of `other` is set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns `true` if any flag of `other` is set.
    #[inline]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The set without the flags of `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The set as a number, for keys of caches.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The flag of this name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(known, _)| *known == name).map(|&(_, flag)| flag)
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl BitAnd for Flags {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl Not for Flags {
    type Output = Self;
    fn not(self) -> Self {
        Self(!self.0)
    }
}

impl std::fmt::Debug for Flags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut first = true;
        for &(name, flag) in Self::NAMED {
            if self.contains(flag) {
                f.write_str(if first { "" } else { "," })?;
                f.write_str(name)?;
                first = false;
            }
        }
        if first { f.write_str("NONE") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for &(name, flag) in Flags::NAMED {
            assert_eq!(Flags::from_name(name), Some(flag));
            assert_eq!(format!("{flag:?}"), name);
        }
        assert_eq!(Flags::from_name("NO_SUCH_RULE"), None);
        assert_eq!(format!("{:?}", Flags::P2SH | Flags::WITNESS), "P2SH,WITNESS");
    }

    #[test]
    fn upgrades_only_add_rules_except_the_recovery_exemption() {
        assert!(Flags::BCH_NOV_2018.contains(Flags::BCH_AUG_2017));
        assert!(!Flags::BCH_MAY_2019.contains(Flags::DISALLOW_SEGWIT_RECOVERY));
        assert!(Flags::BCH_MAY_2022.contains(Flags::BCH_MAY_2020));
        assert!(Flags::BCH_STANDARD.contains(Flags::BCH_MAY_2022));
        assert!(Flags::BITCOIN_STANDARD.contains(Flags::BITCOIN_BLOCK));
    }
}
