//! `MemAvailable` of `/proc/meminfo`, once a second.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::{Opened, Pace, Reader, Rows};
use crate::procfs;

struct MemInfo {
    file: File,
    buffer: Vec<u8>,
}

/// Opens it; kernels since 3.14 have the field.
pub fn open(path: &str) -> Opened {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) => return Opened::missing(Some(&e)),
    };
    let mut reader = MemInfo { file, buffer: vec![0; 4096] };
    match reader.read() {
        Some(_) => Opened::available("MemAvailable", vec![Box::new(reader)]),
        None => Opened::missing(None),
    }
}

impl MemInfo {
    fn read(&mut self) -> Option<u64> {
        // The field is among the first three lines: one buffer is plenty.
        let n = self.file.read_at(&mut self.buffer, 0).ok()?;
        procfs::field_kb(&self.buffer[..n], "MemAvailable")
    }
}

impl Reader for MemInfo {
    fn pace(&self) -> Pace {
        Pace::Slow
    }

    fn sample(&mut self, rows: &mut Rows) {
        if let Some(kb) = self.read() {
            rows.push("meminfo", "mem_available_kb", kb, "kB");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::done::SourceState;

    #[test]
    fn absent_without_the_field() {
        let path = std::env::temp_dir().join(format!("bench-agent-meminfo-{}", std::process::id()));
        std::fs::write(&path, "MemTotal: 5 kB\nMemFree: 4 kB\n").unwrap();
        assert_eq!(open(path.to_str().unwrap()).state, SourceState::Absent);
        std::fs::write(&path, "MemTotal: 5 kB\nMemFree: 4 kB\nMemAvailable:    3 kB\n").unwrap();
        let mut opened = open(path.to_str().unwrap());
        let mut rows = Rows::default();
        rows.begin(9);
        opened.readers[0].sample(&mut rows);
        assert_eq!(rows.text(), b"9,meminfo,mem_available_kb,3,kB\n");
        std::fs::remove_file(&path).unwrap();
    }
}
