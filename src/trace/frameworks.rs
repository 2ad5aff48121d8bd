//! Frameworks' own records of a launch: on the device's clock where theirs allows it, else beside it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use bench_backend_api::{
    Backend,
    timeline::{Clock, Slice, Timeline, chrome},
};

use super::{
    alignment::Bounds,
    launch::Launch,
    recorded::{is_first, ran},
    spans::{Span, nested, ns},
    writer::{Track, Writer},
};
use crate::{results::launches::Record, run::OUTPUT_LIMIT};

/// A record may be misplaced by so much, ns; more would put its operations into other tokens.
const LARGEST_ERROR: i64 = 10_000_000;

/// Files of a launch's folder that bench writes itself.
const OURS: [&str; 4] = ["launch.json", "done.json", "spec.json", "job.json"];

/// Where a record lies: what is added to its times, in ns, and a reader's words for it.
fn place(timeline: &Timeline, window: (i64, i64)) -> Option<(i64, String)> {
    let extent = timeline.extent().map(|(from, to)| (from_us(from), from_us(to)))?;
    let inside = |(from, to): (i64, i64)| window.0 <= from && to <= window.1;
    let placed = match timeline.clock {
        Clock::Monotonic => inside(extent).then(|| (0, "on the device's clock".to_owned())),
        Clock::Within(from, to) => Some((from_us(from), from_us(to)))
            .filter(|outer| inside(*outer))
            .and_then(|outer| Bounds::within(extent, outer).middle())
            .filter(|(_, error)| *error <= LARGEST_ERROR)
            .map(|(offset, error)| (offset, format!("placed within {:.1} ms", error as f64 / 1e6))),
        Clock::Own => None,
    };
    Some(placed.unwrap_or_else(|| (window.0.saturating_sub(extent.0), "own clock, not aligned: from the launch's start".to_owned())))
}

/// Draws every record of a launch as a process of its own, from `next` on.
pub fn draw<W: Write>(
    (dir, record): (&Path, &Record),
    backend: Option<&dyn Backend>,
    launch: &Launch,
    next: &mut u32,
    writer: &mut Writer<W>,
    notes: &mut Vec<String>,
) -> io::Result<()> {
    let Some((begin, end)) = ran(record).filter(|_| is_first(record)) else { return Ok(()) };
    let window = (ns(begin), ns(end.unwrap_or(begin)));
    for path in files(dir, record) {
        let Ok(bytes) = fs::read(&path) else { continue };
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let read = match backend {
            Some(backend) => backend.timelines(&file, &bytes),
            None => chrome(&bytes).map(|trace| Timeline { title: file.to_string(), ..trace }).into_iter().collect(),
        };
        drop(bytes);
        for timeline in read {
            let Some((offset, how)) = place(&timeline, window) else { continue };
            let title = format!("{} of {} ({how})", timeline.title, launch.title());
            if timeline.cut || timeline.skipped > 0 {
                let end = if timeline.cut { "it ends before its end; " } else { "" };
                notes.push(format!("{title}: {end}{} events that are no stretches of time are left out", timeline.skipped));
            }
            writer.process(*next, &title)?;
            for (tid, (name, spans)) in (1..).zip(tracks(timeline.slices, offset)) {
                writer.thread(Track { pid: *next, tid }, &name)?;
                writer.spans(Track { pid: *next, tid }, spans)?;
            }
            *next += 1;
        }
    }
    Ok(())
}

fn tracks(slices: Vec<Slice>, offset: i64) -> BTreeMap<String, Vec<Span>> {
    let mut tracks: BTreeMap<String, Vec<Span>> = BTreeMap::new();
    for slice in slices {
        let from = from_us(slice.start_us).saturating_add(offset);
        let to = from_us(slice.start_us + slice.dur_us).saturating_add(offset);
        tracks.entry(slice.track).or_default().push(Span { name: slice.name, from, to, args: slice.args });
    }
    tracks.into_iter().map(|(name, spans)| (name, nested(spans))).collect()
}

/// The outputs of a launch that may be records: JSON, of a size that was kept whole.
fn files(dir: &Path, record: &Record) -> Vec<PathBuf> {
    let folders: BTreeSet<PathBuf> = record.telemetry_files(dir).iter().filter_map(|path| path.parent().map(Path::to_path_buf)).collect();
    let is_output = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".json")
            && !OURS.contains(&name.as_ref())
            && fs::metadata(path).is_ok_and(|m| m.is_file() && m.len() <= OUTPUT_LIMIT)
    };
    let all = folders.iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()));
    let found: BTreeSet<PathBuf> = all.filter(is_output).collect();
    found.into_iter().collect()
}

fn from_us(us: f64) -> i64 {
    (us * 1e3).round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(clock: Clock, start_us: f64, dur_us: f64) -> Timeline {
        let slices = vec![Slice { start_us, dur_us, ..Slice::default() }];
        Timeline { title: String::new(), clock, slices, skipped: 0, cut: false }
    }

    #[test]
    fn only_what_fits_the_launch_is_on_its_clock() {
        // A launch from 1 to 3 s.
        let window = (1_000_000_000, 3_000_000_000);
        let told = |timeline: &Timeline| place(timeline, window).unwrap();
        assert_eq!(told(&of(Clock::Monotonic, 1_500_000.0, 500_000.0)), (0, "on the device's clock".to_owned()));
        // The same words from another clock would lie elsewhere: it begins with the launch, and says so.
        let (offset, how) = told(&of(Clock::Monotonic, 9_000_000.0, 500_000.0));
        assert_eq!((offset, how.starts_with("own clock, not aligned")), (-8_000_000_000, true));
        // 990 ms within 1 s: right within 5 ms.
        let (offset, how) = told(&of(Clock::Within(1_500_000.0, 2_500_000.0), 100.0, 990_000.0));
        assert_eq!((offset, how.as_str()), (1_504_900_000, "placed within 5.0 ms"));
        // Half a second within a second says too little; a frame outside of the launch says nothing.
        for clock in [Clock::Within(1_500_000.0, 2_500_000.0), Clock::Within(2_500_000.0, 3_500_000.0), Clock::Own] {
            assert_eq!(told(&of(clock, 0.0, 500_000.0)).0, 1_000_000_000);
        }
        assert_eq!(place(&Timeline { slices: Vec::new(), ..of(Clock::Own, 0.0, 0.0) }, window), None);
        assert_eq!(place(&of(Clock::Own, f64::NAN, f64::INFINITY), window).map(|placed| placed.0), Some(1_000_000_000));
    }
}
