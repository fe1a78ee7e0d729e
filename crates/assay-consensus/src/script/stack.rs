//! The two stacks of the interpreter over one arena of bytes.
//!
//! An element is a range of the arena, so copying, moving and saving elements moves eight bytes each
//! and the memory of a finished input serves the next one. Bytes never change. Ranges nobody refers
//! to any more are reclaimed when the arena has grown far enough (only tapscript, which has no limit
//! on operations, ever gets there).

use std::collections::HashMap;

use super::error::ScriptError;
use super::num;

#[derive(Clone, Copy, Debug)]
struct Range {
    start: u32,
    length: u32,
}

/// Main and alternative stack, and the copy of the main stack that P2SH goes back to.
#[derive(Debug, Default)]
pub(super) struct Stack {
    bytes: Vec<u8>,
    main: Vec<Range>,
    alt: Vec<Range>,
    saved: Vec<Range>,
    /// Arena size at which unused ranges are reclaimed.
    reclaim_at: usize,
    /// Digests in the arena, by opcode and by the range that was hashed: a copy is the same range.
    digests: HashMap<(u8, u32, u32), Range>,
    /// Large elements that were hashed.
    hashed: u32,
    /// No digest is recalled.
    pub(super) hashes_every_copy: bool,
}

/// Arena size below which reclaiming is not worth while: several times the most that 1000 elements
/// of 520 bytes can refer to.
const RECLAIM_MIN: usize = 4 << 20;
/// The first digests of an input, up to this number, are not kept: hardly any script hashes more than one large element, and
/// it should not pay for others.
const HASHED_MIN: u32 = 4;
/// Digests that are kept at most: more than the pairs of an element that is on the stacks and an opcode that hashes.
const DIGESTS_MAX: usize = 1 << 13;
/// Capacities above these are given back between inputs.
const KEEP_BYTES: usize = 1 << 20;
const KEEP_ELEMENTS: usize = 1 << 14;

impl Stack {
    /// Empties everything, keeping ordinary amounts of memory.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.main.clear();
        self.alt.clear();
        self.saved.clear();
        self.digests.clear();
        self.hashed = 0;
        self.reclaim_at = RECLAIM_MIN;
        if self.bytes.capacity() > KEEP_BYTES {
            self.bytes.shrink_to(KEEP_BYTES);
        }
        if self.main.capacity() > KEEP_ELEMENTS {
            self.main.shrink_to(KEEP_ELEMENTS);
        }
    }

    #[inline]
    pub(super) fn clear_main(&mut self) {
        self.main.clear();
    }

    /// Elements on the main stack.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.main.len()
    }

    /// Elements on both stacks.
    #[inline]
    pub(super) fn total(&self) -> usize {
        self.main.len() + self.alt.len()
    }

    /// Fails unless the main stack has `count` elements.
    #[inline]
    pub(super) fn need(&self, count: usize) -> Result<(), ScriptError> {
        if self.main.len() < count { Err(ScriptError::InvalidStackOperation) } else { Ok(()) }
    }

    #[inline]
    fn bytes_of(&self, range: Range) -> &[u8] {
        &self.bytes[range.start as usize..][..range.length as usize]
    }

    /// The element `depth` below the top (0 is the top), which must exist.
    #[inline]
    pub(super) fn peek(&self, depth: usize) -> &[u8] {
        self.bytes_of(self.main[self.main.len() - 1 - depth])
    }

    /// Length of the top element, which must exist.
    #[inline]
    pub(super) fn top_length(&self) -> usize {
        self.main[self.main.len() - 1].length as usize
    }

    /// The top element, if there is one.
    #[inline]
    pub(super) fn top(&self) -> Option<&[u8]> {
        self.main.last().map(|&range| self.bytes_of(range))
    }

    #[inline]
    pub(super) fn push(&mut self, data: &[u8]) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(data);
        self.main.push(Range { start, length: data.len() as u32 });
        if self.bytes.len() > self.reclaim_at {
            self.reclaim();
        }
    }

    #[inline]
    pub(super) fn push_byte(&mut self, byte: u8) {
        let start = self.bytes.len() as u32;
        self.bytes.push(byte);
        self.main.push(Range { start, length: 1 });
        if self.bytes.len() > self.reclaim_at {
            self.reclaim();
        }
    }

    /// Pushes one (`true`) or the empty element (`false`).
    #[inline]
    pub(super) fn push_bool(&mut self, value: bool) {
        self.push(if value { &[1] } else { &[] });
    }

    /// Pushes the shortest encoding of a number.
    #[inline]
    pub(super) fn push_num(&mut self, value: i64) {
        let (buffer, length) = num::encode(value);
        self.push(&buffer[..length]);
    }

    /// Pushes the element `depth` below the top once more.
    #[inline]
    pub(super) fn push_again(&mut self, depth: usize) {
        let range = self.main[self.main.len() - 1 - depth];
        self.main.push(range);
    }

    /// Drops the top `count` elements, which must exist.
    #[inline]
    pub(super) fn drop_top(&mut self, count: usize) {
        self.main.truncate(self.main.len() - count);
    }

    /// Removes the element `depth` below the top and pushes it on top.
    #[inline]
    pub(super) fn roll(&mut self, depth: usize) {
        let index = self.main.len() - 1 - depth;
        self.main[index..].rotate_left(1);
    }

    /// Removes the element `depth` below the top.
    #[inline]
    pub(super) fn remove(&mut self, depth: usize) {
        self.main.remove(self.main.len() - 1 - depth);
    }

    /// Inserts a copy of the top element below the second.
    #[inline]
    pub(super) fn tuck(&mut self) {
        let range = self.main[self.main.len() - 1];
        self.main.insert(self.main.len() - 2, range);
    }

    /// Exchanges the elements at two depths.
    #[inline]
    pub(super) fn swap(&mut self, depth: usize, other: usize) {
        let top = self.main.len() - 1;
        self.main.swap(top - depth, top - other);
    }

    /// Moves the top element to the alternative stack.
    #[inline]
    pub(super) fn move_to_alt(&mut self) -> Result<(), ScriptError> {
        self.alt.push(self.main.pop().ok_or(ScriptError::InvalidStackOperation)?);
        Ok(())
    }

    /// Moves the top of the alternative stack back.
    #[inline]
    pub(super) fn move_from_alt(&mut self) -> Result<(), ScriptError> {
        self.main.push(self.alt.pop().ok_or(ScriptError::InvalidAltstackOperation)?);
        Ok(())
    }

    /// Replaces the top two elements by their concatenation, which tapscript may do as often as it likes.
    pub(super) fn concat(&mut self) {
        let [.., left, right] = self.main[..] else { return };
        let start = self.bytes.len() as u32;
        for range in [left, right] {
            let from = range.start as usize;
            self.bytes.extend_from_within(from..from + range.length as usize);
        }
        self.drop_top(2);
        self.main.push(Range { start, length: left.length + right.length });
        if self.bytes.len() > self.reclaim_at {
            self.reclaim();
        }
    }

    /// Replaces the top element by what this opcode made of it, or of what it is a copy of, before; whether that is known.
    pub(super) fn recall_digest(&mut self, opcode: u8) -> bool {
        if self.hashed <= HASHED_MIN {
            return false;
        }
        let Some(top) = self.main.last_mut() else { return false };
        let Some(known) = self.digests.get(&(opcode, top.start, top.length)) else { return false };
        *top = *known;
        true
    }

    /// Replaces the top element by what this opcode made of it.
    pub(super) fn keep_digest(&mut self, opcode: u8, digest: &[u8]) {
        let Some(top) = self.main.pop() else { return };
        self.hashed = self.hashed.saturating_add(1);
        if self.hashed <= HASHED_MIN {
            return self.push(digest);
        }
        if self.digests.len() >= DIGESTS_MAX {
            self.digests.clear();
        }
        let kept = Range { start: self.bytes.len() as u32, length: digest.len() as u32 };
        self.digests.insert((opcode, top.start, top.length), kept);
        // If this reclaims, all digests are forgotten.
        self.push(digest);
    }

    /// Replaces the top element by its first `at` bytes and the rest; `at` must not exceed it.
    pub(super) fn split(&mut self, at: usize) {
        let Some(range) = self.main.pop() else { return };
        let at = at as u32;
        self.main.push(Range { start: range.start, length: at });
        self.main.push(Range { start: range.start + at, length: range.length - at });
    }

    /// Pops the top element into `buffer` (at most `buffer.len()` bytes) and returns its length.
    pub(super) fn pop_into(&mut self, buffer: &mut [u8]) -> usize {
        let top = self.peek(0);
        let length = top.len();
        buffer[..length].copy_from_slice(top);
        self.drop_top(1);
        length
    }

    /// The alternative stack does not survive the end of a script.
    #[inline]
    pub(super) fn end_script(&mut self) {
        self.alt.clear();
    }

    #[inline]
    pub(super) fn save(&mut self) {
        self.saved.clone_from(&self.main);
    }

    /// Goes back to the remembered main stack.
    #[inline]
    pub(super) fn restore(&mut self) {
        std::mem::swap(&mut self.main, &mut self.saved);
        self.saved.clear();
    }

    /// Moves what elements refer to together, in place; what two refer to stays one range.
    #[cold]
    fn reclaim(&mut self) {
        let Self { bytes, main, alt, saved, .. } = self;
        let mut ranges: Vec<&mut Range> = main.iter_mut().chain(alt).chain(saved).collect();
        ranges.sort_unstable_by_key(|range| range.start);
        // Overlapping ranges move by the same distance: from here on, up to `end`, to `kept`.
        let (mut from, mut end, mut kept) = (0, 0, 0);
        for range in ranges {
            let start = range.start as usize;
            if start >= end {
                if kept < from {
                    bytes.copy_within(from..end, kept);
                }
                kept += end - from;
                (from, end) = (start, start);
            }
            end = end.max(start + range.length as usize);
            range.start = (kept + start - from) as u32;
        }
        if kept < from {
            bytes.copy_within(from..end, kept);
        }
        bytes.truncate(kept + end - from);
        self.reclaim_at = self.bytes.len() + RECLAIM_MIN.max(self.bytes.len());
        self.digests.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reclaiming_keeps_every_element() {
        let mut stack = Stack::default();
        stack.clear();
        let mut model: Vec<Vec<u8>> = Vec::new();
        let mut seed = 1u32;
        for step in 0..200_000u32 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let data = vec![(seed >> 24) as u8; (seed >> 8) as usize % 100];
            if step % 3 == 2 && model.len() > 2 {
                stack.remove(1);
                model.remove(model.len() - 2);
            } else if model.len() > 200 {
                stack.drop_top(100);
                model.truncate(model.len() - 100);
            } else {
                stack.push(&data);
                model.push(data);
            }
        }
        assert!(stack.bytes.len() <= 2 * RECLAIM_MIN);
        assert_eq!(stack.len(), model.len());
        for (depth, expected) in model.iter().rev().enumerate() {
            assert_eq!(stack.peek(depth), expected);
        }
    }

    #[test]
    fn concatenations_are_reclaimed() {
        let mut stack = Stack::default();
        stack.clear();
        stack.push(&[7; 4_000]);
        for _ in 0..5_000 {
            stack.push_again(0);
            stack.push_again(0);
            stack.concat();
            assert_eq!(stack.top_length(), 8_000);
            stack.drop_top(1);
        }
        assert!(stack.bytes.len() <= 2 * RECLAIM_MIN, "{}", stack.bytes.len());
        assert_eq!(stack.peek(0), [7; 4_000]);
    }

    /// Elements are pushed, copied, moved, hashed and dropped at random, with and without kept digests.
    #[test]
    fn digests_are_those_of_their_elements() {
        let hash = |opcode: u8, data: &[u8]| match opcode {
            0 => assay_hash::sha256(data).to_vec(),
            1 => assay_hash::ripemd160(data).to_vec(),
            _ => assay_hash::sha1(data).to_vec(),
        };
        let mut stack = Stack::default();
        stack.clear();
        let mut model: Vec<Vec<u8>> = Vec::new();
        let (mut seed, mut recalled, mut forgotten) = (1u32, 0, 0);
        for step in 0..200_000u32 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let kept = stack.digests.len();
            let choice = (seed >> 24) as usize;
            if model.len() < 3 || choice.is_multiple_of(4) {
                let data = vec![(seed >> 16) as u8; 100 + choice];
                stack.push(&data);
                model.push(data);
            } else if choice % 4 == 1 {
                let depth = choice % model.len();
                stack.push_again(depth);
                model.push(model[model.len() - 1 - depth].clone());
            } else if choice % 4 == 2 {
                let depth = choice % model.len();
                stack.roll(depth);
                let element = model.remove(model.len() - 1 - depth);
                model.push(element);
            } else {
                let opcode = (seed >> 20) as u8 % 3;
                let digest = hash(opcode, stack.peek(0));
                if stack.recall_digest(opcode) {
                    recalled += 1;
                } else {
                    stack.keep_digest(opcode, &digest);
                }
                if let Some(top) = model.last_mut() {
                    *top = hash(opcode, top);
                }
            }
            if model.len() > 60 {
                stack.drop_top(30);
                model.truncate(model.len() - 30);
            }
            forgotten += usize::from(stack.digests.len() < kept);
            assert_eq!(stack.top(), model.last().map(Vec::as_slice), "{step}");
        }
        assert!(recalled > 1_000 && forgotten > 0, "{recalled} {forgotten}");
        for (depth, expected) in model.iter().rev().enumerate() {
            assert_eq!(stack.peek(depth), expected);
        }
        stack.clear();
        stack.push(&[7; 300]);
        assert!(!stack.recall_digest(0), "another input");
    }

    #[test]
    fn moves() {
        let mut stack = Stack::default();
        for value in 1..=5 {
            stack.push_num(value);
        }
        stack.roll(3); // 1 3 4 5 2
        stack.swap(0, 1); // 1 3 4 2 5
        stack.tuck(); // 1 3 4 5 2 5
        stack.split(0); // 1 3 4 5 2 "" 5
        stack.concat(); // 1 3 4 5 2 5
        let values: Vec<&[u8]> = (0..6).rev().map(|depth| stack.peek(depth)).collect();
        assert_eq!(values, [&[1], &[3], &[4], &[5], &[2], &[5]]);
    }
}
