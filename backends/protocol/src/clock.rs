//! The one clock of a run.

/// Absolute `CLOCK_MONOTONIC` in nanoseconds: the clock of the agent's telemetry, so that an event needs no conversion to be
/// placed among the samples. `std::time::Instant` reads the same clock but does not show its value.
///
/// # Panics
/// Never on Linux and Android, where this clock always exists.
#[cfg(unix)]
pub fn monotonic_ns() -> u64 {
    use nix::time::{ClockId, clock_gettime};
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("CLOCK_MONOTONIC exists on every Linux");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// Nanoseconds since the first call, for a user's own runner on Windows: no agent runs there, so there is no telemetry to be placed with.
#[cfg(not(unix))]
pub fn monotonic_ns() -> u64 {
    use std::{sync::LazyLock, time::Instant};
    static FIRST: LazyLock<Instant> = LazyLock::new(Instant::now);
    FIRST.elapsed().as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::monotonic_ns;

    #[test]
    fn goes_forward_at_the_pace_of_time() {
        let before = monotonic_ns();
        std::thread::sleep(std::time::Duration::from_millis(5));
        let elapsed = monotonic_ns() - before;
        assert!((5_000_000..5_000_000_000).contains(&elapsed), "{elapsed} ns for a sleep of 5 ms");
    }
}
