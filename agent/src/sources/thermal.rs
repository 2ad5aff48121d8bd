//! Temperatures. Zones are probed by index, since a shell without root may be refused a listing of the folder, and named by their `type`,
//! since indices differ between devices. The NPU's zones are read at the rate of the spec, the others once a second: reading all zones of
//! a phone takes 200 ms. Without any zone: hwmon.

use std::path::Path;

use super::Opened;
use super::gauge::{Gauge, Quantity, boxed, number, unique};
use super::look::Look;
use super::rows::clean;

const MOST_ZONES: u32 = 160;
const MOST_HWMON: u32 = 32;
const MOST_INPUTS: u32 = 16;

/// Thousandths of a degree (Documentation/driver-api/thermal/sysfs-api.rst). Valid is what a running device can have: other units (tenths,
/// whole degrees, millivolts) aren't guessed at. The sentinels are values of Qualcomm's drivers for "no reading"; an exact 0 is one too.
static MILLIDEGREES: Quantity = Quantity {
    source: "thermal",
    unit: "C",
    parse: number,
    valid: -45_000.0..=160_000.0,
    sentinels: &[0.0, -273_000.0, -40_960.0, -40_000.0],
    divisor: 1000.0,
};

/// Opens the zones, or hwmon's inputs if there are none.
pub fn open(zones: &str, hwmon: &str) -> Opened {
    let mut look = Look::default();
    let mut gauges = open_zones(Path::new(zones), &mut look);
    let mut kind = "zones";
    if gauges.is_empty() {
        kind = "hwmon inputs";
        gauges = open_hwmon(Path::new(hwmon), &mut look);
    }
    unique(&mut gauges);
    let all = gauges.len();
    let (fast, slow): (Vec<_>, Vec<_>) =
        gauges.into_iter().map(|gauge| if is_npu(gauge.name()) { gauge.fast() } else { gauge }).partition(Gauge::is_fast);
    let detail = format!("{all} {kind}, {} of them fast", fast.len());
    Opened::found(&look, detail, boxed(fast.into_iter().chain(slow).collect()))
}

fn open_zones(root: &Path, look: &mut Look) -> Vec<Gauge> {
    look.numbers(root, "thermal_zone", MOST_ZONES)
        .into_iter()
        .filter_map(|index| {
            let zone = root.join(format!("thermal_zone{index}"));
            let kind = clean(&look.text(&zone.join("type"))?);
            if is_temperature(&kind) { Gauge::open(look, &MILLIDEGREES, &zone.join("temp"), kind) } else { None }
        })
        .collect()
}

fn open_hwmon(root: &Path, look: &mut Look) -> Vec<Gauge> {
    let mut gauges = Vec::new();
    for chip in look.numbers(root, "hwmon", MOST_HWMON) {
        let folder = root.join(format!("hwmon{chip}"));
        let Some(name) = look.text(&folder.join("name")) else { continue };
        for input in 1..=MOST_INPUTS {
            let path = folder.join(format!("temp{input}_input"));
            if path.exists() {
                let label = look.text(&folder.join(format!("temp{input}_label"))).unwrap_or_else(|| format!("temp{input}"));
                gauges.extend(Gauge::open(look, &MILLIDEGREES, &path, clean(&format!("{name}/{label}"))));
            }
        }
    }
    gauges
}

/// Zones whose `temp` is a voltage, a current, a charge or a constant trip point.
fn is_temperature(kind: &str) -> bool {
    let not_exactly = ["vbat", "socd", "soc", "usb", "wireless", "ibat"];
    let not_within = ["-bcl-", "bcl-lvl", "-ibat", "ibat-", "-vbat", "vbat-", "-trip-"];
    !not_exactly.contains(&kind) && !not_within.iter().any(|part| kind.contains(part))
}

/// `nsphvx-0`, `nsphmx0`, `nspss0`, `nsp0`.
fn is_npu(kind: &str) -> bool {
    kind.strip_prefix("nsp").is_some_and(|rest| {
        let rest = ["hvx", "hmx", "ss"].iter().find_map(|unit| rest.strip_prefix(unit)).unwrap_or(rest);
        rest.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::done::SourceState;
    use crate::sources::Pace;
    use crate::sources::tests::{rows_of, tree};

    #[test]
    fn which_zones_are_temperatures_and_which_the_npu() {
        for no in ["pm8550-bcl-lvl0", "pmih010x-ibat-lvl1", "vbat", "socd", "usb", "cpu-0-0-trip-1"] {
            assert!(!is_temperature(no), "{no}");
        }
        for yes in ["cpuss0", "usb-therm", "skin-msm-therm", "battery", "pm8550_tz"] {
            assert!(is_temperature(yes), "{yes}");
        }
        for yes in ["nsphvx0", "nsphmx-3", "nspss0", "nsp0"] {
            assert!(is_npu(yes), "{yes}");
        }
        for no in ["gpuss-0", "nspower", "nsp", "cpu0"] {
            assert!(!is_npu(no), "{no}");
        }
    }

    #[test]
    fn a_phone_with_gaps_doubles_and_sentinels() {
        let root = std::env::temp_dir().join(format!("bench-agent-thermal-{}", std::process::id()));
        let zones = [
            (0, "cpuss0", "45600"),
            (3, "nsphvx0", "51200"),
            (7, "modem", "-273000"),
            (9, "cpuss0", "46000"),
            (11, "vbat", "4200"),
            (40, "dead", ""),
        ];
        for (index, kind, temp) in zones {
            let zone = root.join(format!("thermal_zone{index}"));
            fs::create_dir_all(&zone).unwrap();
            fs::write(zone.join("type"), format!("{kind}\n")).unwrap();
            fs::write(zone.join("temp"), format!("{temp}\n")).unwrap();
        }
        let mut opened = open(root.to_str().unwrap(), "/nonexistent");
        assert_eq!(opened.detail.as_deref(), Some("4 zones, 1 of them fast"));
        assert_eq!(opened.readers.iter().map(|r| r.pace()).collect::<Vec<_>>(), [Pace::Fast, Pace::Slow, Pace::Slow, Pace::Slow]);
        assert_eq!(rows_of(&mut opened), "1,thermal,nsphvx0,51.2,C\n1,thermal,cpuss0,45.6,C\n1,thermal,cpuss0#2,46,C\n");
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn nodes_that_misbehave_cost_their_own_rows_only() {
        let zone = |n: u32, kind: &str, temp: &str| {
            [(format!("thermal_zone{n}/type"), format!("{kind}\n")), (format!("thermal_zone{n}/temp"), temp.to_owned())]
        };
        let files: Vec<_> = [
            zone(0, "cpuss-0", "45600\n"),
            zone(1, "gpuss-0", "44000\n"),
            zone(2, "skin-msm-therm", "36000\n"),
            zone(3, "ddr", "on fire\n"),
            zone(4, "video", "41000\n"),
        ]
        .concat();
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let root = tree("thermal-bad", &files);
        // Opening a pipe that nobody writes into never returns.
        fs::create_dir_all(root.join("thermal_zone5")).unwrap();
        fs::write(root.join("thermal_zone5/type"), "mdmss-0\n").unwrap();
        nix::unistd::mkfifo(&root.join("thermal_zone5/temp"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let mut opened = open(root.path(), "/nonexistent");
        assert_eq!(opened.detail.as_deref(), Some("4 zones, 0 of them fast; 1 without an answer in 500 ms: thermal/mdmss-0"));

        // In the middle of a run: one gives nothing, one 0, one 4 GB, and one a value that no zone has but for one sample. That one stands as
        // it was read: what to make of it is decided where there is more to see than one number.
        fs::write(root.join("thermal_zone0/temp"), "").unwrap();
        fs::write(root.join("thermal_zone1/temp"), "0\n").unwrap();
        fs::File::options().write(true).open(root.join("thermal_zone2/temp")).unwrap().set_len(4 << 30).unwrap();
        fs::write(root.join("thermal_zone4/temp"), "140000\n").unwrap();
        assert_eq!(rows_of(&mut opened), "1,thermal,video,140,C\n");
    }

    #[test]
    fn hwmon_is_the_fallback() {
        let root = std::env::temp_dir().join(format!("bench-agent-hwmon-{}", std::process::id()));
        fs::create_dir_all(root.join("hwmon2")).unwrap();
        fs::write(root.join("hwmon2/name"), "k10temp\n").unwrap();
        fs::write(root.join("hwmon2/temp1_input"), "38500\n").unwrap();
        let mut opened = open("/nonexistent", root.to_str().unwrap());
        assert_eq!(opened.detail.as_deref(), Some("1 hwmon inputs, 0 of them fast"));
        assert_eq!(rows_of(&mut opened), "1,thermal,k10temp/temp1,38.5,C\n");
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(open("/nonexistent", "/nonexistent").state, SourceState::Absent);
    }
}
