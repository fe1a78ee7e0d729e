//! An owned script.

use std::fmt;
use std::ops::Deref;

/// Maximum length without allocation: fits every standard output; P2PK with a compressed key is the longest.
const INLINE_MAX: usize = 35;

/// An owned script; short ones are stored inline.
#[derive(Clone)]
pub struct Script(Repr);

#[derive(Clone)]
enum Repr {
    Inline { length: u8, bytes: [u8; INLINE_MAX] },
    Heap(Box<[u8]>),
}

impl Script {
    /// The empty script.
    pub const EMPTY: Self = Self(Repr::Inline { length: 0, bytes: [0; INLINE_MAX] });
}

impl From<&[u8]> for Script {
    #[inline]
    fn from(script: &[u8]) -> Self {
        if script.len() <= INLINE_MAX {
            let mut bytes = [0u8; INLINE_MAX];
            bytes[..script.len()].copy_from_slice(script);
            Self(Repr::Inline { length: script.len() as u8, bytes })
        } else {
            Self(Repr::Heap(script.into()))
        }
    }
}

impl Deref for Script {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { length, bytes } => &bytes[..usize::from(*length)],
            Repr::Heap(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for Script {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl PartialEq for Script {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Script {}

impl Default for Script {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Script(")?;
        for byte in self.iter() {
            write!(f, "{byte:02x}")?;
        }
        f.write_str(")")
    }
}
