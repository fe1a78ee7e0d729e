//! Deployments that miners signal by bits of the version (BIP9).
//!
//! No rule of this crate depends on one; miners and users are shown their states.

use crate::chain::Ancestors;

/// The top three bits of a version that signals.
pub const VERSION_TOP_BITS: i32 = 0x2000_0000;
/// The mask of these three bits.
pub const VERSION_TOP_MASK: u32 = 0xe000_0000;

/// A deployment, as plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deployment {
    /// The name that RPC gives it.
    pub name: &'static str,
    /// The bit that signals, 0 to 28.
    pub bit: u8,
    /// Median time past from which on signals count; `None` for never.
    pub start_time: Option<u32>,
    /// Median time past at which it fails unless locked in; `None` for never.
    pub timeout: Option<u32>,
    /// It is not active below this height.
    pub min_activation_height: u32,
    /// Blocks in a period.
    pub period: u32,
    /// Signals in one period that lock it in.
    pub threshold: u32,
    /// `true` if miners may ignore it when they build templates of their own.
    pub is_optional: bool,
}

/// The progress of a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeploymentState {
    /// Signals are not counted yet.
    Defined,
    /// Signals are counted.
    Started,
    /// It becomes active after this period, unless the height is too low.
    LockedIn,
    /// For good.
    Active,
    /// For good.
    Failed,
}

impl DeploymentState {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Defined => "defined",
            Self::Started => "started",
            Self::LockedIn => "locked_in",
            Self::Active => "active",
            Self::Failed => "failed",
        }
    }

    /// Returns `true` if miners signal.
    pub const fn is_signalled(self) -> bool {
        matches!(self, Self::Started | Self::LockedIn)
    }
}

impl Deployment {
    pub const fn mask(&self) -> i32 {
        1 << self.bit
    }

    /// Returns `true` if a block with this version signals.
    pub const fn is_signal(&self, version: i32) -> bool {
        version.cast_unsigned() & VERSION_TOP_MASK == VERSION_TOP_BITS.cast_unsigned()
            && version & self.mask() != 0
    }

    /// The state of the block after the one at `parent_height`, `None` for the genesis block's, on the chain of `ancestors`;
    /// `version_at` gives the versions of its blocks (Core `versionbits.cpp`, `GetStateFor`).
    pub fn state_after<A: Ancestors + ?Sized>(
        &self,
        ancestors: &A,
        parent_height: Option<u32>,
        version_at: impl Fn(u32) -> i32,
    ) -> DeploymentState {
        let Some(start_time) = self.start_time else { return DeploymentState::Failed };
        // Every period has the state of its first block, so whole periods are looked at, each by the last block before it.
        let periods = parent_height.map_or(0, |height| (height + 1) / self.period);
        let mut state = DeploymentState::Defined;
        for period in 1..=periods {
            let last = period * self.period - 1;
            let median_time = ancestors.median_time_past_at(last);
            state = match state {
                DeploymentState::Defined if median_time >= start_time => DeploymentState::Started,
                DeploymentState::Started => {
                    let blocks = last + 1 - self.period..=last;
                    if self.count(blocks, &version_at) >= self.threshold {
                        DeploymentState::LockedIn
                    } else if self.timeout.is_some_and(|timeout| median_time >= timeout) {
                        DeploymentState::Failed
                    } else {
                        DeploymentState::Started
                    }
                }
                DeploymentState::LockedIn if last + 1 >= self.min_activation_height => {
                    DeploymentState::Active
                }
                DeploymentState::Active | DeploymentState::Failed => break,
                waiting => waiting,
            };
        }
        state
    }

    /// Height of the first block of the state that the block after the one at `parent_height` has.
    pub fn state_since<A: Ancestors + ?Sized>(
        &self,
        ancestors: &A,
        parent_height: Option<u32>,
        version_at: impl Fn(u32) -> i32,
    ) -> u32 {
        let state_of = |parent_height| self.state_after(ancestors, parent_height, &version_at);
        let state = state_of(parent_height);
        let mut first = parent_height.map_or(0, |height| (height + 1) / self.period * self.period);
        if state == DeploymentState::Defined || self.start_time.is_none() {
            return 0;
        }
        while let Some(before) = first.checked_sub(self.period) {
            if state_of(before.checked_sub(1)) != state {
                break;
            }
            first = before;
        }
        first
    }

    /// Signals among these blocks.
    pub fn count(
        &self,
        heights: std::ops::RangeInclusive<u32>,
        version_at: impl Fn(u32) -> i32,
    ) -> u32 {
        heights.filter(|height| self.is_signal(version_at(*height))).count() as u32
    }
}

#[cfg(test)]
mod tests {
    use assay_wire::BlockHash;

    use super::*;
    use crate::chain::HeaderFacts;

    const DUMMY: Deployment = Deployment {
        name: "testdummy",
        bit: 28,
        start_time: Some(0),
        timeout: None,
        min_activation_height: 0,
        period: 144,
        threshold: 108,
        is_optional: true,
    };

    fn chain(length: u32) -> Vec<HeaderFacts> {
        (0..length).map(|time| HeaderFacts { hash: BlockHash::ZERO, time, bits: 0 }).collect()
    }

    #[test]
    fn states_follow_one_another_by_periods() {
        let chain = chain(700);
        let signalling = |height: u32| if height >= 144 { 0x3000_0000 } else { 0x2000_0000 };
        let state = |of: &Deployment, parent| of.state_after(&chain[..], parent, signalling);
        for (parent, expected, since) in [
            (None, DeploymentState::Defined, 0),
            (Some(142), DeploymentState::Defined, 0),
            (Some(143), DeploymentState::Started, 144),
            (Some(286), DeploymentState::Started, 144),
            (Some(287), DeploymentState::LockedIn, 288),
            (Some(431), DeploymentState::Active, 432),
            (Some(699), DeploymentState::Active, 432),
        ] {
            assert_eq!(state(&DUMMY, parent), expected, "{parent:?}");
            assert_eq!(DUMMY.state_since(&chain[..], parent, signalling), since, "{parent:?}");
        }
        let late = Deployment { min_activation_height: 500, ..DUMMY };
        assert_eq!(state(&late, Some(431)), DeploymentState::LockedIn);
        assert_eq!(state(&late, Some(575)), DeploymentState::Active);
        let never = Deployment { start_time: None, ..DUMMY };
        assert_eq!(state(&never, Some(431)), DeploymentState::Failed);
        let short = Deployment { timeout: Some(200), threshold: 145, ..DUMMY };
        assert_eq!(state(&short, Some(286)), DeploymentState::Started);
        assert_eq!(state(&short, Some(287)), DeploymentState::Failed);
    }

    #[test]
    fn a_signal_has_the_top_bits() {
        assert!(DUMMY.is_signal(0x3000_0000) && DUMMY.is_signal(0x3fff_ffff));
        assert!(!DUMMY.is_signal(0x2000_0000) && !DUMMY.is_signal(0x1000_0000));
        assert!(!DUMMY.is_signal(-1));
    }
}
