//! What a long run keeps of its samples: changes (of batteries and rails repeats too), and the smallest, largest and mean value of every window. Hours of every sample would
//! fill the disk of a phone and tell no more.

use std::collections::BTreeMap;
use std::fmt::Write;

/// The first line of windows.csv. `t_ns` is the start of the window; a mean is that of the samples, each counted once.
pub const HEADER: &str = "t_ns,source,name,min,max,mean,n,unit\n";

/// Values that are followed, whatever names the device makes up.
const MOST_NAMES: usize = 4096;

/// Sources whose repeats are kept too, at the same pace: that a gauge was read and had not moved is what its energy needs.
const REPEATED: [&str; 2] = ["battery,", "power,"];

/// Reads rows of telemetry.csv and says which of them are kept.
#[derive(Debug)]
pub struct Digest {
    /// A name has a row at most this often, ns.
    every_ns: u64,
    /// Length of a window, ns; 0 = there are none.
    window_ns: u64,
    /// Start of the present window.
    window: u64,
    /// By `source,name`.
    seen: BTreeMap<String, Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// The last kept value as it was written, and when. Forgotten with its window, so that every window of a source that lives has a row.
    kept: Option<(String, u64)>,
    unit: String,
    min: f64,
    max: f64,
    sum: f64,
    n: u64,
}

impl Digest {
    /// `start_ns` is where the first window begins.
    pub fn new(every_ns: u64, window_ns: u64, start_ns: u64) -> Self {
        Self { every_ns, window_ns, window: start_ns, seen: BTreeMap::new() }
    }

    /// Takes the rows of a round. Those that are kept are added to `kept`, the windows that have ended by `t_ns` to `windows`.
    pub fn take(&mut self, rows: &[u8], t_ns: u64, kept: &mut Vec<u8>, windows: &mut Vec<u8>) {
        if self.window_ns > 0 && t_ns >= self.window.saturating_add(self.window_ns) {
            self.close(windows);
            self.window += (t_ns - self.window) / self.window_ns * self.window_ns;
        }
        for line in rows.split_inclusive(|&b| b == b'\n') {
            let Some((name, value, unit)) = fields(line) else { continue };
            let Ok(number) = value.parse::<f64>() else { continue };
            if !self.seen.contains_key(name) {
                if self.seen.len() >= MOST_NAMES {
                    continue;
                }
                self.seen.insert(name.to_owned(), Seen { unit: unit.to_owned(), ..Seen::default() });
            }
            let Some(seen) = self.seen.get_mut(name) else { continue };
            if seen.n == 0 {
                (seen.min, seen.max, seen.sum) = (number, number, 0.0);
            }
            (seen.min, seen.max) = (seen.min.min(number), seen.max.max(number));
            seen.sum += number;
            seen.n += 1;
            let keep = match &seen.kept {
                None => true,
                Some((last, at)) => {
                    let new = last != value || REPEATED.iter().any(|source| name.starts_with(source));
                    new && t_ns.saturating_sub(*at) >= self.every_ns
                }
            };
            if keep {
                kept.extend_from_slice(line);
                seen.kept = Some((value.to_owned(), t_ns));
            }
        }
    }

    /// Ends the present window: a row for each name that had a sample in it.
    pub fn close(&mut self, windows: &mut Vec<u8>) {
        let mut text = String::new();
        for (name, seen) in &mut self.seen {
            if seen.n > 0 {
                let mean = seen.sum / seen.n as f64;
                // Writing to memory does not fail.
                let _ = writeln!(text, "{},{name},{},{},{mean:.4},{},{}", self.window, seen.min, seen.max, seen.n, seen.unit);
            }
            (seen.n, seen.kept) = (0, None);
        }
        windows.extend_from_slice(text.as_bytes());
    }
}

/// `source,name`, value and unit of a row of telemetry.csv. Names have no comma.
fn fields(line: &[u8]) -> Option<(&str, &str, &str)> {
    let line = std::str::from_utf8(line).ok()?.trim_end();
    let (_, rest) = line.split_once(',')?;
    let (rest, unit) = rest.rsplit_once(',')?;
    let (name, value) = rest.rsplit_once(',')?;
    Some((name, value, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// Ten samples a second of one name; gives what is kept of telemetry.csv and windows.csv.
    fn run(digest: &mut Digest, values: impl Iterator<Item = (u64, f64)>) -> (String, String) {
        let (mut kept, mut windows) = (Vec::new(), Vec::new());
        for (t, value) in values {
            digest.take(format!("{t},thermal,nsp0,{value},C\n").as_bytes(), t, &mut kept, &mut windows);
        }
        digest.close(&mut windows);
        (String::from_utf8(kept).unwrap(), String::from_utf8(windows).unwrap())
    }

    #[test]
    fn changes_once_a_second_at_most_and_what_was_between_in_the_window() {
        // 0.1 C more with every one of ten samples a second, for two windows of 2 s.
        let (kept, windows) = run(&mut Digest::new(S, 2 * S, 0), (0..40).map(|i| (i * S / 10, 40.0 + i as f64 / 10.0)));
        let times: Vec<&str> = kept.lines().map(|l| l.split(',').next().unwrap()).collect();
        assert_eq!(times, ["0", "1000000000", "2000000000", "3000000000"]);
        // 40.0 to 41.9 have the mean 40.95, 42.0 to 43.9 have 42.95.
        assert_eq!(windows, "0,thermal,nsp0,40,41.9,40.9500,20,C\n2000000000,thermal,nsp0,42,43.9,42.9500,20,C\n");
    }

    #[test]
    fn what_does_not_change_has_a_row_a_window_and_a_change_is_not_lost() {
        let steps = (0..60).map(|i| (i * S / 10, if i < 35 { 50.0 } else { 51.0 }));
        let (kept, _) = run(&mut Digest::new(S, 2 * S, 0), steps);
        assert_eq!(kept, "0,thermal,nsp0,50,C\n2000000000,thermal,nsp0,50,C\n3500000000,thermal,nsp0,51,C\n4000000000,thermal,nsp0,51,C\n");
        // A change within a second of the row before is written when the second is over.
        let (kept, _) = run(&mut Digest::new(S, 0, 0), (0..20).map(|i| (i * S / 10, if i < 5 { 50.0 } else { 51.0 })));
        assert_eq!(kept, "0,thermal,nsp0,50,C\n1000000000,thermal,nsp0,51,C\n");
    }

    #[test]
    fn a_gauge_that_does_not_move_was_read_all_the_same() {
        let mut digest = Digest::new(S, 0, 0);
        let (mut kept, mut windows) = (Vec::new(), Vec::new());
        for t in (0..30).map(|i| i * S / 10) {
            digest.take(
                format!("{t},battery,bms/current_now,-500000,raw\n{t},batteryless,x,1,raw\n").as_bytes(),
                t,
                &mut kept,
                &mut windows,
            );
        }
        let kept = String::from_utf8(kept).unwrap();
        let of = |source: &str| kept.lines().filter(|l| l.contains(source)).filter_map(|l| l.split(',').next()).collect::<Vec<_>>();
        assert_eq!((of(",battery,"), of(",batteryless,")), (vec!["0", "1000000000", "2000000000"], vec!["0"]));
    }

    #[test]
    fn a_silence_of_several_windows_is_no_window() {
        let (_, windows) = run(&mut Digest::new(S, 2 * S, 5), [(5, 1.0), (7 * S, 3.0)].into_iter());
        assert_eq!(windows, "5,thermal,nsp0,1,1,1.0000,1,C\n6000000005,thermal,nsp0,3,3,3.0000,1,C\n");
    }

    #[test]
    fn rows_that_are_none_are_left_out() {
        let (mut kept, mut windows) = (Vec::new(), Vec::new());
        Digest::new(S, S, 0).take(b"t_ns,source,name,value,unit\n\n1,2\nx\xff,a,b,c,d\n1,a,b,nothing,d\n", 0, &mut kept, &mut windows);
        assert!(kept.is_empty() && windows.is_empty());
    }
}
