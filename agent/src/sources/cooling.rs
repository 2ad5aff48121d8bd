//! Cooling devices: how far the kernel goes against heat (Documentation/driver-api/thermal/sysfs-api.rst). 0 is "not at all"; what the steps
//! between 0 and `max_state` mean is the device's own affair. Probed by index, as thermal zones are.

use std::path::Path;

use super::Opened;
use super::gauge::{Gauge, Quantity, boxed, number, unique};
use super::look::Look;
use super::rows::clean;

const MOST_DEVICES: u32 = 128;

static STATE: Quantity =
    Quantity { source: "cooling", unit: "state", parse: number, valid: 0.0..=1_000_000.0, sentinels: &[], divisor: 1.0 };

/// Opens the devices below `root`. Their `max_state` stands in the detail.
pub fn open(root: &str) -> Opened {
    let mut look = Look::default();
    let mut gauges = Vec::new();
    let mut most = Vec::new();
    let root = Path::new(root);
    for index in look.numbers(root, "cooling_device", MOST_DEVICES) {
        let folder = root.join(format!("cooling_device{index}"));
        let Some(kind) = look.text(&folder.join("type")) else { continue };
        let Some(gauge) = Gauge::open(&mut look, &STATE, &folder.join("cur_state"), clean(&kind)) else { continue };
        gauges.push(gauge);
        most.push(look.text(&folder.join("max_state")).filter(|text| text.parse::<u64>().is_ok()).unwrap_or_else(|| "?".to_owned()));
    }
    unique(&mut gauges);
    let detail = gauges.iter().zip(&most).map(|(gauge, max)| format!("{} max {max}", gauge.name())).collect::<Vec<_>>().join(", ");
    Opened::found(&look, detail, boxed(gauges))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::tests::{rows_of, tree};

    #[test]
    fn states_by_type() {
        let root = tree(
            "cooling",
            &[
                ("cooling_device0/type", "thermal-cpufreq-0\n"),
                ("cooling_device0/cur_state", "2\n"),
                ("cooling_device0/max_state", "12\n"),
                ("cooling_device3/type", "cdsp_sw_hvx\n"),
                ("cooling_device3/cur_state", "0\n"),
                ("cooling_device9/type", "cdsp_sw_hvx\n"),
                ("cooling_device9/cur_state", "1\n"),
                ("cooling_device9/max_state", "many\n"),
                ("cooling_device10/type", "broken\n"),
            ],
        );
        let mut opened = open(root.path());
        assert_eq!(opened.detail.as_deref(), Some("thermal-cpufreq-0 max 12, cdsp_sw_hvx max ?, cdsp_sw_hvx#2 max ?"));
        let expected = "1,cooling,thermal-cpufreq-0,2,state\n1,cooling,cdsp_sw_hvx,0,state\n1,cooling,cdsp_sw_hvx#2,1,state\n";
        assert_eq!(rows_of(&mut opened), expected);
    }
}
