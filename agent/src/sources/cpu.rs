//! How busy the whole device is, from `/proc/stat`. Once a second: the kernel formats all interrupt counters with it, which takes up to a
//! millisecond on a phone, and its ticks of 10 ms would make a tenth of a second too coarse.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::{Opened, Pace, Reader, Rows};
use crate::procfs;

struct Cpu {
    file: File,
    buffer: Vec<u8>,
    last: Option<(u64, u64)>,
}

/// Opens it.
pub fn open(path: &str) -> Opened {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) => return Opened::missing(Some(&e)),
    };
    let mut reader = Cpu { file, buffer: vec![0; 512], last: None };
    reader.last = reader.read();
    if reader.last.is_none() {
        return Opened::missing(None);
    }
    Opened::available("share of all CPUs", vec![Box::new(reader)])
}

impl Cpu {
    fn read(&mut self) -> Option<(u64, u64)> {
        let n = self.file.read_at(&mut self.buffer, 0).ok()?;
        procfs::parse_cpu_total(&self.buffer[..n])
    }
}

impl Reader for Cpu {
    fn pace(&self) -> Pace {
        Pace::Slow
    }

    fn is_difference(&self) -> bool {
        true
    }

    fn sample(&mut self, rows: &mut Rows) {
        let now = self.read();
        if let (Some((busy0, total0)), Some((busy, total))) = (self.last, now) {
            // Counters of a CPU that goes offline may step back; then there is no value.
            if let (Some(busy), Some(total @ 1..)) = (busy.checked_sub(busy0), total.checked_sub(total0)) {
                rows.push("cpu", "busy_pct", format_args!("{:.1}", (busy as f64 / total as f64 * 100.0).min(100.0)), "pct");
            }
        }
        self.last = now;
    }
}
