//! How busy the whole device and each CPU is, from `/proc/stat`. Once a second: the kernel formats all interrupt counters with it, which takes up
//! to a millisecond on a phone, and its ticks of 10 ms would make a tenth of a second too coarse.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use super::{Opened, Pace, Reader, Rows};
use crate::procfs;

/// The lines of the CPUs come first: enough for 64 of them, whatever follows.
const LONGEST: usize = 8192;

/// Busy and total ticks.
type Ticks = (u64, u64);

struct Cpu {
    file: File,
    buffer: Vec<u8>,
    last: Option<Ticks>,
    each: BTreeMap<u32, Ticks>,
}

/// Opens it.
pub fn open(path: &str) -> Opened {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) => return Opened::missing(Some(&e)),
    };
    let mut reader = Cpu { file, buffer: vec![0; LONGEST], last: None, each: BTreeMap::new() };
    let Some((all, each)) = reader.read() else { return Opened::missing(None) };
    let detail = format!("share of all CPUs, and of each of {}", each.len());
    (reader.last, reader.each) = (Some(all), each);
    Opened::available(detail, vec![Box::new(reader)])
}

impl Cpu {
    fn read(&mut self) -> Option<(Ticks, BTreeMap<u32, Ticks>)> {
        let n = self.file.read_at(&mut self.buffer, 0).ok()?;
        let text = &self.buffer[..n];
        // Half a line at the end of the buffer is none.
        let whole = text.iter().rposition(|&b| b == b'\n').map_or(&text[..0], |end| &text[..end]);
        Some((procfs::parse_cpu_total(text)?, procfs::parse_cpus(whole).collect()))
    }
}

/// Percent, with a tenth. Counters of a CPU that goes offline may step back; then there is no value.
fn share((busy0, total0): Ticks, (busy, total): Ticks) -> Option<f64> {
    let (busy, total) = (busy.checked_sub(busy0)?, total.checked_sub(total0)?);
    (total > 0).then(|| (busy as f64 / total as f64 * 1000.0).round().min(1000.0) / 10.0)
}

impl Reader for Cpu {
    fn pace(&self) -> Pace {
        Pace::Slow
    }

    fn label(&self) -> String {
        "cpu".to_owned()
    }

    fn is_difference(&self) -> bool {
        true
    }

    fn sample(&mut self, rows: &mut Rows) {
        let Some((all, each)) = self.read() else { return };
        if let Some(pct) = self.last.and_then(|last| share(last, all)) {
            rows.push("cpu", "busy_pct", format_args!("{pct:.1}"), "pct");
        }
        for (number, now) in &each {
            // One that was offline before has no interval.
            if let Some(pct) = self.each.get(number).and_then(|&last| share(last, *now)) {
                rows.push("cpu", &format!("cpu{number}_pct"), format_args!("{pct:.1}"), "pct");
            }
        }
        (self.last, self.each) = (Some(all), each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::tests::{rows_of, tree};

    #[test]
    fn each_cpu_by_itself() {
        let root = tree("cpu", &[("stat", "cpu  100 0 0 100 0 0 0 0\ncpu0 50 0 0 50 0 0 0 0\ncpu1 50 0 0 50 0 0 0 0\nintr 1\n")]);
        let path = root.join("stat");
        let mut opened = open(path.to_str().unwrap());
        // cpu1 went offline, cpu2 came; 30 of 40 ticks of cpu0 were busy.
        std::fs::write(&path, "cpu  150 0 0 150 0 0 0 0\ncpu0 80 0 0 60 0 0 0 0\ncpu2 9 0 0 1 0 0 0 0\nintr 1\n").unwrap();
        assert_eq!(rows_of(&mut opened), "1,cpu,busy_pct,50.0,pct\n1,cpu,cpu0_pct,75.0,pct\n");
        std::fs::write(&path, "cpu  150 0 0 160 0 0 0 0\ncpu0 70 0 0 65 0 0 0 0\ncpu2 9 0 0 11 0 0 0 0\n").unwrap();
        assert_eq!(rows_of(&mut opened), "1,cpu,busy_pct,0.0,pct\n1,cpu,cpu2_pct,0.0,pct\n", "a counter that steps back gives no value");
    }
}
