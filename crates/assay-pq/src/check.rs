//! Input of verification.

use crate::params::ParameterSet;

/// A signature with its key and message.
#[derive(Clone, Copy, Debug)]
pub struct Check<'a> {
    /// `PK.seed` and `PK.root`.
    pub key: &'a [u8],
    pub message: Message<'a>,
    /// The randomizer, the FORS signature and the hypertree signature.
    pub signature: &'a [u8],
}

/// A message and its encoding for the hash.
#[derive(Clone, Copy, Debug)]
pub enum Message<'a> {
    /// `slh_verify`, FIPS 205 algorithm 24; the context has at most 255 bytes.
    Pure {
        /// Context, usually empty.
        context: &'a [u8],
        message: &'a [u8],
    },
    /// `slh_verify_internal`, FIPS 205 algorithm 20: the raw bytes, without a prefix.
    Internal(&'a [u8]),
}

impl Check<'_> {
    /// True if every part has the length of the parameter set.
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

    /// The parts whose concatenation is hashed; `prefix` is the buffer of the first. The message must be well formed.
    pub(crate) fn parts<'a>(&'a self, prefix: &'a mut [u8; 2]) -> [&'a [u8]; 3] {
        match *self {
            Self::Pure { context, message } => {
                // Zero marks messages that are not prehashed.
                *prefix = [0, context.len() as u8];
                [prefix, context, message]
            }
            Self::Internal(message) => [&[], &[], message],
        }
    }
}
