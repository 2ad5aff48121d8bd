//! The sampling threads. A lane is a thread with a period and its readers, one a node. Reads that take microseconds, slow ones, and those that are
//! known to wait have lanes of their own. A read that does not come back takes its thread with it: the lane goes on in a new one, without
//! that reader, and the old thread, should it come back, serves that reader alone from then on. So a node that blocks delays the others once
//! by [`STUCK_NS`], and never the end of the run.

use std::io::{self, PipeReader};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::clock;
use crate::sources::{Pace, Reader, Rows};
use crate::spec::Trip;
use crate::telemetry::Log;
use crate::trip::{self, Tripped};

/// A read that takes longer has got stuck. Long, because a thread may wait for a CPU in the middle of a read.
const STUCK_NS: u64 = 250_000_000;
/// How often it is looked whether one did.
const WATCH_NS: u64 = 200_000_000;
/// A round's rows have one time, unless the reading of them takes longer than this.
const ROUND_NS: u64 = 5_000_000;
const STACK: usize = 256 << 10;

/// Rounds and missed periods of the fast lane.
#[derive(Default)]
pub struct Counts {
    /// Rounds.
    pub samples: AtomicU64,
    /// Periods in which there was none.
    pub overruns: AtomicU64,
}

struct Slot {
    label: String,
    reader: Mutex<Box<dyn Reader>>,
    /// It has a thread of its own.
    apart: AtomicBool,
}

struct Lane {
    name: String,
    period_ns: u64,
    slots: Vec<Slot>,
    table: Arc<Mutex<Log>>,
    trip: Mutex<trip::Watch>,
    counts: Arc<Counts>,
    now: Mutex<Now>,
}

/// What a lane is at.
struct Now {
    /// Counted up when the lane goes on in another thread.
    turn: u64,
    /// The reader that reads, and since when.
    reading: Option<(usize, u64)>,
    /// The rows of this round.
    rows: Vec<u8>,
    /// When this round was due.
    due: u64,
    /// Dropped when the lane has ended, or when it is not waited for any more.
    done: Option<Sender<()>>,
}

/// Which readers got stuck, in words; read at the end.
pub type Stuck = Arc<Mutex<Vec<String>>>;

/// Starts a lane for each pace that has readers, and the thread that watches them. They end when the writer of `stop` is gone; all have then
/// dropped their `done`, stuck or not.
pub fn start(
    readers: Vec<Box<dyn Reader>>,
    rate_hz: f64,
    (limits, tripped): (&[Trip], &Tripped),
    table: &Arc<Mutex<Log>>,
    counts: &Arc<Counts>,
    stop: &PipeReader,
    done: &Sender<()>,
) -> io::Result<Stuck> {
    let mut groups: Vec<(Pace, Vec<Box<dyn Reader>>)> = Vec::new();
    for reader in readers {
        let pace = reader.pace();
        match groups.iter_mut().find(|(other, _)| *other == pace) {
            Some((_, group)) => group.push(reader),
            None => groups.push((pace, vec![reader])),
        }
    }
    let mut lanes = Vec::new();
    for (pace, group) in groups {
        let (name, hz) = match pace {
            Pace::Fast => ("fast", rate_hz),
            Pace::Slow => ("slow", rate_hz.min(1.0)),
            Pace::Apart(name, ms) => (name, rate_hz.min(1000.0 / f64::from(ms.max(1)))),
        };
        let lane = Arc::new(Lane {
            name: name.to_owned(),
            period_ns: ((1e9 / hz).round() as u64).max(1),
            slots: group
                .into_iter()
                .map(|reader| Slot { label: reader.label(), reader: Mutex::new(reader), apart: AtomicBool::new(false) })
                .collect(),
            table: Arc::clone(table),
            trip: Mutex::new(trip::Watch::new(limits, tripped)),
            counts: if pace == Pace::Fast { Arc::clone(counts) } else { Arc::default() },
            now: Mutex::new(Now { turn: 0, reading: None, rows: Vec::new(), due: clock::monotonic_ns(), done: Some(done.clone()) }),
        });
        spawn(&lane, 0, 0, stop.try_clone()?)?;
        lanes.push(lane);
    }
    let stuck = Stuck::default();
    let (told, stop) = (Arc::clone(&stuck), stop.try_clone()?);
    thread::Builder::new().name("watch".to_owned()).stack_size(STACK).spawn(move || watch(&lanes, &stop, &told))?;
    Ok(stuck)
}

fn spawn(lane: &Arc<Lane>, turn: u64, from: usize, stop: PipeReader) -> io::Result<()> {
    let own = Arc::clone(lane);
    thread::Builder::new().name(lane.name.clone()).stack_size(STACK).spawn(move || own.run(turn, from, &stop)).map(drop)
}

impl Lane {
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rounds, the first one from the reader `from` on, until the end or until another thread has taken over.
    fn run(&self, turn: u64, mut from: usize, stop: &PipeReader) {
        let mut rows = Rows::default();
        loop {
            let mut t_ns = clock::monotonic_ns();
            for (index, slot) in self.slots.iter().enumerate().skip(from) {
                let begun = clock::monotonic_ns();
                if begun - t_ns > ROUND_NS {
                    t_ns = begun;
                }
                if slot.apart.load(Ordering::Relaxed) {
                    continue;
                }
                self.now().reading = Some((index, begun));
                rows.begin(t_ns);
                slot.reader.lock().unwrap_or_else(PoisonError::into_inner).sample(&mut rows);
                let mut now = self.now();
                if now.turn != turn {
                    drop(now);
                    return self.alone(slot, stop);
                }
                now.reading = None;
                now.rows.extend_from_slice(rows.text());
            }
            from = 0;
            self.counts.samples.fetch_add(1, Ordering::Relaxed);
            let mut now = self.now();
            let written = std::mem::take(&mut now.rows);
            let (due, missed) = next(now.due, self.period_ns, clock::monotonic_ns());
            now.due = due;
            drop(now);
            self.append(&written, t_ns);
            self.now().rows = reuse(written);
            self.counts.overruns.fetch_add(missed, Ordering::Relaxed);
            if !clock::wait(due, stop) {
                self.now().done = None;
                return;
            }
        }
    }

    /// One reader that got stuck and came back, at the lane's period. What took longer than that to read has no time and is no row.
    fn alone(&self, slot: &Slot, stop: &PipeReader) {
        let mut rows = Rows::default();
        let mut due = clock::monotonic_ns();
        loop {
            (due, _) = next(due, self.period_ns, clock::monotonic_ns());
            if !clock::wait(due, stop) {
                return;
            }
            let t_ns = clock::monotonic_ns();
            rows.begin(t_ns);
            slot.reader.lock().unwrap_or_else(PoisonError::into_inner).sample(&mut rows);
            if clock::monotonic_ns() - t_ns < STUCK_NS.max(self.period_ns) {
                self.append(rows.text(), t_ns);
            }
        }
    }

    fn append(&self, rows: &[u8], t_ns: u64) {
        // Before anything is written: a full disk must not keep the trip.
        self.trip.lock().unwrap_or_else(PoisonError::into_inner).look(rows);
        self.table.lock().unwrap_or_else(PoisonError::into_inner).append(rows, t_ns);
    }

    /// Takes the lane away from a thread that is stuck; the reader that it is stuck in and where to go on.
    fn take(&self, leave: bool) -> Option<(usize, u64)> {
        let mut now = self.now();
        let (index, since) = now.reading?;
        if clock::monotonic_ns().saturating_sub(since) < STUCK_NS {
            return None;
        }
        now.turn += 1;
        now.reading = None;
        self.slots[index].apart.store(true, Ordering::Relaxed);
        if leave {
            now.done = None;
        }
        Some((index, now.turn))
    }
}

fn reuse(mut buffer: Vec<u8>) -> Vec<u8> {
    buffer.clear();
    buffer
}

fn watch(lanes: &[Arc<Lane>], stop: &PipeReader, told: &Mutex<Vec<String>>) {
    let tell = |lane: &Lane, index: usize| {
        told.lock().unwrap_or_else(PoisonError::into_inner).push(lane.slots[index].label.clone());
    };
    while clock::wait(clock::monotonic_ns() + WATCH_NS, stop) {
        for lane in lanes {
            if let Some((index, turn)) = lane.take(false) {
                tell(lane, index);
                let go_on = stop.try_clone().and_then(|stop| spawn(lane, turn, index + 1, stop));
                if go_on.is_err() {
                    lane.now().done = None;
                }
            }
        }
    }
    // The end: who is stuck is not waited for.
    while lanes.iter().any(|lane| lane.now().done.is_some()) {
        for lane in lanes {
            if let Some((index, _)) = lane.take(true) {
                tell(lane, index);
            }
        }
        thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// The next due time on the grid of the first one, and how many were missed.
fn next(due: u64, period_ns: u64, now: u64) -> (u64, u64) {
    let missed = now.saturating_sub(due) / period_ns;
    (due.saturating_add((missed + 1).saturating_mul(period_ns)), missed)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, Receiver};
    use std::time::Duration;

    use super::*;

    #[test]
    fn periods_stay_on_their_grid() {
        assert_eq!(next(100, 10, 100), (110, 0));
        assert_eq!(next(100, 10, 109), (110, 0));
        assert_eq!(next(100, 10, 135), (140, 3));
        assert_eq!(next(100, 10, 50), (110, 0));
    }

    /// Gives a row a read, and blocks in those for which it finds something to wait for.
    struct Fake {
        name: &'static str,
        pace: Pace,
        block: Option<Receiver<()>>,
        read: Sender<&'static str>,
    }

    impl Reader for Fake {
        fn pace(&self) -> Pace {
            self.pace
        }
        fn label(&self) -> String {
            self.name.to_owned()
        }
        fn sample(&mut self, rows: &mut Rows) {
            if let Some(block) = self.block.take() {
                let _ = block.recv();
            }
            rows.push("fake", self.name, 1, "x");
            let _ = self.read.send(self.name);
        }
    }

    struct Running {
        reads: Receiver<&'static str>,
        stop: Option<io::PipeWriter>,
        ended: Receiver<()>,
        stuck: Stuck,
        table: Arc<Mutex<Log>>,
        path: std::path::PathBuf,
    }

    fn run(name: &str, fakes: Vec<(&'static str, Pace, Option<Receiver<()>>)>) -> Running {
        let path = std::env::temp_dir().join(format!("bench-agent-lanes-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let (read, reads) = mpsc::channel();
        let readers = fakes
            .into_iter()
            .map(|(name, pace, block)| Box::new(Fake { name, pace, block, read: read.clone() }) as Box<dyn Reader>)
            .collect();
        let table = Arc::new(Mutex::new(Log::create(&path, 0, 0, 0)));
        let (stopped, stop) = io::pipe().unwrap();
        let (done, ended) = mpsc::channel();
        let stuck = start(readers, 50.0, (&[], &trip::Zones::new(&[], 50.0, 0)), &table, &Arc::default(), &stopped, &done).unwrap();
        Running { reads, stop: Some(stop), ended, stuck, table, path }
    }

    impl Running {
        /// Waits until `name` was read `times` times.
        fn until(&self, name: &str, mut times: usize) {
            while times > 0 {
                if self.reads.recv_timeout(Duration::from_secs(20)).unwrap_or_else(|_| panic!("{name} is not read any more")) == name {
                    times -= 1;
                }
            }
        }

        fn end(&mut self) -> String {
            self.stop = None;
            // All senders are gone: nobody is waited for.
            assert_eq!(self.ended.recv_timeout(Duration::from_secs(20)), Err(mpsc::RecvTimeoutError::Disconnected));
            self.table.lock().unwrap().finish();
            let text = std::fs::read_to_string(self.path.join("telemetry.csv")).unwrap();
            std::fs::remove_dir_all(&self.path).unwrap();
            text
        }
    }

    #[test]
    fn a_node_that_blocks_for_ever_delays_no_other() {
        let (_never, block) = mpsc::channel();
        let mut running = run(
            "ever",
            vec![
                ("before", Pace::Fast, None),
                ("stuck", Pace::Fast, Some(block)),
                ("behind", Pace::Fast, None),
                ("other", Pace::Slow, None),
            ],
        );
        running.until("behind", 20);
        running.until("before", 20);
        running.until("other", 1);
        let text = running.end();
        assert_eq!(*running.stuck.lock().unwrap(), ["stuck"]);
        let count = |name: &str| text.matches(&format!(",{name},")).count();
        assert!(count("before") >= 20 && count("behind") >= 20 && count("stuck") == 0, "{text}");
        // The round in which it got stuck has all other rows, once.
        assert!(count("before").abs_diff(count("behind")) <= 1, "{text}");
    }

    #[test]
    fn one_that_comes_back_is_read_again_by_a_thread_of_its_own() {
        let (go_on, block) = mpsc::channel();
        let mut running = run("back", vec![("slow", Pace::Apart("bus", 20), Some(block)), ("fine", Pace::Apart("bus", 20), None)]);
        running.until("fine", 5);
        go_on.send(()).unwrap();
        running.until("slow", 6);
        running.until("fine", 5);
        let text = running.end();
        // The first value came when nobody knows: only the later ones are rows.
        assert!(text.matches(",slow,").count() >= 4, "{text}");
        assert_eq!(*running.stuck.lock().unwrap(), ["slow"]);
    }

    #[test]
    fn the_end_does_not_wait_for_who_is_stuck() {
        let (_never, block) = mpsc::channel();
        let mut running = run("end", vec![("fine", Pace::Fast, None), ("stuck", Pace::Slow, Some(block))]);
        running.until("fine", 1);
        running.end();
    }
}
