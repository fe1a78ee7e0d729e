//! CPU affinity of a thread and its children.

use std::io;

/// Cores that this thread may use.
///
/// # Errors
/// When the system does not report them.
#[cfg(target_os = "linux")]
pub fn allowed() -> io::Result<Vec<usize>> {
    use rustix::thread::{CpuSet, sched_getaffinity};
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect())
}

/// Calls `work` with this thread, and all it starts, bound to `cores`.
///
/// # Errors
/// When the system does not allow it.
#[cfg(target_os = "linux")]
pub fn on<T>(cores: &[usize], work: impl FnOnce() -> T) -> io::Result<T> {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let before = sched_getaffinity(None)?;
    let mut wanted = CpuSet::new();
    for core in cores.iter().filter(|core| **core < CpuSet::MAX_CPU) {
        wanted.set(*core);
    }
    sched_setaffinity(None, &wanted)?;
    let result = work();
    sched_setaffinity(None, &before)?;
    Ok(result)
}

/// All cores: other systems have no portable affinity call.
///
/// # Errors
/// When the system does not report them.
#[cfg(not(target_os = "linux"))]
pub fn allowed() -> io::Result<Vec<usize>> {
    Ok((0..std::thread::available_parallelism()?.get()).collect())
}

/// Calls `work` if `cores` are all cores.
///
/// # Errors
/// When `cores` are not all.
#[cfg(not(target_os = "linux"))]
pub fn on<T>(cores: &[usize], work: impl FnOnce() -> T) -> io::Result<T> {
    if cores != allowed()? {
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(work())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binds_and_restores_cores() {
        let before = allowed().expect("the system tells");
        let one = &before[..1];
        let within = on(one, || allowed().expect("the system tells"));
        match within {
            Ok(within) => assert_eq!(within, one),
            Err(error) => eprintln!("skipped: no affinity here ({error})"),
        }
        assert_eq!(allowed().expect("the system tells"), before);
    }
}
