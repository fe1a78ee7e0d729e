//! Who comes first when there are more threads than cores.
//!
//! Server and generator share the cores of one machine. What is measured is the server, so the thread that asks and reads the clock is
//! made to run the moment it has something to do, where the system allows it, and the thread that misbehaves runs when nobody else
//! wants to: attackers on other machines would take no time from the server's cores either.

use thread_priority::{
    NormalThreadSchedulePolicy, RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

/// Has the calling thread, and those that it starts, run before all others; says whether the system allows it.
pub(crate) fn first() -> bool {
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy).is_ok()
}

/// Has the calling thread run when no other wants to.
pub(crate) fn last() {
    #[cfg(target_os = "linux")]
    let policy = NormalThreadSchedulePolicy::Idle;
    #[cfg(not(target_os = "linux"))]
    let policy = NormalThreadSchedulePolicy::Other;
    let policy = ThreadSchedulePolicy::Normal(policy);
    // Without it the hostile clients are only more of a burden.
    let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy);
}
