//! What all disks read and wrote since boot, from `/proc/diskstats` (Documentation/admin-guide/iostats.rst): sectors of 512 bytes, whatever the
//! disk's own are. Whole disks only: partitions and devices that lie on others would count twice.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::look::Look;
use super::{Opened, Pace, Reader, Rows};

/// A phone's has some 150 lines of about 100 bytes.
const LONGEST: usize = 64 << 10;

struct Disks {
    file: File,
    buffer: Vec<u8>,
}

/// Opens it.
pub fn open(path: &str) -> Opened {
    let mut look = Look::default();
    let own = std::path::PathBuf::from(path);
    let Some(mut disks) = look.at("diskstats", move || Ok(Disks { file: File::open(own)?, buffer: vec![0; LONGEST] })) else {
        return Opened::found(&look, "", Vec::new());
    };
    let names = disks.read().map(|sum| sum.names).unwrap_or_default();
    if names.is_empty() {
        Opened::missing(None).because("no disk in it")
    } else {
        Opened::found(&look, names.join(" "), vec![Box::new(disks)])
    }
}

#[derive(Default)]
struct Sum {
    names: Vec<String>,
    read: u64,
    written: u64,
}

impl Disks {
    fn read(&mut self) -> Option<Sum> {
        // The kernel hands out such a file a page at a time.
        let mut length = 0;
        while let Ok(n @ 1..) = self.file.read_at(&mut self.buffer[length..], length as u64) {
            length += n;
        }
        Some(sum(std::str::from_utf8(&self.buffer[..length]).ok()?))
    }
}

impl Reader for Disks {
    fn pace(&self) -> Pace {
        Pace::Slow
    }

    fn label(&self) -> String {
        "disk".to_owned()
    }

    fn sample(&mut self, rows: &mut Rows) {
        if let Some(sum) = self.read().filter(|sum| !sum.names.is_empty()) {
            rows.push("disk", "read_kb", sum.read / 2, "kB");
            rows.push("disk", "written_kb", sum.written / 2, "kB");
        }
    }
}

/// Lines: major, minor, name, reads, reads merged, sectors read, ms, writes, writes merged, sectors written, ...
fn sum(text: &str) -> Sum {
    let mut sum = Sum::default();
    for line in text.lines() {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let (Some(name), Some(Ok(read)), Some(Ok(written))) =
            (fields.get(2), fields.get(5).map(|f| f.parse::<u64>()), fields.get(9).map(|f| f.parse::<u64>()))
        else {
            continue;
        };
        if is_disk(name) {
            sum.names.push((*name).to_owned());
            sum.read = sum.read.saturating_add(read);
            sum.written = sum.written.saturating_add(written);
        }
    }
    sum
}

/// `sda`, `vdb`, `mmcblk0`, `nvme0n1`.
fn is_disk(name: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let letters = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase());
    ["sd", "vd", "hd", "xvd"].iter().any(|kind| name.strip_prefix(kind).is_some_and(letters))
        || name.strip_prefix("mmcblk").is_some_and(digits)
        || name.strip_prefix("nvme").and_then(|rest| rest.split_once('n')).is_some_and(|(a, b)| digits(a) && digits(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::done::SourceState;
    use crate::sources::tests::{rows_of, tree};

    #[test]
    fn whole_disks() {
        let text = "   8  0 sda 100 5 2000 30 50 6 4000 70 0 90 100\n   8  1 sda1 90 5 1900 30 50 6 3900 70 0 90 100\n   8 16 sdb 1 0 8 1 0 0 0 0 0 1 1\n \
                    253 0 dm-0 1 0 999 1 0 0 999 0 0 1 1\n 7 0 loop0 1 0 999 1 0 0 0 0 0 1 1\nnonsense\n";
        let root = tree("disk", &[("diskstats", text), ("none", "253 0 dm-0 1 0 999 1 0 0 999 0 0 1 1\n")]);
        let mut opened = open(root.join("diskstats").to_str().unwrap());
        assert_eq!(opened.detail.as_deref(), Some("sda sdb"));
        assert_eq!(rows_of(&mut opened), "1,disk,read_kb,1004,kB\n1,disk,written_kb,2000,kB\n");
        assert_eq!(open(root.join("none").to_str().unwrap()).state, SourceState::Absent);
    }

    #[test]
    fn names() {
        assert!(["sda", "sdaa", "vda", "mmcblk0", "nvme0n1"].into_iter().all(is_disk));
        assert!(!["sda1", "mmcblk0p1", "mmcblk0boot0", "nvme0n1p2", "zram0", "ram1", "loop3", "dm-4", "sd"].into_iter().any(is_disk));
    }
}
