//! Version 2 of the transport between peers (BIP324): encrypted, and without the keys not distinguishable from random bytes.
//!
//! Keys, packets and names of messages, without sockets or randomness of its own: [`Handshake`] gives a [`Session`], whose
//! [`Sealer`] and [`Opener`] turn contents into packets and back. The elliptic curve is libsecp256k1's, ChaCha20-Poly1305 is
//! ring's, and the key stream for lengths is that of the crate `chacha20` (docs/adr/0031).
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
pub use self::contents::{NAME_BYTES_MAX, name_bytes, split};
pub use self::handshake::{Garbage, Handshake, MissingTerminator, Session};

/// Bytes of a public key in the encoding ElligatorSwift.
pub const KEY_BYTES: usize = 64;
/// Bytes of garbage at most (BIP324, `MAX_GARBAGE_LEN`).
pub const GARBAGE_BYTES_MAX: usize = 4095;
/// Bytes of the terminator behind the garbage.
pub const TERMINATOR_BYTES: usize = 16;
/// Bytes of a packet's length.
pub const LENGTH_BYTES: usize = 3;
/// Bytes in front of the contents of a packet: length and header.
pub const HEAD_BYTES: usize = LENGTH_BYTES + 1;
/// Bytes behind the contents of a packet.
pub const TAG_BYTES: usize = 16;
