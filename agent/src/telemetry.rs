//! The table of the samples, written as it grows.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::digest::{self, Digest};
use crate::sources::HEADER;

/// Rows wait this long for company before they are written.
const FLUSH_NS: u64 = 1_000_000_000;
const FLUSH_BYTES: usize = 32 << 10;
/// A table that is never reached at sane rates (10 Hz on a phone: 10 kB/s), but the disk is not ours.
const MOST_BYTES: u64 = 256 << 20;

/// A file of rows: telemetry.csv, windows.csv.
pub struct Table {
    name: &'static str,
    file: Option<File>,
    /// Bytes of whole rows in the file: after a failed write the next one begins here again.
    good: u64,
    waiting: Vec<u8>,
    flushed_ns: u64,
    error: Option<String>,
}

impl Table {
    /// Makes the file with its header. An error is kept: the run goes on without.
    pub fn create(path: &Path, name: &'static str, header: &str) -> Self {
        let mut table = Self { name, file: None, good: 0, waiting: header.into(), flushed_ns: 0, error: None };
        match File::create(path) {
            Ok(file) => table.file = Some(file),
            Err(e) => table.fail(&e),
        }
        table.flush();
        table
    }

    /// Adds rows; now and then they are written.
    pub fn append(&mut self, rows: &[u8], now_ns: u64) {
        self.waiting.extend_from_slice(rows);
        if self.waiting.len() >= FLUSH_BYTES || now_ns.saturating_sub(self.flushed_ns) >= FLUSH_NS {
            self.flush();
            self.flushed_ns = now_ns;
        }
    }

    /// Writes what waits and cuts off half a row that a failed write may have left. Gives the first error of all.
    pub fn finish(&mut self) -> Option<String> {
        self.flush();
        if let Some(file) = &self.file {
            let _ = file.set_len(self.good);
            if let Err(e) = file.sync_all()
                && e.kind() != io::ErrorKind::InvalidInput
            {
                self.fail(&e);
            }
        }
        self.error.clone()
    }

    fn flush(&mut self) {
        if let Some(file) = &self.file {
            let result =
                if self.good > MOST_BYTES { Err(io::ErrorKind::FileTooLarge.into()) } else { file.write_all_at(&self.waiting, self.good) };
            match result {
                Ok(()) => self.good += self.waiting.len() as u64,
                Err(e) => self.fail(&e),
            }
        }
        // Also after an error: the rows of a full disk must not fill the memory. The next flush tries again.
        self.waiting.clear();
    }

    fn fail(&mut self, error: &io::Error) {
        self.error.get_or_insert_with(|| format!("{}: {error}", self.name));
    }
}

/// Where the rows go: all of them into telemetry.csv, or what the digest keeps of them, and its windows into windows.csv.
pub struct Log {
    table: Table,
    digest: Option<(Digest, Table)>,
    kept: Vec<u8>,
    windows: Vec<u8>,
}

impl Log {
    /// Makes the files in the folder of the run.
    pub fn create(out: &Path, compact_ms: u64, window_ms: u64, start_ns: u64) -> Self {
        let table = Table::create(&out.join("telemetry.csv"), "telemetry.csv", HEADER);
        let digest = (compact_ms > 0 || window_ms > 0).then(|| {
            let ns = |ms: u64| ms.saturating_mul(1_000_000);
            let windows = Table::create(&out.join("windows.csv"), "windows.csv", digest::HEADER);
            (Digest::new(ns(compact_ms), ns(window_ms), start_ns), windows)
        });
        Self { table, digest, kept: Vec::new(), windows: Vec::new() }
    }

    /// Adds the rows of a round.
    pub fn append(&mut self, rows: &[u8], now_ns: u64) {
        let Some((digest, windows)) = &mut self.digest else { return self.table.append(rows, now_ns) };
        self.kept.clear();
        self.windows.clear();
        digest.take(rows, now_ns, &mut self.kept, &mut self.windows);
        self.table.append(&self.kept, now_ns);
        windows.append(&self.windows, now_ns);
    }

    /// Writes what waits, the last window too. Gives the first error of each file.
    pub fn finish(&mut self) -> Vec<String> {
        let mut errors = Vec::from_iter(self.table.finish());
        if let Some((digest, windows)) = &mut self.digest {
            self.windows.clear();
            digest.close(&mut self.windows);
            windows.waiting.extend_from_slice(&self.windows);
            errors.extend(windows.finish());
        }
        errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_said_once_and_costs_no_memory() {
        let mut table = Table::create(Path::new("/dev/full"), "telemetry.csv", HEADER);
        for t in 0..100 {
            table.append(&[b'x'; 1024], t * FLUSH_NS);
        }
        assert!(table.waiting.capacity() < 64 << 10);
        assert!(table.finish().unwrap().starts_with("telemetry.csv: "));
    }

    #[test]
    fn rows_reach_the_file() {
        let path = std::env::temp_dir().join(format!("bench-agent-table-{}", std::process::id()));
        let mut table = Table::create(&path, "telemetry.csv", HEADER);
        table.append(b"1,a,b,2,c\n", 1);
        table.append(b"2,a,b,2,c\n", 2);
        assert_eq!(table.finish(), None);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{HEADER}1,a,b,2,c\n2,a,b,2,c\n"));
        std::fs::remove_file(&path).unwrap();
    }
}
