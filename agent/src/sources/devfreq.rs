//! The compute DSP's devfreq nodes (Documentation/ABI/testing/sysfs-class-devfreq: `cur_freq` in Hz). Rare on new chips; a node whose name has
//! `lat` is a vote for a cache, not the DSP's load, and its name says so.

use std::path::Path;

use super::Opened;
use super::gauge::{Gauge, Quantity, boxed, number, unique};
use super::look::Look;
use super::rows::clean;

/// Looked for where the folder may not be listed.
const KNOWN: [&str; 2] = ["soc:qcom,cdsp-cdsp-l3-lat", "soc:qcom,cdsp"];

/// Some old drivers print kHz or MB/s: below 10 MHz no DSP runs, so those are no values instead of wrong ones.
static HZ: Quantity = Quantity { source: "devfreq", unit: "MHz", parse: number, valid: 1e7..=1e10, sentinels: &[], divisor: 1e6 };

/// Opens the nodes below `root` that are the compute DSP's.
pub fn open(root: &str) -> Opened {
    let mut look = Look::default();
    let root = Path::new(root);
    let names = look.names(root, &KNOWN);
    let is_dsp = |name: &&String| ["cdsp", "nsp", "npu"].iter().any(|part| name.to_ascii_lowercase().contains(part));
    let mut gauges: Vec<_> = names
        .iter()
        .filter(is_dsp)
        .filter_map(|name| Gauge::open(&mut look, &HZ, &root.join(name).join("cur_freq"), clean(name)).map(Gauge::fast))
        .collect();
    unique(&mut gauges);
    let mut detail = gauges.iter().map(Gauge::name).collect::<Vec<_>>().join(" ");
    if detail.contains("lat") {
        detail += "; lat: a vote for a cache, not the DSP's load";
    }
    Opened::found(&look, detail, boxed(gauges))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::done::SourceState;
    use crate::sources::tests::{rows_of, tree};

    #[test]
    fn nodes_of_the_dsp_only() {
        let root = tree(
            "devfreq",
            &[
                ("3d00000.qcom,kgsl-3d0/cur_freq", "231000000\n"),
                ("soc:qcom,cdsp/cur_freq", "1382400000\n"),
                ("soc:qcom,cdsp-cdsp-l3-lat/cur_freq", "4577\n"),
            ],
        );
        let mut opened = open(root.path());
        assert_eq!(rows_of(&mut opened), "1,devfreq,soc:qcom_cdsp,1382.4,MHz\n", "a value in another unit is none");
        assert!(opened.detail.unwrap().contains("a vote for a cache"));
        assert_eq!(open("/nonexistent").state, SourceState::Absent);
    }
}
