//! Power rails of a board's meters (Documentation/hwmon/sysfs-interface.rst): `powerN_input` in uW, else the product of `inN_input` (mV) and
//! `currN_input` (mA) of the same number. Such a chip averages over its own window and answers over I2C, hence a thread of its own. A supply of
//! the battery's class shows itself in hwmon too; its numbers (in0, curr1) do not pair, and that it is no rail is right.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::gauge::{Gauge, Quantity, boxed, number};
use super::look::Look;
use super::rows::clean;
use super::{Opened, Pace, Reader, Rows};

const MOST_HWMON: u32 = 64;
const MOST_INPUTS: u32 = 16;
const RAILS: Pace = Pace::Apart("power", 100);

static MICROWATTS: Quantity = Quantity { source: "power", unit: "W", parse: number, valid: 0.0..=1e9, sentinels: &[], divisor: 1e6 };

/// Volts and amperes of one rail.
struct Product {
    name: String,
    millivolts: File,
    milliamperes: File,
}

/// Opens the rails of all chips below `root`.
pub fn open(root: &str) -> Opened {
    let mut look = Look::default();
    let mut gauges: Vec<Gauge> = Vec::new();
    let mut products: Vec<Product> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    let root = Path::new(root);
    for chip in look.numbers(root, "hwmon", MOST_HWMON) {
        let folder = root.join(format!("hwmon{chip}"));
        let Some(chip) = look.text(&folder.join("name")) else { continue };
        for n in 1..=MOST_INPUTS {
            let node = |kind: &str| folder.join(format!("{kind}{n}_input"));
            let mut named = |look: &mut Look, kind: &str| {
                let label = label(look, &folder, kind, n);
                let mut name = clean(&format!("{chip}/{label}"));
                // Two chips of a kind are usual.
                let same = names.iter().filter(|other| **other == name).count();
                names.push(name.clone());
                if same > 0 {
                    name = format!("{name}#{}", same + 1);
                }
                name
            };
            if node("power").exists() {
                let name = named(&mut look, "power");
                gauges.extend(Gauge::open(&mut look, &MICROWATTS, &node("power"), name).map(|gauge| gauge.at(RAILS)));
            } else if node("in").exists() && node("curr").exists() {
                let name = named(&mut look, "in");
                products.extend(Product::open(&mut look, node("in"), node("curr"), name));
            }
        }
    }
    let told: Vec<String> =
        gauges.iter().map(|g| g.name().to_owned()).chain(products.iter().map(|p| format!("{} (volts x amperes)", p.name))).collect();
    let mut readers = boxed(gauges);
    readers.extend(products.into_iter().map(|product| Box::new(product) as Box<dyn Reader>));
    if readers.is_empty() && look.refused.as_ref().is_none_or(|e| e.kind() == std::io::ErrorKind::NotFound) {
        return Opened::found(&look, "", readers).because("no power rails in hwmon");
    }
    Opened::found(&look, told.join(", "), readers)
}

/// The rail's name, if the board gave it one.
fn label(look: &mut Look, folder: &Path, kind: &str, n: u32) -> String {
    let path = folder.join(format!("{kind}{n}_label"));
    let label = if path.exists() { look.text(&path).filter(|label| !label.is_empty()) } else { None };
    label.unwrap_or_else(|| format!("{kind}{n}"))
}

impl Product {
    fn open(look: &mut Look, volts: PathBuf, amperes: PathBuf, name: String) -> Option<Self> {
        look.at(&format!("power/{name}"), move || {
            let product = Self { name, millivolts: File::open(volts)?, milliamperes: File::open(amperes)? };
            product.watts().ok_or(std::io::ErrorKind::InvalidData)?;
            Ok(product)
        })
    }

    fn watts(&self) -> Option<f64> {
        let value = |file: &File| {
            let mut buffer = [0; 32];
            let n = file.read_at(&mut buffer, 0).ok()?;
            number(&buffer[..n])
        };
        let watts = value(&self.millivolts)? * value(&self.milliamperes)? / 1e6;
        // A negative current flows back: a rail has none to give.
        (0.0..=1000.0).contains(&watts).then_some(watts)
    }
}

impl Reader for Product {
    fn pace(&self) -> Pace {
        RAILS
    }

    fn label(&self) -> String {
        format!("power/{}", self.name)
    }

    fn sample(&mut self, rows: &mut Rows) {
        if let Some(watts) = self.watts() {
            rows.push("power", &self.name, watts, "W");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::done::SourceState;
    use crate::sources::tests::{rows_of, tree};

    #[test]
    fn rails_of_a_board() {
        let root = tree(
            "power",
            &[
                ("hwmon0/name", "ina231\n"),
                ("hwmon0/power1_input", "3725000\n"),
                ("hwmon0/power1_label", "system\n"),
                ("hwmon0/in1_input", "5000\n"),
                ("hwmon0/curr1_input", "745\n"),
                ("hwmon1/name", "ina3221\n"),
                ("hwmon1/in1_input", "5000\n"),
                ("hwmon1/in1_label", "VDD CPU\n"),
                ("hwmon1/curr1_input", "250\n"),
                ("hwmon1/in2_input", "5000\n"),
                ("hwmon3/name", "ina231\n"),
                ("hwmon3/power1_input", "1000\n"),
                ("hwmon3/power1_label", "system\n"),
                ("hwmon4/name", "battery\n"),
                ("hwmon4/in0_input", "4100\n"),
                ("hwmon4/curr1_input", "350\n"),
            ],
        );
        let mut opened = open(root.path());
        assert_eq!(opened.detail.as_deref(), Some("ina231/system, ina231/system#2, ina3221/VDD_CPU (volts x amperes)"));
        assert_eq!(
            rows_of(&mut opened),
            "1,power,ina231/system,3.725,W\n1,power,ina231/system#2,0.001,W\n1,power,ina3221/VDD_CPU,1.25,W\n"
        );
        let none = open("/nonexistent");
        assert_eq!((none.state, none.detail.as_deref()), (SourceState::Absent, Some("no power rails in hwmon")));
    }
}
