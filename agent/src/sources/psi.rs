//! Pressure stall information (Documentation/accounting/psi.rst): the `total=` counters, microseconds in which some (or all) tasks waited for
//! CPU, memory or the disk. Counters and not the kernel's averages, since any window can be made of them.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::look::Look;
use super::{Opened, Pace, Reader, Rows};

/// File, line, name of the row.
const WANTED: [(&str, &[(&str, &str)]); 3] = [
    ("cpu", &[("some", "cpu_some")]),
    ("memory", &[("some", "memory_some"), ("full", "memory_full")]),
    ("io", &[("some", "io_some"), ("full", "io_full")]),
];

struct Pressure {
    file: File,
    lines: &'static [(&'static str, &'static str)],
}

/// Opens the files below `root`.
pub fn open(root: &str) -> Opened {
    let mut look = Look::default();
    let mut readers: Vec<Box<dyn Reader>> = Vec::new();
    let mut found = Vec::new();
    for (name, lines) in WANTED {
        let path = Path::new(root).join(name);
        // Where the kernel was started without psi, opening works and reading gives EOPNOTSUPP.
        let file = look.at(name, move || {
            let file = File::open(path)?;
            file.read_at(&mut [0; 256], 0)?;
            Ok(file)
        });
        if let Some(file) = file {
            readers.push(Box::new(Pressure { file, lines }));
            found.push(name);
        }
    }
    Opened::found(&look, found.join(" "), readers)
}

impl Reader for Pressure {
    fn pace(&self) -> Pace {
        Pace::Slow
    }

    fn label(&self) -> String {
        format!("psi/{}", self.lines[0].1)
    }

    fn sample(&mut self, rows: &mut Rows) {
        let mut buffer = [0; 256];
        let Ok(n) = self.file.read_at(&mut buffer, 0) else { return };
        let text = std::str::from_utf8(&buffer[..n]).unwrap_or("");
        for (line, name) in self.lines {
            if let Some(us) = total(text, line) {
                rows.push("psi", name, us, "us");
            }
        }
    }
}

/// Of `some avg10=0.00 avg60=0.00 avg300=0.00 total=57014327` the last.
fn total(text: &str, line: &str) -> Option<u64> {
    let rest = text.lines().find_map(|l| l.strip_prefix(line)?.strip_prefix(' '))?;
    rest.split(' ').find_map(|word| word.strip_prefix("total="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::done::SourceState;
    use crate::sources::tests::{rows_of, tree};

    #[test]
    fn counters() {
        let line = |kind: &str, total: u64| format!("{kind} avg10=15.14 avg60=16.00 avg300=10.37 total={total}\n");
        let root = tree(
            "psi",
            &[
                ("cpu", &(line("some", 57_014_327) + &line("full", 0))),
                ("memory", &(line("some", 11) + &line("full", 7))),
                ("io", "some avg10=0.00\n"),
            ],
        );
        let mut opened = open(root.path());
        assert_eq!(rows_of(&mut opened), "1,psi,cpu_some,57014327,us\n1,psi,memory_some,11,us\n1,psi,memory_full,7,us\n");
        assert_eq!(open("/nonexistent").state, SourceState::Absent);
    }
}
