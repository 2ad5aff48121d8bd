//! The state of a device at one moment: the agent's readings, and what Android's services say. Pure: text in, values out. What a device does not
//! tell is absent.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::device::{
    Reading,
    zones::{Domain, domain_of},
};

/// The state of a device.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Every thermal zone in degrees Celsius, by its name in telemetry.csv.
    pub zones: BTreeMap<String, f64>,
    /// The hottest zone of each domain in degrees Celsius; the gauge's temperature where no zone is the battery's.
    pub domains: BTreeMap<Domain, f64>,
    /// Charge in percent.
    pub battery_pct: Option<f64>,
    /// Whether the battery is being charged.
    pub charging: Option<bool>,
    /// Whether the screen is on.
    pub screen: Option<bool>,
    /// Memory that programs could get, in 10^6 bytes.
    pub free_mb: Option<f64>,
    /// Share of all cores that is busy, in percent.
    pub cpu_pct: Option<f64>,
    /// Who else uses what is measured (rule R9); absent where nothing of it can be seen.
    pub contenders: Option<Vec<String>>,
}

/// Asks Android for what the agent does not read. Every line may be missing. Sources: AOSP `dumpsys power`, `battery` and `media.camera` (its list
/// of active clients stands between `Active Camera Clients:` and `Allowed user IDs:`). Open files of other users' processes are visible to root
/// alone; the debug file system too.
pub const SCRIPT: &str = r#"
timeout 3 dumpsys power 2>/dev/null | sed -n 's/^ *mWakefulness=/wakefulness=/p'
timeout 3 dumpsys battery 2>/dev/null | sed -n 's/^ *\(level\|status\|temperature\): */battery.\1=/p'
timeout 3 dumpsys media.camera 2>/dev/null | sed -n '/Active Camera Clients:/,/Allowed user IDs:/s/^/camera=/p'
ls -l /proc/[0-9]*/fd 2>/dev/null | while read -r l; do case $l in
  /proc/*:) p=${l#/proc/}; p=${p%%/*};;
  *'-> /dev/fastrpc-cdsp'*|*'-> /dev/adsprpc'*) echo "dsp=$p $(xargs -0 2>/dev/null < /proc/$p/cmdline)";;
esac; done
echo "uid=$(id -u)"
ls /sys/kernel/debug/adsprpc 2>/dev/null | sed 's/^/adsprpc=/'
true
"#;

/// The kernel's `POWER_SUPPLY_STATUS_*`, as the agent's `code` rows have them.
fn charging(code: f64) -> Option<bool> {
    match code as i64 {
        1 => Some(true),
        2..=4 => Some(false),
        _ => None,
    }
}

impl State {
    /// Of the agent's readings; `soc` is the chip's part number, for the names of its zones.
    pub fn read(soc: &str, readings: &[Reading]) -> Self {
        let mut state = Self::default();
        for r in readings.iter().filter(|r| r.source == "thermal" && r.unit == "C") {
            state.zones.insert(r.name.clone(), r.value);
            if let Some(domain) = domain_of(soc, &r.name) {
                let hottest = state.domains.entry(domain).or_insert(r.value);
                *hottest = hottest.max(r.value);
            }
        }
        let value = |source: &str, name: &str| readings.iter().rev().find(|r| r.source == source && r.name == name).map(|r| r.value);
        // Phones have several supplies of the battery's kind; the one that is called so is Android's.
        let supplies = readings.iter().filter(|r| r.source == "battery").filter_map(|r| r.name.strip_suffix("/capacity"));
        if let Some(supply) = supplies.min_by_key(|name| (*name != "battery", *name)) {
            state.battery_pct = value("battery", &format!("{supply}/capacity")).filter(|p| (0.0..=100.0).contains(p));
            state.charging = value("battery", &format!("{supply}/status")).and_then(charging);
            if let Some(c) = value("battery", &format!("{supply}/temp")) {
                state.domains.entry(Domain::Battery).or_insert(c);
            }
        }
        state.free_mb = value("meminfo", "mem_available_kb").map(|kib| kib * 1024.0 / 1e6);
        state.cpu_pct = value("cpu", "busy_pct");
        state
    }

    /// Adds what [`SCRIPT`] printed. Device output: nothing is trusted.
    pub fn asked(mut self, text: &str) -> Self {
        let lines = || text.lines().filter_map(|line| line.split_once('='));
        let first = |key: &str| lines().find(|(k, v)| *k == key && !v.trim().is_empty()).map(|(_, v)| v.trim());
        self.screen = first("wakefulness").map(|w| w == "Awake");
        let number = |key: &str| first(key).and_then(|v| v.parse::<f64>().ok());
        // Only where the gauge is hidden from the agent: `BatteryManager` has numbers of its own (2 charging, 3 discharging, 4 not, 5 full).
        self.battery_pct = self.battery_pct.or_else(|| number("battery.level").filter(|p| (0.0..=100.0).contains(p)));
        self.charging = self.charging.or_else(|| match first("battery.status")? {
            "2" => Some(true),
            "3" | "4" | "5" => Some(false),
            _ => None,
        });
        if let Some(tenths) = number("battery.temperature") {
            self.domains.entry(Domain::Battery).or_insert(tenths / 10.0);
        }
        let mut seen = false;
        let mut users = BTreeSet::new();
        for (key, value) in lines() {
            let value = value.trim();
            match key {
                "camera" => {
                    seen = true;
                    let name = value.split("Client Package Name:").nth(1).and_then(|rest| rest.trim().split([',', ')', ' ']).next());
                    users.extend(name.map(|n| format!("camera: {}", words(n))));
                }
                "dsp" => {
                    let (pid, line) = value.split_once(' ').unwrap_or((value, ""));
                    users.insert(format!("dsp: {} ({})", words(line), words(pid)));
                }
                // Files of the driver beside those of its users.
                "adsprpc" if !matches!(value, "global" | "rpc_global" | "dsp") => {
                    seen = true;
                    users.insert(format!("dsp: {}", words(value)));
                }
                "uid" => seen |= value == "0",
                _ => {}
            }
        }
        if seen || !users.is_empty() {
            self.contenders = Some(users.into_iter().collect());
        }
        self
    }

    /// The temperature of a domain or, by its own name, of a zone.
    pub fn temperature(&self, zone: &str) -> Option<f64> {
        match Domain::parse(zone) {
            Some(domain) => self.domains.get(&domain).copied(),
            None => self.zones.get(zone).copied(),
        }
    }
}

/// A program's name for a table: no separators of the tables, and short.
fn words(text: &str) -> String {
    let program = text.split_whitespace().next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    program.chars().filter(|c| !c.is_control() && !";,=".contains(*c)).take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(source: &str, name: &str, value: f64, unit: &str) -> Reading {
        Reading { t_ns: 1, source: source.to_owned(), name: name.to_owned(), value, unit: unit.to_owned() }
    }

    #[test]
    fn readings_of_an_8_gen_3() {
        let state = State::read(
            "SM8650",
            &[
                reading("thermal", "nsphvx-0", 41.0, "C"),
                reading("thermal", "nsphmx-1", 44.5, "C"),
                reading("thermal", "cpu-0-0-0", 50.0, "C"),
                reading("thermal", "skin-msm-therm", 33.3, "C"),
                reading("thermal", "sys-therm-3", 70.0, "C"),
                reading("battery", "bms/capacity", 12.0, "pct"),
                reading("battery", "battery/capacity", 83.0, "pct"),
                reading("battery", "battery/status", 2.0, "code"),
                reading("battery", "battery/temp", 31.0, "C"),
                reading("meminfo", "mem_available_kb", 1_000_000.0, "kB"),
                reading("cpu", "busy_pct", 12.5, "pct"),
            ],
        );
        assert_eq!((state.temperature("npu"), state.temperature("cpu"), state.temperature("skin")), (Some(44.5), Some(50.0), Some(33.3)));
        assert_eq!(
            (state.temperature("battery"), state.temperature("sys-therm-3"), state.temperature("gpu")),
            (Some(31.0), Some(70.0), None)
        );
        assert_eq!((state.battery_pct, state.charging, state.cpu_pct), (Some(83.0), Some(false), Some(12.5)));
        // 1,000,000 KiB are 1024 million bytes.
        assert_eq!(state.free_mb, Some(1024.0));
        assert_eq!((state.screen, &state.contenders), (None, &None));
        assert_eq!(State::read("", &[]), State::default());
    }

    #[test]
    fn what_android_says() {
        let text = "wakefulness=Dozing\nbattery.status=2\nbattery.level=64\nbattery.temperature=287\ncamera=Active Camera Clients:\ncamera=[\n\
                    camera=(Camera ID: 0, Cost: 100, PID: 7, Score: 0, State: 2User Id: 0, Client Package Name: com.example.cam, Conflicting Client Devices: {})\n\
                    camera=]\ncamera=Allowed user IDs: 0\ndsp=812 /vendor/bin/assistant --x \ndsp=813 \nuid=2000\n";
        let state = State::default().asked(text);
        assert_eq!((state.screen, state.battery_pct, state.charging), (Some(false), Some(64.0), Some(true)));
        assert_eq!(state.temperature("battery"), Some(28.7));
        assert_eq!(state.contenders.unwrap(), ["camera: com.example.cam", "dsp:  (813)", "dsp: assistant (812)"].map(str::to_owned));
    }

    #[test]
    fn nothing_visible_is_not_nobody() {
        assert_eq!(State::default().asked("uid=2000\n").contenders, None);
        assert_eq!(State::default().asked("uid=0\n").contenders, Some(Vec::new()));
        assert_eq!(State::default().asked("camera=Active Camera Clients:\ncamera=[]\nuid=2000\n").contenders, Some(Vec::new()));
        // What the agent has read counts more than what Android rounds.
        let known = State { battery_pct: Some(83.0), charging: Some(false), ..State::default() };
        let asked = known.clone().asked("battery.level=99\nbattery.status=2\nbattery.level=\n\0=\u{1b}\n");
        assert_eq!((asked.battery_pct, asked.charging), (known.battery_pct, known.charging));
    }
}
