//! What a QNN context binary tells in plain text: it begins with the names of its graphs and tensors, and holds the settings of the
//! compiler that made it (seen in binaries of ONNX Runtime's QNN provider, QAIRT 2.51; AI Hub's graphs are named `..._ar128_cl4096_1_of_5`).

use std::{collections::BTreeSet, fs::File, io::Read, path::Path};

use bench_runner_protocol::chip_of;

use super::{error::ImportError, found::Chip};

/// The names stand in front; weights of gigabytes come after.
const HEAD: u64 = 4 << 20;

/// What the text of one or more binaries tells.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// AR of each graph: tokens of one run.
    pub ar: BTreeSet<u32>,
    /// Context lengths of the graphs.
    pub cl: BTreeSet<u32>,
    /// Numbers of the layers whose keys are inputs.
    pub layers: BTreeSet<u32>,
    /// The chips that they were made for.
    pub chips: Vec<Chip>,
}

impl Told {
    /// Adds what a binary tells.
    pub fn read(&mut self, path: &Path) -> Result<(), ImportError> {
        let mut head = Vec::new();
        let file = File::open(path).map_err(ImportError::io(path))?;
        file.take(HEAD).read_to_end(&mut head).map_err(ImportError::io(path))?;
        self.names(&head);
        if let Some(chip) = chip_of(path).map_err(ImportError::io(path))? {
            let chip = Chip { soc: Some(chip.soc), soc_model: None, htp_arch: Some(chip.arch) };
            if !self.chips.contains(&chip) {
                self.chips.push(chip);
            }
        }
        Ok(())
    }

    /// Adds what names in a text tell, be it a binary or a file's name.
    pub fn names(&mut self, text: &[u8]) {
        for word in text.split(|b| !(b.is_ascii_alphanumeric() || *b == b'_')).filter(|w| w.len() > 5) {
            let word = String::from_utf8_lossy(word);
            let pieces: Vec<&str> = word.split('_').collect();
            self.ar.extend(pieces.iter().filter_map(|p| number_after("ar", p)));
            self.cl.extend(pieces.iter().filter_map(|p| number_after("cl", p)));
            if let ["past", "key", layer, "in"] = pieces.as_slice() {
                self.layers.extend(layer.parse::<u32>().ok().filter(|n| *n < 1000));
            }
        }
    }

    /// Layers, if those found are all from the first on.
    pub fn depth(&self) -> Option<u32> {
        let count = self.layers.len() as u32;
        (count > 0 && self.layers.last() == Some(&(count - 1))).then_some(count)
    }
}

fn number_after(mark: &str, piece: &str) -> Option<u32> {
    piece.strip_prefix(mark)?.parse().ok().filter(|n| (1..=1 << 20).contains(n))
}
