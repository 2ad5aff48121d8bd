//! The device's own log of a launch's time: the script that fetches it, and what it says about the launch. Pure.
//!
//! A program that the system ended says nothing: who ended it stands in logcat (Android's low memory killer, the activity manager, SELinux, QNN and
//! FastRPC, which log there) or in the kernel's log (out of memory, a DSP that crashed, heat). The text is kept whole beside the launch.

mod window;

use std::collections::BTreeSet;

use bench_backend_api::{
    Ended, Failure, FailureKind,
    knowledge::{Found, Table, Weight},
};
use serde::{Deserialize, Serialize};

pub use window::{Start, Window, command, jump};

/// Name of the kept text in the launch's folder.
pub const FILE: &str = "logcat.txt";

/// The most bytes of each of the two logs that are fetched and read: their ends, where the failure is.
pub const LIMIT: usize = 2 << 20;

/// The line between logcat and the kernel's log.
const KERNEL: &str = "--------- kernel";

/// What is known of the launch that a log may speak of.
#[derive(Debug, Clone, Copy, Default)]
pub struct Launched<'a> {
    /// Its process ids; may be empty.
    pub pids: &'a [i32],
    /// The name of its program, as `ps` shows it. A kernel's log has its first 15 characters.
    pub program: &'a str,
    /// Start and end, `CLOCK_MONOTONIC` ns: a line of the kernel outside is of another time.
    pub window_ns: Option<(u64, u64)>,
    /// The wall clock jumped meanwhile: the stamps of logcat, which has no other clock, don't tell what is of this launch. The kernel's do.
    pub jumped: bool,
}

/// Something that a log says about a launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The table's entry.
    pub id: String,
    /// Who is to blame.
    pub kind: FailureKind,
    /// It is of one of the launch's own processes, not of the whole device.
    pub own: bool,
    /// It tells how the launch's process came to its end.
    pub ended_it: bool,
    /// It is a remark: it explains nothing that something else explains.
    pub remark: bool,
    /// How often.
    pub count: u32,
    /// When it was first said, as the log writes it.
    pub stamp: String,
    /// The first line, without stamp and level.
    pub line: String,
    /// Cause and next step.
    pub hint: String,
}

/// One line of a log.
#[derive(Debug, Default, PartialEq)]
struct Event<'a> {
    stamp: &'a str,
    pid: Option<i32>,
    /// `V D I W E F` of logcat.
    level: Option<char>,
    tag: &'a str,
    message: &'a str,
    /// Seconds since boot of a line of the kernel.
    kernel_s: Option<f64>,
}

/// The most findings that are told.
const MOST: usize = 16;

/// What a text, fetched by [`command`] or any other logcat or dmesg text, says about a launch; the nearest to the cause first.
pub fn read(text: &str, table: &Table, launched: Launched<'_>) -> Vec<Finding> {
    let mut found: Vec<(usize, Finding)> = Vec::new();
    for event in text.lines().filter_map(parse) {
        if launched.jumped && event.kernel_s.is_none() {
            continue;
        }
        let said = format!("{}: {}", event.tag, event.message);
        let line = if event.tag.is_empty() { event.message } else { &said };
        let Some(entry) = table.find(line) else { continue };
        let own = is_own(&event, &entry, launched);
        if !(own || is_systems(&event, &entry)) || is_elsewhen(&event, launched) {
            continue;
        }
        if let Some((_, same)) = found.iter_mut().find(|(_, f)| f.id == entry.entry.id && f.own == own) {
            same.count += 1;
            continue;
        }
        let finding = Finding {
            id: entry.entry.id.clone(),
            kind: entry.entry.kind,
            own,
            ended_it: own && entry.entry.ends_process,
            remark: entry.entry.weight == Weight::Soft,
            count: 1,
            stamp: event.stamp.to_owned(),
            line: line.chars().filter(|c| !c.is_control()).take(300).collect(),
            hint: entry.hint(),
        };
        found.push((entry.rank, finding));
    }
    found.sort_by_key(|(rank, finding)| (finding.remark, !finding.ended_it, !finding.own, *rank));
    found.into_iter().take(MOST).map(|(_, finding)| finding).collect()
}

/// Kills by Android's low memory killer in a text of [`command`], of whatever process: it never kills what was started from a shell, and ends others
/// when that takes too much. `None` where the device has no logcat to tell (it is left out of some ROMs).
pub fn lmkd_kills(text: &str, table: &Table) -> Option<u32> {
    let logcat = text.split(KERNEL).next().unwrap_or_default();
    let events: Vec<Event<'_>> = logcat.lines().filter_map(parse).filter(|event| !event.stamp.is_empty()).collect();
    let kills = |event: &&Event<'_>| table.find(&format!("{}: {}", event.tag, event.message)).is_some_and(|f| f.entry.id == "lmkd-kill");
    (!events.is_empty()).then(|| events.iter().filter(kills).count() as u32)
}

/// A failure with what the log adds. A process that was ended from outside, or whose end nobody saw, is explained by the log; a failure that the
/// backend explained itself keeps its words.
pub fn attribute(mut failure: Failure, ended: &Ended, findings: &[Finding]) -> Failure {
    let silent = ended.signal.is_some() || (ended.code.is_none() && ended.reason != "timeout");
    let told = findings.iter().find(|finding| finding.ended_it && !finding.remark && silent);
    let told = told.or_else(|| findings.iter().find(|finding| !finding.remark && (silent || failure.hint.is_none())));
    let told = told.or_else(|| findings.iter().find(|finding| finding.own && failure.hint.is_none()));
    if let Some(finding) = told {
        failure.kind = finding.kind;
        failure.message = format!("{}; the device's log: {}", failure.message, finding.line);
        failure.hint = Some(finding.hint.clone());
    }
    failure
}

/// Whether a line is of the launch: written by one of its processes, or about one.
fn is_own(event: &Event<'_>, found: &Found<'_>, launched: Launched<'_>) -> bool {
    let has = |pid: Option<i32>| pid.is_some_and(|pid| launched.pids.contains(&pid));
    let named = |name: &str| !launched.program.is_empty() && (name == launched.program || name == short(launched.program));
    let about = found.kept.get("process").is_some_and(|process| named(process));
    // Where the pids are known, the name alone may be that of another run.
    let by_name = launched.pids.is_empty() && (named(event.tag) || about);
    has(found.pid()) || (has(event.pid) && found.pid().is_none()) || has(pid_in(event.message)) || by_name
}

/// The kernel keeps 15 characters of a name.
fn short(name: &str) -> &str {
    name.char_indices().nth(15).map_or(name, |(end, _)| &name[..end])
}

/// `pid=4711` in a line of SELinux's.
fn pid_in(message: &str) -> Option<i32> {
    let digits = message.split_once("pid=")?.1;
    digits[..digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len())].parse().ok()
}

/// Parts of the system whose lines are about the whole device, whoever wrote them.
const SYSTEM_TAGS: [&str; 10] = [
    "lowmemorykiller",
    "lmkd",
    "ActivityManager",
    "am_low_memory",
    "ThermalManagerService",
    "thermal-engine",
    "bootstat",
    "init",
    "Watchdog",
    "kernel",
];

/// Whether a line that names no process of the launch still says something about it. One that names another process does not.
fn is_systems(event: &Event<'_>, found: &Found<'_>) -> bool {
    let system = event.kernel_s.is_some() || SYSTEM_TAGS.contains(&event.tag);
    system && found.pid().is_none() && pid_in(event.message).is_none()
}

/// Seconds by which the kernel's clock may differ from the agent's.
const SLACK_S: f64 = 5.0;

fn is_elsewhen(event: &Event<'_>, launched: Launched<'_>) -> bool {
    let Some((start, end)) = launched.window_ns else { return false };
    event.kernel_s.is_some_and(|at| at < start as f64 / 1e9 - SLACK_S || at > end as f64 / 1e9 + SLACK_S)
}

fn parse(line: &str) -> Option<Event<'_>> {
    let line = line.trim();
    if line.is_empty() || line.starts_with("---------") {
        return None;
    }
    Some(logcat(line).or_else(|| brief(line)).or_else(|| kernel(line)).unwrap_or(Event { message: line, ..Event::default() }))
}

/// `-v threadtime`, with or without the modifiers `epoch`, `year` and `uid`:
/// `01-05 15:23:12.072  2000 29837 29837 E QnnDsp  :  <E> message`, `1767607392.072 29837 29837 E tag: message`.
fn logcat(line: &str) -> Option<Event<'_>> {
    let mut rest = line;
    let mut word = || {
        rest = rest.trim_start();
        let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = after;
        word
    };
    let first = word();
    let seconds =
        |text: &str| text.split_once('.').is_some_and(|(s, ms)| s.len() > 5 && (s.to_owned() + ms).bytes().all(|b| b.is_ascii_digit()));
    let date = |text: &str| text.len() >= 5 && text.contains('-') && text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    let stamp_end = if seconds(first) {
        first.len()
    } else if date(first) {
        let time = word();
        if time.matches(':').count() != 2 {
            return None;
        }
        line.find(time)? + time.len()
    } else {
        return None;
    };
    // [uid] pid tid level
    let mut ids = Vec::new();
    let level = loop {
        let next = word();
        match (next.len(), next.chars().next()?) {
            (1, level @ ('V' | 'D' | 'I' | 'W' | 'E' | 'F' | 'S')) => break level,
            _ if ids.len() < 3 => ids.push(next),
            _ => return None,
        }
    };
    let pid = ids.len().checked_sub(2).and_then(|at| ids[at].parse().ok());
    // A tag ends with `: `; spaces pad it. An empty message leaves the colon at the end.
    let (tag, message) = rest.split_once(": ").unwrap_or((rest.strip_suffix(':').unwrap_or(""), ""));
    Some(Event { stamp: &line[..stamp_end], pid, level: Some(level), tag: tag.trim(), message: message.trim(), kernel_s: None })
}

/// `-v brief`: `I/lowmemorykiller(  479): message`.
fn brief(line: &str) -> Option<Event<'_>> {
    let level = line.chars().next().filter(|c| "VDIWEF".contains(*c))?;
    let (head, message) = line[1..].strip_prefix('/')?.split_once("): ")?;
    let (tag, pid) = head.rsplit_once('(')?;
    Some(Event { pid: Some(pid.trim().parse().ok()?), level: Some(level), tag: tag.trim(), message: message.trim(), ..Event::default() })
}

/// `<6>[  208.233350] message`, with a further bracket for the thread where the kernel writes one.
fn kernel(line: &str) -> Option<Event<'_>> {
    let text = line.strip_prefix('<').and_then(|priority| priority.split_once('>')).map_or(line, |(_, text)| text);
    let (stamp, message) = text.strip_prefix('[')?.split_once(']')?;
    let at = stamp.trim().parse::<f64>().ok().filter(|at| at.is_finite())?;
    let message = message.trim_start();
    let message = message.strip_prefix('[').and_then(|thread| thread.split_once(']')).map_or(message, |(_, message)| message);
    Some(Event { stamp: stamp.trim(), message: message.trim(), kernel_s: Some(at), ..Event::default() })
}

/// The hints of what a log says beside a failure that it does not explain, each once: for the warnings of a launch.
pub fn remarks(findings: &[Finding]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    findings
        .iter()
        .filter(|finding| finding.own || !finding.remark)
        .filter(|finding| seen.insert(&finding.hint))
        .map(|f| {
            let times = if f.count > 1 { format!(" ({} times)", f.count) } else { String::new() };
            format!("the device's log{times}: {}: {}", f.line, f.hint)
        })
        .collect()
}

#[cfg(test)]
mod tests;
