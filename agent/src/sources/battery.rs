//! Batteries and external supplies (Documentation/ABI/testing/sysfs-class-power): every supply of the type Battery, and `online` of all others.
//! Current, voltage, power and charge stand as the driver gives them, in the unit `raw`: the ABI wants microamperes and a negative sign while
//! discharging, and some drivers have milliamperes or the other sign; that is told apart where there is more to see than one number.
//!
//! A fuel gauge answers over a bus or by a remote processor (5-30 ms), hence threads of its own: current, voltage and power five times a second
//! (no gauge is faster than 4 Hz), the rest once.

use std::path::Path;

use super::gauge::{Gauge, Quantity, boxed, number};
use super::look::Look;
use super::rows::clean;
use super::{Opened, Pace};

/// Looked for where the folder may not be listed.
const KNOWN: [&str; 9] = ["battery", "bms", "usb", "ac", "dc", "wireless", "main", "pc_port", "qcom-battery"];
/// Of the downstream kernels before 5.x, whose fuel gauge has a type of its own.
const BATTERIES: [&str; 2] = ["Battery", "BMS"];

const ELECTRIC: Pace = Pace::Apart("battery", 200);
const CHARGE: Pace = Pace::Apart("charge", 1000);

const ANY: std::ops::RangeInclusive<f64> = f64::MIN..=f64::MAX;
static RAW: Quantity = Quantity { source: "battery", unit: "raw", parse: number, valid: ANY, sentinels: &[], divisor: 1.0 };
static PERCENT: Quantity = Quantity { source: "battery", unit: "pct", parse: number, valid: 0.0..=100.0, sentinels: &[], divisor: 1.0 };
/// Tenths of a degree.
static TENTHS: Quantity = Quantity { source: "battery", unit: "C", parse: number, valid: -400.0..=1200.0, sentinels: &[], divisor: 10.0 };
static STATUS: Quantity = Quantity { source: "battery", unit: "code", parse: status, valid: 0.0..=4.0, sentinels: &[], divisor: 1.0 };
static ONLINE: Quantity = Quantity { source: "battery", unit: "code", parse: number, valid: 0.0..=2.0, sentinels: &[], divisor: 1.0 };

/// Node, what it holds, when it is read.
static NODES: [(&str, &Quantity, Pace); 8] = [
    ("current_now", &RAW, ELECTRIC),
    ("voltage_now", &RAW, ELECTRIC),
    ("power_now", &RAW, ELECTRIC),
    ("charge_counter", &RAW, CHARGE),
    ("charge_now", &RAW, CHARGE),
    ("capacity", &PERCENT, CHARGE),
    ("temp", &TENTHS, CHARGE),
    ("status", &STATUS, CHARGE),
];

/// Opens what is below `root`.
pub fn open(root: &str) -> Opened {
    let mut look = Look::default();
    let root = Path::new(root);
    let names = look.names(root, &KNOWN);
    let mut gauges = Vec::new();
    let mut found = Vec::new();
    for name in names {
        let folder = root.join(&name);
        let Some(kind) = look.text(&folder.join("type")).filter(|kind| !kind.is_empty()) else { continue };
        let name = clean(&name);
        let before = gauges.len();
        if BATTERIES.contains(&kind.as_str()) {
            for (node, quantity, pace) in &NODES {
                gauges.extend(Gauge::open(&mut look, quantity, &folder.join(node), format!("{name}/{node}")).map(|gauge| gauge.at(*pace)));
            }
        } else {
            gauges.extend(Gauge::open(&mut look, &ONLINE, &folder.join("online"), format!("{name}/online")).map(|gauge| gauge.at(CHARGE)));
        }
        if gauges.len() > before {
            found.push(format!("{name} ({})", clean(&kind)));
        }
    }
    Opened::found(&look, found.join(", "), boxed(gauges))
}

/// The kernel's words in the order of its POWER_SUPPLY_STATUS_*.
fn status(text: &[u8]) -> Option<f64> {
    const WORDS: [&str; 5] = ["Unknown", "Charging", "Discharging", "Not charging", "Full"];
    let text = std::str::from_utf8(text).ok()?.trim();
    WORDS.iter().position(|word| *word == text).map(|code| code as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::done::SourceState;
    use crate::sources::tests::{rows_of, tree};

    #[test]
    fn several_batteries_and_a_cable() {
        let root = tree(
            "battery",
            &[
                ("battery/type", "Battery\n"),
                ("battery/current_now", "-350000\n"),
                ("battery/voltage_now", "4120000\n"),
                ("battery/capacity", "101\n"),
                ("battery/temp", "310\n"),
                ("battery/status", "Not charging\n"),
                ("second/type", "Battery\n"),
                ("second/current_now", "unknown\n"),
                ("second/status", "Sulking\n"),
                ("second/charge_counter", "4150000\n"),
                ("usb/type", "USB\n"),
                ("usb/online", "1\n"),
                ("usb/current_now", "2\n"),
                ("odd/online", "1\n"),
            ],
        );
        let mut opened = open(root.path());
        assert_eq!(opened.detail.as_deref(), Some("battery (Battery), second (Battery), usb (USB)"));
        let expected = "1,battery,battery/current_now,-350000,raw\n1,battery,battery/voltage_now,4120000,raw\n1,battery,battery/temp,31,C\n\
                        1,battery,battery/status,3,code\n1,battery,second/charge_counter,4150000,raw\n1,battery,usb/online,1,code\n";
        assert_eq!(rows_of(&mut opened), expected);
        assert!(opened.readers.iter().all(|reader| matches!(reader.pace(), Pace::Apart(..))));
        assert_eq!(open("/nonexistent").state, SourceState::Absent);
    }
}
