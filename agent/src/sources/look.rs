//! Looking what is there without being stopped by it: every first reading of a node is made by another thread and waited for only so long.

use std::cell::{Cell, RefCell};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// A node that takes longer than this to answer once is not sampled.
const PATIENCE: Duration = Duration::from_millis(500);
/// When so much time was lost to silent nodes, the others get [`HASTE`]: a run must begin.
const MOST_LOST: Duration = Duration::from_secs(2);
const HASTE: Duration = Duration::from_millis(20);
/// The most that is read of a node (a page, as sysfs has it) and the most names of a folder.
pub const MOST_BYTES: u64 = 4096;
const MOST_NAMES: usize = 512;
/// The most silent nodes that are named.
const MOST_TOLD: usize = 3;

type Job = Box<dyn FnOnce() + Send>;

thread_local! {
    static WORKER: RefCell<Option<Sender<Job>>> = const { RefCell::new(None) };
    static LOST: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Has `work` done by a thread that may get stuck; `TimedOut` if it did. What comes later is dropped.
pub fn patiently<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let limit = if LOST.get() > MOST_LOST { HASTE } else { PATIENCE };
    within(limit, work).inspect_err(|_| LOST.set(LOST.get() + limit))
}

/// The same with a limit of its own.
pub fn within<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let (answer, answered) = mpsc::channel();
    let job: Job = Box::new(move || {
        let _ = answer.send(work());
    });
    let worker = match WORKER.take() {
        Some(worker) => worker,
        None => hire()?,
    };
    worker.send(job).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
    match answered.recv_timeout(limit) {
        Ok(result) => {
            WORKER.set(Some(worker));
            Ok(result)
        }
        // The worker is stuck: it ends when it comes back and finds nobody who has work for it.
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

fn hire() -> io::Result<Sender<Job>> {
    let (jobs, inbox) = mpsc::channel::<Job>();
    thread::Builder::new().name("look".to_owned()).stack_size(256 << 10).spawn(move || inbox.iter().for_each(|job| job()))?;
    Ok(jobs)
}

/// What was met while looking for the nodes of one source.
#[derive(Default)]
pub struct Look {
    /// The error that says most (see [`worse`]).
    pub refused: Option<io::Error>,
    /// How long the readings took together.
    pub took: Duration,
    silent: Vec<String>,
}

impl Look {
    /// Does `work` on a node, patiently. An error is kept; `name` is told if there is no answer.
    pub fn at<T: Send + 'static>(&mut self, name: &str, work: impl FnOnce() -> io::Result<T> + Send + 'static) -> Option<T> {
        let begun = Instant::now();
        let result = patiently(work);
        self.took += begun.elapsed();
        match result {
            Ok(Ok(value)) => return Some(value),
            Ok(Err(e)) => self.refuse(e),
            Err(e) => {
                self.silent.push(name.to_owned());
                self.refuse(e);
            }
        }
        None
    }

    /// Keeps an error if it says more than the last one.
    pub fn refuse(&mut self, error: io::Error) {
        self.refused = Some(worse(self.refused.take(), error));
    }

    /// A small text, trimmed.
    pub fn text(&mut self, path: &Path) -> Option<String> {
        let own = path.to_owned();
        let bytes = self.at(&path.to_string_lossy(), move || read_some(&own))?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// The names in a folder, sorted; `None` if it may not be listed.
    pub fn list(&mut self, folder: &Path) -> Option<Vec<String>> {
        let own = folder.to_owned();
        let mut names = self.at(&folder.to_string_lossy(), move || {
            let entries = fs::read_dir(own)?.take(MOST_NAMES);
            Ok(entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect::<Vec<_>>())
        })?;
        names.sort();
        Some(names)
    }

    /// The names in a folder, or those that are known where it may not be listed.
    pub fn names(&mut self, folder: &Path, known: &[&str]) -> Vec<String> {
        match self.list(folder) {
            Some(names) => names,
            None if folder.exists() => known.iter().map(|&name| name.to_owned()).collect(),
            None => Vec::new(),
        }
    }

    /// The numbers N of the entries `prefixN` of a folder, or all up to `most` where it may not be listed: they must be tried one by one.
    pub fn numbers(&mut self, folder: &Path, prefix: &str, most: u32) -> Vec<u32> {
        match self.list(folder) {
            Some(names) => {
                let mut numbers: Vec<u32> = names.iter().filter_map(|name| name.strip_prefix(prefix)?.parse().ok()).collect();
                numbers.sort_unstable();
                numbers.truncate(most as usize);
                numbers
            }
            None if folder.exists() => (0..most).collect(),
            None => Vec::new(),
        }
    }

    /// The nodes that did not answer, in words; empty if all did.
    pub fn silence(&self) -> String {
        if self.silent.is_empty() {
            return String::new();
        }
        let more = if self.silent.len() > MOST_TOLD { " ..." } else { "" };
        let named = self.silent.iter().take(MOST_TOLD).map(String::as_str).collect::<Vec<_>>().join(" ");
        format!("{} without an answer in {} ms: {named}{more}", self.silent.len(), PATIENCE.as_millis())
    }
}

/// The beginning of a file, [`MOST_BYTES`] at most.
pub fn read_some(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Of two errors the one that says more: a refusal, then anything but "not there".
pub fn worse(old: Option<io::Error>, new: io::Error) -> io::Error {
    let weight = |e: &io::Error| match e.kind() {
        io::ErrorKind::PermissionDenied => 2,
        io::ErrorKind::NotFound => 0,
        _ => 1,
    };
    old.filter(|e| weight(e) >= weight(&new)).unwrap_or(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_outweighs_not_there() {
        let io = io::Error::from_raw_os_error;
        let errno = |e: io::Error| e.raw_os_error();
        assert_eq!(errno(worse(Some(io(13)), io(2))), Some(13));
        assert_eq!(errno(worse(Some(io(2)), io(13))), Some(13));
        assert_eq!(errno(worse(Some(io(2)), io(5))), Some(5));
        assert_eq!(errno(worse(None, io(2))), Some(2));
    }

    #[test]
    fn who_is_silent_is_not_waited_for_and_said() {
        let (_never, silence) = mpsc::channel::<()>();
        let mut look = Look::default();
        assert_eq!(look.at("fine", || Ok(1)), Some(1));
        assert_eq!(look.at("stuck", move || silence.recv().map_err(io::Error::other)), None);
        // By a new worker, and with the error kept.
        assert_eq!(look.at("fine", || Ok(2)), Some(2));
        assert_eq!(look.refused.as_ref().map(io::Error::kind), Some(io::ErrorKind::TimedOut));
        assert_eq!(look.silence(), "1 without an answer in 500 ms: stuck");
        assert!(look.took >= PATIENCE);
    }

    #[test]
    fn entries_by_number() {
        let root =
            crate::sources::tests::tree("numbers", &[("zone10/type", ""), ("zone2/type", ""), ("zonex/type", ""), ("other1/type", "")]);
        let mut look = Look::default();
        assert_eq!(look.numbers(&root, "zone", 99), [2, 10]);
        assert_eq!(look.names(&root.join("zone2/type"), &["usb"]), ["usb"]);
        // A file stands in for a folder that may not be listed: the test may be run by root, who may list everything.
        assert_eq!(look.numbers(&root.join("zone2/type"), "zone", 3), [0, 1, 2]);
        assert_eq!(look.numbers(&root.join("missing"), "zone", 3), [0; 0]);
    }

    #[test]
    fn only_the_beginning_of_a_huge_file_is_read() {
        let path = std::env::temp_dir().join(format!("bench-agent-huge-{}", std::process::id()));
        File::create(&path).unwrap().set_len(4 << 30).unwrap();
        assert_eq!(read_some(&path).unwrap().len() as u64, MOST_BYTES);
        fs::remove_file(&path).unwrap();
    }
}
