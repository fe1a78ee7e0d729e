//! Long messages of an input, kept for a second run of it.

use super::sighash::CodeKey;

/// Signature messages from before `SegWit` that were long, in the order in which the scripts of one input asked for them.
///
/// A script may ask for a message of a megabyte as often as it has opcodes, each time another one. An input that runs again
/// ([`verify_input_again`](super::Interpreter::verify_input_again)) need not hash them again: each stands under the script code and the hash type
/// that it is for, and the rest of a message is the same for the whole input.
#[derive(Clone, Debug, Default)]
pub struct LongMessages {
    messages: Vec<(CodeKey, u32, [u8; 32])>,
    /// Number of messages asked for, where it is known.
    asked: usize,
}

impl LongMessages {
    pub const fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.messages.clear();
        self.asked = 0;
    }

    pub(super) fn keep(&mut self, key: CodeKey, hash_type: u32, message: [u8; 32]) {
        if self.messages.last().is_none_or(|last| (last.0, last.1) != (key, hash_type)) {
            self.messages.push((key, hash_type, message));
        }
    }

    /// The message, if it is the last one that was asked for or one after it.
    pub(super) fn find(&mut self, key: CodeKey, hash_type: u32) -> Option<[u8; 32]> {
        let first = self.asked.saturating_sub(1);
        let mut later = self.messages.get(first..)?.iter();
        let place = later.position(|known| (known.0, known.1) == (key, hash_type))?;
        self.asked = first + place + 1;
        Some(self.messages[first + place].2)
    }

    /// Other messages in their place, to see whether they are used.
    #[cfg(test)]
    pub(super) fn spoiled(mut self) -> Self {
        self.messages.iter_mut().for_each(|message| message.2 = [0xee; 32]);
        self
    }
}

#[cfg(test)]
#[path = "long_tests.rs"]
mod tests;
