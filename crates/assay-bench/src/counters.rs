//! Hardware counters: instructions, cycles and branches by `perf_event_open`.
//!
//! Many virtual machines have no such counters, or ones that stay zero. Uncounted values are absent, never zero.

use serde::{Deserialize, Serialize};

/// Events of one epoch on the timed thread; absent if not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub instructions: Option<u64>,
    pub cycles: Option<u64>,
    pub branches: Option<u64>,
    pub branch_misses: Option<u64>,
}

impl Counts {
    /// Sum of both; absent if either is.
    pub(crate) fn and(self, other: Self) -> Self {
        let add = |left: Option<u64>, right: Option<u64>| Some(left? + right?);
        Self {
            instructions: add(self.instructions, other.instructions),
            cycles: add(self.cycles, other.cycles),
            branches: add(self.branches, other.branches),
            branch_misses: add(self.branch_misses, other.branch_misses),
        }
    }
}

pub(crate) fn counted<T>(work: impl FnOnce() -> T) -> (T, Counts) {
    hardware::counted(work)
}

/// Checks that this machine counts instructions for this process.
///
/// # Errors
/// Human-readable reason if it does not.
pub fn available() -> Result<(), String> {
    let work = || (0..1000u64).fold(0, |sum, number| std::hint::black_box(sum ^ number));
    match hardware::opened() {
        Err(refusal) => Err(refusal),
        Ok(()) => match counted(work).1.instructions {
            Some(count) if count > 0 => Ok(()),
            _ => Err("the counter of instructions never moves".to_owned()),
        },
    }
}

#[cfg(target_os = "linux")]
mod hardware {
    use std::cell::RefCell;
    use std::io;

    use perf_event::events::Hardware;
    use perf_event::{Builder, Counter, Group};

    use super::Counts;

    thread_local! {
        /// Counters belong to a thread; they are opened at its first measurement.
        static EVENTS: RefCell<Result<Events, String>> = RefCell::new(Events::open());
    }

    struct Events {
        group: Group,
        instructions: Option<Counter>,
        cycles: Option<Counter>,
        branches: Option<Counter>,
        branch_misses: Option<Counter>,
    }

    impl Events {
        /// Opens the available counters; fails without an instruction counter.
        fn open() -> Result<Self, String> {
            let refused =
                |error: io::Error| format!("the system denies access to counters ({error})");
            let mut group = Group::new().map_err(refused)?;
            let instructions = Builder::new()
                .group(&mut group)
                .kind(Hardware::INSTRUCTIONS)
                .build()
                .map_err(refused)?;
            let mut other = |event| Builder::new().group(&mut group).kind(event).build().ok();
            Ok(Self {
                cycles: other(Hardware::CPU_CYCLES),
                branches: other(Hardware::BRANCH_INSTRUCTIONS),
                branch_misses: other(Hardware::BRANCH_MISSES),
                instructions: Some(instructions),
                group,
            })
        }

        fn start(&mut self) -> io::Result<()> {
            self.group.reset()?;
            self.group.enable()
        }

        fn stop(&mut self) -> io::Result<Counts> {
            self.group.disable()?;
            let data = self.group.read()?;
            // A group that shared the registers with others only covers a part of the time.
            if data.time_running() != data.time_enabled() {
                return Ok(Counts::default());
            }
            let value = |counter: &Option<Counter>| data.get(counter.as_ref()?).copied();
            Ok(Counts {
                instructions: value(&self.instructions),
                cycles: value(&self.cycles),
                branches: value(&self.branches),
                branch_misses: value(&self.branch_misses),
            })
        }
    }

    pub(super) fn opened() -> Result<(), String> {
        EVENTS.with_borrow(|events| events.as_ref().map(drop).map_err(String::clone))
    }

    pub(super) fn counted<T>(work: impl FnOnce() -> T) -> (T, Counts) {
        let is_on = EVENTS
            .with_borrow_mut(|events| events.as_mut().is_ok_and(|events| events.start().is_ok()));
        let result = work();
        if !is_on {
            return (result, Counts::default());
        }
        let counts = EVENTS.with_borrow_mut(|events| {
            events.as_mut().ok().and_then(|events| events.stop().ok()).unwrap_or_default()
        });
        (result, counts)
    }
}

#[cfg(not(target_os = "linux"))]
mod hardware {
    use super::Counts;

    pub(super) fn opened() -> Result<(), String> {
        Err("this program knows counters on Linux only".to_owned())
    }

    pub(super) fn counted<T>(work: impl FnOnce() -> T) -> (T, Counts) {
        (work(), Counts::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_lack_missing_counts() {
        let some = Counts { instructions: Some(5), cycles: Some(7), ..Counts::default() };
        let sum = some.and(Counts { instructions: Some(1), ..Counts::default() });
        assert_eq!(sum, Counts { instructions: Some(6), ..Counts::default() });
    }

    #[test]
    fn counters_count_or_say_why_not() {
        let loops = |count: u64| (0..count).fold(0, |sum, n| std::hint::black_box(sum ^ n));
        let (_, counts) = counted(|| loops(100_000));
        match available() {
            Ok(()) => assert!(counts.instructions.is_some_and(|count| count >= 100_000)),
            Err(why) => {
                eprintln!("skipped: {why}");
                assert!(!why.is_empty());
                assert!(counts.instructions.is_none_or(|count| count == 0));
            }
        }
    }
}
