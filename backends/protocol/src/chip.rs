//! For which chip a context binary was made. The HTP's own compiler leaves its settings in it as text, `soc_type=SM8650;arch=75;` among
//! them (QAIRT 2.4x; seen in the binaries of ONNX Runtime's QNN provider).

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use crate::Failure;

const MARK: &[u8] = b"soc_type=";
/// Room for the mark and what follows it.
const LONGEST: usize = 128;
const BLOCK: usize = 4 << 20;

/// A SoC and its Hexagon architecture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chip {
    /// Part number.
    pub soc: String,
    /// Architecture: 75 is v75.
    pub arch: u32,
}

/// The chip of a context binary, if it tells. A binary may have gigabytes: it is read in blocks.
pub fn chip_of(path: &Path) -> io::Result<Option<Chip>> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    loop {
        let read = file.by_ref().take(BLOCK as u64).read_to_end(&mut bytes)?;
        // What begins near the end of a block is looked at again with the next one.
        let last = read == 0;
        let whole = if last { bytes.len() } else { bytes.len().saturating_sub(LONGEST) };
        if let Some(chip) = (0..whole).filter(|at| bytes[*at..].starts_with(MARK)).find_map(|at| parse(&bytes[at..])) {
            return Ok(Some(chip));
        }
        if last {
            return Ok(None);
        }
        bytes.drain(..whole);
    }
}

/// Refuses context binaries that were made for another Hexagon architecture: a phone refuses them by itself, the emulator on a PC runs them
/// as if nothing were wrong.
pub fn check_chip<'a>(files: impl IntoIterator<Item = &'a Path>, wanted: u32) -> Result<(), Failure> {
    for file in files {
        // One that can't be read is the framework's to complain of.
        if let Ok(Some(Chip { soc, arch })) = chip_of(file)
            && arch != wanted
        {
            let name = file.display();
            return Err(Failure::model(format!(
                "{name}: a context binary for {soc} (Hexagon v{arch}), the NPU asked for is Hexagon v{wanted}"
            )));
        }
    }
    Ok(())
}

fn parse(bytes: &[u8]) -> Option<Chip> {
    let text: String = bytes.iter().take(LONGEST).map(|b| char::from(*b)).collect();
    let (soc, rest) = text.strip_prefix("soc_type=")?.split_once(";arch=")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let plain = !soc.is_empty() && soc.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    plain.then_some(Chip { soc: soc.to_owned(), arch: digits.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chip(bytes: &[u8]) -> Option<Chip> {
        let path = std::env::temp_dir().join(format!("bench-chip-{}-{}", std::process::id(), bytes.len()));
        std::fs::write(&path, bytes).unwrap();
        let found = chip_of(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        found
    }

    #[test]
    fn the_chip_is_found_wherever_it_stands() {
        let settings = b"debug=false;soc_type=SM8750;arch=79;num_nsps=1;";
        let want = Some(Chip { soc: "SM8750".to_owned(), arch: 79 });
        for before in [0, 1, BLOCK - 140, BLOCK - 20, BLOCK - 15, BLOCK, BLOCK + 1, 2 * BLOCK - 16] {
            assert_eq!(chip(&[&vec![0xff; before], &settings[..], &[0; 300]].concat()), want, "after {before} bytes");
        }
        assert_eq!(chip(settings), want);
        for other in [&b""[..], b"soc_type=", b"soc_type=;arch=75;", b"soc_type=SM8650;arch=;", b"soc_type=a b;arch=75;", b"no chip"] {
            assert_eq!(chip(other), None, "{other:?}");
        }
    }
}
