//! Frequencies of memory and caches: Qualcomm's bus_dcvs, a folder for each (DDR, LLCC, L3) with `cur_freq` in kHz. `DDRQOS` is a level, not a
//! frequency, and is left out.

use std::path::Path;

use super::Opened;
use super::gauge::{Gauge, Quantity, boxed, number};
use super::look::Look;
use super::rows::clean;

/// What is looked for where the folder may not be listed.
const KNOWN: [&str; 4] = ["DDR", "LLCC", "L3", "L3_1"];

static KHZ: Quantity =
    Quantity { source: "ddr", unit: "MHz", parse: number, valid: 1000.0..=20_000_000.0, sentinels: &[], divisor: 1000.0 };

/// Opens what is below `root`.
pub fn open(root: &str) -> Opened {
    let mut look = Look::default();
    let root = Path::new(root);
    let names = look.names(root, &KNOWN);
    let gauges: Vec<_> = names
        .iter()
        .filter(|name| !name.ends_with("QOS"))
        .filter_map(|name| {
            let node = root.join(name).join("cur_freq");
            if node.exists() { Gauge::open(&mut look, &KHZ, &node, clean(name)).map(Gauge::fast) } else { None }
        })
        .collect();
    let mut detail = gauges.iter().map(Gauge::name).collect::<Vec<_>>().join(" ");
    if let Some(max) = look.text(&root.join("DDR/hw_max_freq")).and_then(|text| text.parse::<u64>().ok()) {
        detail = format!("{detail}; DDR at most {} MHz", max / 1000);
    }
    Opened::found(&look, detail, boxed(gauges))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::tests::{rows_of, tree};

    #[test]
    fn frequencies_but_no_levels() {
        let root = tree(
            "dcvs",
            &[
                ("DDR/cur_freq", "4224000\n"),
                ("DDR/hw_max_freq", "4761000\n"),
                ("LLCC/cur_freq", "1066000\n"),
                ("DDRQOS/cur_freq", "1\n"),
                ("L3/boost_freq", "0\n"),
            ],
        );
        let mut opened = open(root.path());
        assert_eq!(opened.detail.as_deref(), Some("DDR LLCC; DDR at most 4761 MHz"));
        assert_eq!(rows_of(&mut opened), "1,ddr,DDR,4224,MHz\n1,ddr,LLCC,1066,MHz\n");
    }
}
