//! Version 2 P2P transport (BIP324): encrypted and indistinguishable from random bytes without the keys.
//!
//! Keys, packets and message types, without sockets or a source of randomness. [`Handshake`] yields a [`Session`],
//! whose [`Sealer`] and [`Opener`] encrypt and decrypt packets. libsecp256k1 provides the curve, ring
//! ChaCha20-Poly1305, and the crate `chacha20` the key stream for lengths (docs/adr/0031).
//!
//! ```
//! use assay_node::bip324::{HEAD_BYTES, Handshake};
//!
//! let magic = [0xfa, 0xbf, 0xb5, 0xda];
//! let alice = Handshake::new([1; 32], [2; 32], vec![3; 5], true).expect("a secret key");
//! let bob = Handshake::new([4; 32], [5; 32], Vec::new(), false).expect("a secret key");
//! let keys = [alice.opening(), bob.opening()].map(|sent| *sent.first_chunk().unwrap());
//! let mut alice = alice.finish(keys[1], magic);
//! let bob = bob.finish(keys[0], magic);
//! assert_eq!(alice.id, bob.id);
//! let mut packet = vec![0; HEAD_BYTES];
//! packet.extend_from_slice(b"contents");
//! alice.sealer.seal(&mut packet, 0, &[], false);
//! ```

mod cipher;
mod contents;
mod handshake;

pub use self::cipher::{Opener, Sealer, Undecryptable};
pub(crate) use self::contents::SHORT;
pub use self::contents::{NAME_BYTES_MAX, name_bytes, split};
pub use self::handshake::{Garbage, Handshake, MissingTerminator, Session};

/// Length of a public key in `ElligatorSwift` encoding.
pub const KEY_BYTES: usize = 64;
/// Maximum length of garbage (BIP324, `MAX_GARBAGE_LEN`).
pub const GARBAGE_BYTES_MAX: usize = 4095;
pub const TERMINATOR_BYTES: usize = 16;
/// Length of a packet's length prefix.
pub const LENGTH_BYTES: usize = 3;
/// Bytes before the contents of a packet: length prefix and header.
pub const HEAD_BYTES: usize = LENGTH_BYTES + 1;
/// Length of the authentication tag behind the contents.
pub const TAG_BYTES: usize = 16;
