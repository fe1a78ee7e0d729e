//! Many independent checks at once.

use crate::{taproot_tweak_ok, verify_ecdsa, verify_schnorr, verify_schnorr_bch};

/// One question with a yes or no answer. Each variant has the meaning of the function of its name.
#[derive(Clone, Copy, Debug)]
pub enum Check<'a> {
    /// [`verify_ecdsa`].
    Ecdsa {
        /// Compressed, uncompressed or hybrid.
        pubkey: &'a [u8],
        /// Lax DER without hash type.
        der_sig: &'a [u8],
        /// The signature hash.
        msg: &'a [u8; 32],
    },
    /// [`verify_schnorr`].
    Schnorr {
        /// The x coordinate of the key.
        xonly: &'a [u8; 32],
        /// r and s.
        sig: &'a [u8; 64],
        /// The message, of any length.
        msg: &'a [u8],
    },
    /// [`verify_schnorr_bch`].
    SchnorrBch {
        /// Compressed, uncompressed or hybrid.
        pubkey: &'a [u8],
        /// r and s.
        sig: &'a [u8; 64],
        /// The signature hash.
        msg: &'a [u8; 32],
    },
    /// [`taproot_tweak_ok`].
    TaprootTweak {
        /// The x coordinate of the internal key.
        internal: &'a [u8; 32],
        /// The tagged hash that the internal key is tweaked by.
        tweak: &'a [u8; 32],
        /// The x coordinate of the output key.
        output: &'a [u8; 32],
        /// Whether the y coordinate of the output key is odd.
        parity: bool,
    },
}

impl Check<'_> {
    /// The answer by libsecp256k1.
    pub fn verify(&self) -> bool {
        match *self {
            Self::Ecdsa { pubkey, der_sig, msg } => verify_ecdsa(pubkey, der_sig, msg),
            Self::Schnorr { xonly, sig, msg } => verify_schnorr(xonly, sig, msg),
            Self::SchnorrBch { pubkey, sig, msg } => verify_schnorr_bch(pubkey, sig, msg),
            Self::TaprootTweak { internal, tweak, output, parity } => {
                taproot_tweak_ok(internal, tweak, output, parity)
            }
        }
    }
}

/// What does the arithmetic of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// libsecp256k1, one check after the other.
    Libsecp,
}

impl Backend {
    /// The fastest one this CPU runs.
    pub fn detect() -> Self {
        Self::Libsecp
    }

    /// Whether this CPU runs it.
    pub fn available(self) -> bool {
        match self {
            Self::Libsecp => true,
        }
    }

    /// The name that [`Backend::by_name`] takes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Libsecp => "libsecp256k1",
        }
    }

    /// The backend of this name, or `None`.
    pub fn by_name(name: &str) -> Option<Self> {
        [Self::Libsecp].into_iter().find(|backend| backend.name() == name)
    }
}

/// Answers checks in batches; keeps its memory from one batch to the next.
#[derive(Debug)]
pub struct BatchVerifier {
    backend: Backend,
}

impl BatchVerifier {
    /// A verifier with the fastest backend.
    pub fn new() -> Self {
        Self::with_backend(Backend::detect())
    }

    /// A verifier with this backend, or libsecp256k1 where the CPU does not run it.
    pub fn with_backend(backend: Backend) -> Self {
        Self { backend: if backend.available() { backend } else { Backend::Libsecp } }
    }

    /// The backend in use.
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// Replaces the contents of `out` by one answer per check, in order.
    pub fn verify(&mut self, checks: &[Check<'_>], out: &mut Vec<bool>) {
        out.clear();
        out.extend(checks.iter().map(Check::verify));
    }
}

impl Default for BatchVerifier {
    fn default() -> Self {
        Self::new()
    }
}
