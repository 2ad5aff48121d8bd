//! The device's clocks and waiting on them. Everything the agent records is absolute `CLOCK_MONOTONIC` ns.

use std::io::PipeReader;
use std::os::fd::AsFd;
use std::time::{SystemTime, UNIX_EPOCH};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use nix::time::ClockId;

fn read(clock: ClockId) -> u64 {
    // It cannot fail for the two clocks used here; 0 would be visible in the evidence.
    clock.now().map_or(0, nanoseconds)
}

/// A kernel time in ns.
pub fn nanoseconds(t: TimeSpec) -> u64 {
    t.tv_sec().cast_unsigned().saturating_mul(1_000_000_000).saturating_add(t.tv_nsec().cast_unsigned())
}

/// `CLOCK_MONOTONIC`, ns.
pub fn monotonic_ns() -> u64 {
    read(ClockId::CLOCK_MONOTONIC)
}

/// `CLOCK_BOOTTIME` minus `CLOCK_MONOTONIC`, ns: the time spent suspended since boot.
pub fn suspended_ns() -> i64 {
    // The middle of two readings, so that being scheduled away between them costs half; best of three for the rest.
    (0..3)
        .map(|_| {
            let before = monotonic_ns();
            let boot = read(ClockId::CLOCK_BOOTTIME);
            let after = monotonic_ns();
            (after.saturating_sub(before), boot.cast_signed() - before.midpoint(after).cast_signed())
        })
        .min()
        .map_or(0, |(_, offset)| offset)
}

/// Now, as RFC 3339 in UTC with milliseconds.
pub fn utc_now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    rfc3339(since.as_secs(), since.subsec_millis())
}

fn rfc3339(seconds: u64, millis: u32) -> String {
    // Days to a civil date, from Howard Hinnant's "chrono-compatible low-level date algorithms", for days after 1970.
    let z = seconds / 86400 + 719_468;
    let era = z / 146_097;
    let day_of_era = z % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let s = seconds % 86400;
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{millis:03}Z", s / 3600, s / 60 % 60, s % 60)
}

/// Why a wait was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// The time came.
    Time,
    /// The file with this index is readable.
    By(usize),
    /// The writer of the stop pipe is gone, or waiting is impossible.
    Stop,
}

/// Waits until `until_ns` (monotonic), until one of `others` is readable, or until the writer of `stop` is gone.
pub fn wait_for(until_ns: u64, stop: &PipeReader, others: &[&dyn AsFd]) -> Woken {
    let mut fds = vec![PollFd::new(stop.as_fd(), PollFlags::POLLIN)];
    fds.extend(others.iter().map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN)));
    loop {
        // The time-out is made anew from the absolute time: periods don't drift. A day at most, since an empty `i64` is no time.
        let left = until_ns.saturating_sub(monotonic_ns()).min(86_400_000_000_000);
        let left = TimeSpec::new((left / 1_000_000_000).cast_signed(), (left % 1_000_000_000).cast_signed());
        match ppoll(&mut fds, Some(left), None) {
            Err(Errno::EINTR) => {}
            // Not being able to wait must not become a busy loop.
            Err(_) => return Woken::Stop,
            Ok(_) => {
                let ready = fds.iter().position(|fd| fd.revents().is_none_or(|events| !events.is_empty()));
                return match ready {
                    None if monotonic_ns() < until_ns => continue,
                    None => Woken::Time,
                    Some(0) => Woken::Stop,
                    Some(index) => Woken::By(index - 1),
                };
            }
        }
    }
}

/// As [`wait_for`] with nothing but the time; `false` means stop.
pub fn wait(until_ns: u64, stop: &PipeReader) -> bool {
    wait_for(until_ns, stop, &[]) != Woken::Stop
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn civil_dates() {
        assert_eq!(rfc3339(0, 0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(951_782_399, 999), "2000-02-28T23:59:59.999Z");
        assert_eq!(rfc3339(951_782_400, 5), "2000-02-29T00:00:00.005Z");
        assert_eq!(rfc3339(1_767_225_599, 0), "2025-12-31T23:59:59.000Z");
    }

    #[test]
    fn waiting_ends_at_the_time_or_when_stopped() {
        let (stop, writer) = std::io::pipe().unwrap();
        let due = monotonic_ns() + 5_000_000;
        assert!(wait(due, &stop));
        assert!(monotonic_ns() >= due);
        drop(writer);
        assert!(!wait(u64::MAX, &stop));
    }

    #[test]
    fn boot_time_is_not_behind() {
        assert!(suspended_ns() > -1_000_000);
    }
}
