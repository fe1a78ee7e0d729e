//! What is verified.

use crate::params::ParameterSet;

/// A signature, with what it is to be valid for.
#[derive(Clone, Copy, Debug)]
pub struct Check<'a> {
    /// `PK.seed` and `PK.root`.
    pub key: &'a [u8],
    /// What is signed.
    pub message: Message<'a>,
    /// The randomizer, the FORS signature and the hypertree signature.
    pub signature: &'a [u8],
}

/// A message, and how it enters the hash.
#[derive(Clone, Copy, Debug)]
pub enum Message<'a> {
    /// `slh_verify`, FIPS 205 algorithm 24: the context has at most 255 bytes.
    Pure {
        /// The context, empty where a protocol names none.
        context: &'a [u8],
        /// The message.
        message: &'a [u8],
    },
    /// `slh_verify_internal`, FIPS 205 algorithm 20: the bytes as they are, without a prefix.
    Internal(&'a [u8]),
}

impl Check<'_> {
    /// Whether every part has the length that the parameter set wants.
    pub(crate) fn is_well_formed(&self, set: &ParameterSet) -> bool {
        self.key.len() == set.key_bytes()
            && self.signature.len() == set.signature_bytes()
            && self.message.is_well_formed()
    }
}

impl Message<'_> {
    pub(crate) fn is_well_formed(&self) -> bool {
        match self {
            Self::Pure { context, .. } => context.len() <= 255,
            Self::Internal(_) => true,
        }
    }

    /// The parts whose concatenation is hashed; `prefix` gets the first of them. The message is
    /// well formed.
    pub(crate) fn parts<'a>(&'a self, prefix: &'a mut [u8; 2]) -> [&'a [u8]; 3] {
        match *self {
            Self::Pure { context, message } => {
                // Zero is for messages that are not hashed beforehand.
                *prefix = [0, context.len() as u8];
                [prefix, context, message]
            }
            Self::Internal(message) => [&[], &[], message],
        }
    }
}
