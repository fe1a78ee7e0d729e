//! The reasons for which a script fails: one variant per rule, with the texts and names of the reference nodes.

macro_rules! script_errors {
    ($($variant:ident, $name:literal, $text:literal;)*) => {
        /// The reason an input's scripts do not authorise the spend.
        ///
        /// `Display` gives the text of Bitcoin Core's `ScriptErrorString` (which ends up in reject
        /// reasons); the last group are rules of Bitcoin Cash with BCHN's texts.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
        pub enum ScriptError {
            $(#[doc = concat!("`SCRIPT_ERR_", $name, "`")] #[error($text)] $variant,)*
        }

        impl ScriptError {
            /// The reference node's name without `SCRIPT_ERR_`, as its test vectors print it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// BCHN's text, which is Bitcoin Core's but for one.
            pub const fn cash_text(self) -> &'static str {
                if matches!(self, Self::CleanStack) {
                    return "Extra items left on stack after execution";
                }
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }
    };
}

script_errors! {
    EvalFalse, "EVAL_FALSE", "Script evaluated without error but finished with a false/empty top stack element";
    OpReturn, "OP_RETURN", "OP_RETURN was encountered";
    ScriptSize, "SCRIPT_SIZE", "Script is too big";
    PushSize, "PUSH_SIZE", "Push value size limit exceeded";
    OpCount, "OP_COUNT", "Operation limit exceeded";
    StackSize, "STACK_SIZE", "Stack size limit exceeded";
    SigCount, "SIG_COUNT", "Signature count negative or greater than pubkey count";
    PubkeyCount, "PUBKEY_COUNT", "Pubkey count negative or limit exceeded";
    Verify, "VERIFY", "Script failed an OP_VERIFY operation";
    EqualVerify, "EQUALVERIFY", "Script failed an OP_EQUALVERIFY operation";
    CheckMultisigVerify, "CHECKMULTISIGVERIFY", "Script failed an OP_CHECKMULTISIGVERIFY operation";
    CheckSigVerify, "CHECKSIGVERIFY", "Script failed an OP_CHECKSIGVERIFY operation";
    NumEqualVerify, "NUMEQUALVERIFY", "Script failed an OP_NUMEQUALVERIFY operation";
    BadOpcode, "BAD_OPCODE", "Opcode missing or not understood";
    DisabledOpcode, "DISABLED_OPCODE", "Attempted to use a disabled opcode";
    InvalidStackOperation, "INVALID_STACK_OPERATION", "Operation not valid with the current stack size";
    InvalidAltstackOperation, "INVALID_ALTSTACK_OPERATION", "Operation not valid with the current altstack size";
    UnbalancedConditional, "UNBALANCED_CONDITIONAL", "Invalid OP_IF construction";
    NegativeLocktime, "NEGATIVE_LOCKTIME", "Negative locktime";
    UnsatisfiedLocktime, "UNSATISFIED_LOCKTIME", "Locktime requirement not satisfied";
    SigHashType, "SIG_HASHTYPE", "Signature hash type missing or not understood";
    SigDer, "SIG_DER", "Non-canonical DER signature";
    MinimalData, "MINIMALDATA", "Data push larger than necessary";
    SigPushOnly, "SIG_PUSHONLY", "Only push operators allowed in signatures";
    SigHighS, "SIG_HIGH_S", "Non-canonical signature: S value is unnecessarily high";
    SigNullDummy, "SIG_NULLDUMMY", "Dummy CHECKMULTISIG argument must be zero";
    PubkeyType, "PUBKEYTYPE", "Public key is neither compressed or uncompressed";
    CleanStack, "CLEANSTACK", "Stack size must be exactly one after execution";
    MinimalIf, "MINIMALIF", "OP_IF/NOTIF argument must be minimal";
    SigNullFail, "NULLFAIL", "Signature must be zero for failed CHECK(MULTI)SIG operation";
    DiscourageUpgradableNops, "DISCOURAGE_UPGRADABLE_NOPS", "NOPx reserved for soft-fork upgrades";
    DiscourageUpgradableWitnessProgram, "DISCOURAGE_UPGRADABLE_WITNESS_PROGRAM", "Witness version reserved for soft-fork upgrades";
    DiscourageUpgradableTaprootVersion, "DISCOURAGE_UPGRADABLE_TAPROOT_VERSION", "Taproot version reserved for soft-fork upgrades";
    DiscourageOpSuccess, "DISCOURAGE_OP_SUCCESS", "OP_SUCCESSx reserved for soft-fork upgrades";
    DiscourageUpgradablePubkeyType, "DISCOURAGE_UPGRADABLE_PUBKEYTYPE", "Public key version reserved for soft-fork upgrades";
    WitnessProgramWrongLength, "WITNESS_PROGRAM_WRONG_LENGTH", "Witness program has incorrect length";
    WitnessProgramWitnessEmpty, "WITNESS_PROGRAM_WITNESS_EMPTY", "Witness program was passed an empty witness";
    WitnessProgramMismatch, "WITNESS_PROGRAM_MISMATCH", "Witness program hash mismatch";
    WitnessMalleated, "WITNESS_MALLEATED", "Witness requires empty scriptSig";
    WitnessMalleatedP2sh, "WITNESS_MALLEATED_P2SH", "Witness requires only-redeemscript scriptSig";
    WitnessUnexpected, "WITNESS_UNEXPECTED", "Witness provided for non-witness script";
    WitnessPubkeyType, "WITNESS_PUBKEYTYPE", "Using non-compressed keys in segwit";
    SchnorrSigSize, "SCHNORR_SIG_SIZE", "Invalid Schnorr signature size";
    SchnorrSigHashType, "SCHNORR_SIG_HASHTYPE", "Invalid Schnorr signature hash type";
    SchnorrSig, "SCHNORR_SIG", "Invalid Schnorr signature";
    PqSigSize, "PQ_SIG_SIZE", "Invalid post-quantum signature size";
    PqKeyHash, "PQ_KEY_HASH", "Post-quantum public key does not match its hash";
    PqSig, "PQ_SIG", "Invalid post-quantum signature";
    TaprootWrongControlSize, "TAPROOT_WRONG_CONTROL_SIZE", "Invalid Taproot control block size";
    TapscriptValidationWeight, "TAPSCRIPT_VALIDATION_WEIGHT", "Too much signature validation relative to witness weight";
    TapscriptCheckMultisig, "TAPSCRIPT_CHECKMULTISIG", "OP_CHECKMULTISIG(VERIFY) is not available in tapscript";
    TapscriptMinimalIf, "TAPSCRIPT_MINIMALIF", "OP_IF/NOTIF argument must be minimal in tapscript";
    TapscriptEmptyPubkey, "TAPSCRIPT_EMPTY_PUBKEY", "Empty public key in tapscript";
    OpCodeSeparator, "OP_CODESEPARATOR", "Using OP_CODESEPARATOR in non-witness script";
    SigFindAndDelete, "SIG_FINDANDDELETE", "Signature is found in scriptCode";
    TemplateMismatch, "TEMPLATE_MISMATCH", "OP_CHECKTEMPLATEVERIFY hash does not match the transaction";
    ScriptNum, "SCRIPTNUM", "Script number overflowed or is non-minimally encoded";

    CheckDataSigVerify, "CHECKDATASIGVERIFY", "Script failed an OP_CHECKDATASIGVERIFY operation";
    InputSigChecks, "INPUT_SIGCHECKS", "Input SigChecks limit exceeded";
    InvalidOperandSize, "OPERAND_SIZE", "Invalid operand size";
    InvalidNumberRange, "INVALID_NUMBER_RANGE", "Given operand is not a number within the valid range [-2^31 + 1, 2^31 - 1]";
    InvalidNumberRange64Bit, "INVALID_NUMBER_RANGE_64_BIT", "Given operand is not a number within the valid range [-2^63 + 1, 2^63 - 1]";
    InvalidTxInputIndex, "INVALID_TX_INPUT_INDEX", "The specified transaction input index is out of range";
    InvalidTxOutputIndex, "INVALID_TX_OUTPUT_INDEX", "The specified transaction output index is out of range";
    ImpossibleEncoding, "IMPOSSIBLE_ENCODING", "The requested encoding is impossible to satisfy";
    InvalidSplitRange, "SPLIT_RANGE", "Invalid OP_SPLIT range";
    InvalidBitCount, "INVALID_BIT_COUNT", "Invalid number of bit set in OP_CHECKMULTISIG";
    InvalidBitfieldSize, "BITFIELD_SIZE", "Bitfield of unexpected size error";
    InvalidBitRange, "BIT_RANGE", "Bitfield's bit out of the expected range";
    DivByZero, "DIV_BY_ZERO", "Division by zero error";
    ModByZero, "MOD_BY_ZERO", "Modulo by zero error";
    MinimalNum, "MINIMALNUM", "Number encoding must be minimal";
    SigBadLength, "SIG_BADLENGTH", "Signature cannot be 65 bytes in CHECKMULTISIG";
    SigNonSchnorr, "SIG_NONSCHNORR", "Only Schnorr signatures allowed in this operation";
    IllegalForkId, "ILLEGAL_FORKID", "Illegal use of SIGHASH_FORKID";
    MustUseForkId, "MISSING_FORKID", "Signature must use SIGHASH_FORKID";
}
