//! What a device lets its user see of itself: the table of its telemetry sources, as its agent probed them.

use bench_agent::spec::{SourceReport, SourceState};

use crate::doctor::{Check, Said};

/// The agent's list, or why there is none.
pub type Observed = Result<Vec<SourceReport>, String>;

/// The list.
pub static CHECKS: &[Check<Observed>] = &[Check {
    id: "telemetry",
    why: "what can't be seen can't explain a figure: throttling, memory and power are told by these",
    of: sources,
}];

/// Sources without which a figure can't be judged, and what is lost.
const NEEDED: [(&str, &str); 3] = [
    ("process", "memory and CPU of the engine are not seen"),
    ("thermal", "no temperature: neither waiting for a band nor throttling can be told"),
    ("cpufreq", "no clocks: a cap is not seen"),
];
/// A first reading that took longer than this belongs to a slow node, microseconds.
const SLOW_US: u64 = 500_000;

fn sources(observed: &Observed) -> Vec<Said> {
    let reports = match observed {
        Ok(reports) => reports,
        Err(words) => return vec![Said::warning(words, "see the other findings about this device")],
    };
    reports.iter().map(said).collect()
}

fn said(report: &SourceReport) -> Said {
    let line = line(report);
    let needed = NEEDED.iter().find(|(name, _)| *name == report.name);
    match (report.state, needed) {
        (SourceState::Available, _) if report.read_us.is_some_and(|us| us > SLOW_US) => {
            Said::note(format!("{line}; slow: what did not answer is not sampled"))
        }
        (SourceState::Available, _) => Said::ok(line),
        (SourceState::Denied, Some((_, lost))) => {
            Said::warning(format!("{line}; {lost}"), "adb root, where the build allows it; or take it as it is")
        }
        // What is absent is absent: a PC in a virtual machine has neither zones nor policies.
        (SourceState::Denied, None) | (SourceState::Absent, _) => Said::note(line),
    }
}

/// A line of the table: name, state, errno, time of the first readings, detail.
fn line(report: &SourceReport) -> String {
    let state = match report.state {
        SourceState::Available => "available",
        SourceState::Denied => "denied",
        SourceState::Absent => "absent",
    };
    let errno = report.errno.map_or_else(|| "-".to_owned(), errno_word);
    let time = report.read_us.map_or_else(|| "-".to_owned(), |us| format!("{:.1} ms", us as f64 / 1000.0));
    let line = format!("{:<15}{state:<10}{errno:<8}{time:>10}  {}", report.name, report.detail.as_deref().unwrap_or(""));
    line.trim_end().to_owned()
}

/// The word of a Linux errno (include/uapi/asm-generic/errno-base.h, errno.h): the device's, whatever system this computer has.
fn errno_word(errno: i32) -> String {
    const WORDS: [(i32, &str); 12] = [
        (1, "EPERM"),
        (2, "ENOENT"),
        (5, "EIO"),
        (6, "ENXIO"),
        (11, "EAGAIN"),
        (13, "EACCES"),
        (16, "EBUSY"),
        (19, "ENODEV"),
        (22, "EINVAL"),
        (61, "ENODATA"),
        (95, "ENOTSUP"),
        (110, "ETIMEDOUT"),
    ];
    WORDS.iter().find(|(number, _)| *number == errno).map_or_else(|| format!("errno {errno}"), |(_, word)| (*word).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{Severity, examine};

    fn report(name: &str, state: SourceState, errno: Option<i32>, read_us: u64, detail: &str) -> SourceReport {
        SourceReport { name: name.to_owned(), state, errno, detail: Some(detail.to_owned()), read_us: Some(read_us) }
    }

    #[test]
    fn a_table() {
        let observed = Ok(vec![
            report("thermal", SourceState::Available, None, 198_400, "82 zones, 7 of them fast"),
            report("gpu", SourceState::Denied, Some(13), 60, ""),
            report("npu", SourceState::Absent, None, 90, "sysmon-debugfs: unknown format"),
            report("devfreq", SourceState::Absent, Some(2), 23, ""),
        ]);
        let found = examine(CHECKS, "R5", &observed);
        let lines: Vec<_> = found.iter().map(|f| f.what.as_str()).collect();
        let expected = [
            "thermal        available -         198.4 ms  82 zones, 7 of them fast",
            "gpu            denied    EACCES      0.1 ms",
            "npu            absent    -           0.1 ms  sysmon-debugfs: unknown format",
            "devfreq        absent    ENOENT      0.0 ms",
        ];
        assert_eq!(lines, expected);
        assert!(found.iter().all(|f| f.severity <= Severity::Note));
    }

    #[test]
    fn what_a_figure_needs_is_a_warning_when_it_is_refused() {
        let observed = Ok(vec![report("thermal", SourceState::Denied, Some(13), 10, "")]);
        let found = examine(CHECKS, "R5", &observed);
        assert_eq!(found[0].severity, Severity::Warning);
        assert!(found[0].what.contains("neither waiting for a band"));
        let found = examine(CHECKS, "R5", &Err("gone".to_owned()));
        assert_eq!((found[0].severity, found[0].what.as_str()), (Severity::Warning, "gone"));
    }
}
