//! Owned transactions, blocks and locks that can be modified and serialised.

mod block;
mod chaos;
mod keys;
mod lock;
mod rng;
mod script;
mod tx;

pub use block::Block;
pub use chaos::{chaotic_lock, random_item, random_script};
pub use keys::{KEY_COUNT, KeyForm, encoded_key, keypair, x_only};
pub use lock::{Flaw, Item, Lock, Place, Sig, unlock};
pub use rng::Rng;
pub use script::{Inner, Writer, inner, random_lock};
pub use tx::{Input, Output, Tx};
