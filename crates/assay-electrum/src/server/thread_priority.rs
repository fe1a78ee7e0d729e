//! Thread priorities.
#![cfg_attr(
    target_os = "linux",
    expect(unsafe_code, reason = "no library sets the slice of a thread: sched_setattr(2)")
)]

/// Reduces the wake-up latency of the calling thread, which preempts others: for threads that work briefly and sleep again.
///
/// Linux (6.12 and later) lets a woken thread preempt the running one if it has requested a shorter time slice. Its CPU share
/// stays the same, and no privilege is needed (`Documentation/scheduler/sched-eevdf.rst`). No effect elsewhere.
pub(super) fn wake_soon() {
    #[cfg(target_os = "linux")]
    linux::ask_for_short_slices();
}

/// Lowers the priority of the calling thread.
pub(super) fn yield_to_others() {
    #[cfg(target_os = "linux")]
    {
        const NICE: i32 = 10;
        // On Linux this applies to the thread; elsewhere it would apply to the whole process.
        let thread = rustix::thread::gettid();
        if let Err(error) = rustix::process::setpriority_process(Some(thread), NICE) {
            tracing::debug!("The priority of a thread stays as it is: {error}");
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    /// The minimum slice of the scheduler.
    const SLICE_NS: u64 = 100_000;

    /// `struct sched_attr` of `linux/sched/types.h`, first version.
    #[repr(C)]
    struct SchedAttr {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime: u64,
        deadline: u64,
        period: u64,
    }

    pub(super) fn ask_for_short_slices() {
        let thread = rustix::thread::gettid();
        let Ok(nice) = rustix::process::getpriority_process(Some(thread)) else { return };
        let attributes = SchedAttr {
            size: size_of::<SchedAttr>() as u32,
            policy: libc::SCHED_OTHER as u32,
            flags: 0,
            nice,
            priority: 0,
            runtime: SLICE_NS,
            deadline: 0,
            period: 0,
        };
        let of_this_thread: libc::pid_t = 0;
        let flags: libc::c_uint = 0;
        let pointer = std::ptr::from_ref(&attributes);
        // SAFETY: the structure is that of the system call, has its size in its first field, and outlives the call.
        let result =
            unsafe { libc::syscall(libc::SYS_sched_setattr, of_this_thread, pointer, flags) };
        if result != 0 {
            tracing::debug!(
                "A thread's slice of time stays as it is: {}",
                std::io::Error::last_os_error()
            );
        }
    }
}

#[cfg(test)]
mod tests {
    /// Neither call may fail, whatever the system permits.
    #[test]
    fn priority_calls_never_fail() {
        std::thread::spawn(|| {
            super::wake_soon();
            super::yield_to_others();
            super::wake_soon();
        })
        .join()
        .unwrap();
    }
}
