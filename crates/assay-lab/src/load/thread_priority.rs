//! Thread priorities when there are more threads than cores.
//!
//! Server and generator share the cores of one machine. The server is measured, so the thread that sends requests and reads the
//! clock gets real-time priority if the system allows it, and the hostile thread gets idle priority: attackers on other machines
//! would use no core of the server either.

use thread_priority::{
    NormalThreadSchedulePolicy, RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

/// Gives the calling thread and its future children priority over all others; returns false if the system denies it.
pub(crate) fn first() -> bool {
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy).is_ok()
}

/// Lets the calling thread run only on idle cores.
pub(crate) fn last() {
    #[cfg(target_os = "linux")]
    let policy = NormalThreadSchedulePolicy::Idle;
    #[cfg(not(target_os = "linux"))]
    let policy = NormalThreadSchedulePolicy::Other;
    let policy = ThreadSchedulePolicy::Normal(policy);
    // On failure the hostile clients only add more load.
    let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy);
}
