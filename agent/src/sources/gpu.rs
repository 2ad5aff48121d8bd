//! The Adreno GPU by the nodes of its driver (kgsl): how busy it is and its clock.
//!
//! Both busy nodes tell of the driver's last finished window of a second or more, hence once a second: `gpu_busy_percentage` is `N %`, `gpubusy`
//! is `BUSY TOTAL` of that window in microseconds, and `0 0` when there was none. Clocks are in Hz.

use std::path::Path;

use super::Opened;
use super::gauge::{Gauge, Quantity, boxed, number};
use super::look::Look;

static PERCENT: Quantity = Quantity { source: "gpu", unit: "pct", parse: percent, valid: 0.0..=100.0, sentinels: &[], divisor: 1.0 };
static PAIR: Quantity = Quantity { source: "gpu", unit: "pct", parse: share, valid: 0.0..=100.0, sentinels: &[], divisor: 1.0 };
static HZ: Quantity = Quantity { source: "gpu", unit: "MHz", parse: number, valid: 1e6..=1e10, sentinels: &[], divisor: 1e6 };

/// Opens what `root` (`kgsl-3d0`) has.
pub fn open(root: &str) -> Opened {
    let mut look = Look::default();
    let root = Path::new(root);
    let mut found = Vec::new();
    let mut gauges = Vec::new();
    let busy: [(&str, &'static Quantity); 2] = [("gpu_busy_percentage", &PERCENT), ("gpubusy", &PAIR)];
    for (nodes, name) in [(&busy[..], "busy_pct"), (&[("gpuclk", &HZ), ("devfreq/cur_freq", &HZ)][..], "clock")] {
        for (node, quantity) in nodes {
            if let Some(gauge) = Gauge::open(&mut look, quantity, &root.join(node), name.to_owned()) {
                gauges.push(if name == "clock" { gauge.fast() } else { gauge });
                found.push(format!("{name} from {node}"));
                break;
            }
        }
    }
    if let Some(model) = look.text(&root.join("gpu_model")).filter(|model| !model.is_empty()) {
        found.push(super::rows::clean(&model));
    }
    Opened::found(&look, found.join(", "), boxed(gauges))
}

/// `37 %`.
fn percent(text: &[u8]) -> Option<f64> {
    number(std::str::from_utf8(text).ok()?.trim().trim_end_matches('%').as_bytes())
}

/// `BUSY TOTAL`. A window that has not happened is a value that parses (the node works) and is valid for nobody: NaN.
fn share(text: &[u8]) -> Option<f64> {
    let mut words = std::str::from_utf8(text).ok()?.split_ascii_whitespace().map(str::parse::<u64>);
    let (Some(Ok(busy)), Some(Ok(total)), None) = (words.next(), words.next(), words.next()) else { return None };
    Some(if total == 0 { f64::NAN } else { (busy as f64 / total as f64 * 1000.0).round() / 10.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::done::SourceState;
    use crate::sources::tests::{rows_of, tree};

    #[test]
    fn an_adreno() {
        let root = tree(
            "gpu-a",
            &[("gpu_busy_percentage", "37 %\n"), ("gpubusy", "1 2\n"), ("gpuclk", "231000000\n"), ("gpu_model", "Adreno750v2\n")],
        );
        let mut opened = open(root.path());
        assert_eq!(opened.detail.as_deref(), Some("busy_pct from gpu_busy_percentage, clock from gpuclk, Adreno750v2"));
        assert_eq!(rows_of(&mut opened), "1,gpu,busy_pct,37,pct\n1,gpu,clock,231,MHz\n");
    }

    #[test]
    fn the_pair_is_the_fallback() {
        let root = tree("gpu-b", &[("gpubusy", " 251000 1004000\n"), ("gpuclk", "0\n"), ("devfreq/cur_freq", "903000000\n")]);
        let mut opened = open(root.path());
        assert_eq!(rows_of(&mut opened), "1,gpu,busy_pct,25,pct\n", "a clock of 0 Hz is none");
        std::fs::write(root.join("gpubusy"), "      0       0\n").unwrap();
        assert_eq!(rows_of(&mut opened), "", "no window, no value");
        std::fs::write(root.join("gpubusy"), "9 8\n").unwrap();
        assert_eq!(rows_of(&mut opened), "", "busier than possible");
        assert_eq!(open("/nonexistent").state, SourceState::Absent);
    }
}
