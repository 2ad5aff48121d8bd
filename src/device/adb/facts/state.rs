//! What changes on a device and spoils a measurement: battery, clocks, heat, screen.

use serde::Serialize;

use super::answers::Answers;

/// The battery. Its current is the whole phone's, never the NPU's; with a cable it may be the charger's.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Battery {
    /// Charge in percent.
    pub level_percent: Option<u32>,
    /// `Charging`, `Discharging`, `Not charging`, `Full`, `Unknown`: the kernel's words.
    pub status: Option<String>,
    /// Temperature in degrees Celsius.
    pub temperature_c: Option<f64>,
    /// Voltage in mV.
    pub voltage_mv: Option<f64>,
    /// Current in mA, with the device's sign: by the kernel's rule negative is discharging, and several drivers do not keep to it.
    pub current_ma: Option<f64>,
    /// The device does not say the unit of its current: the rule is µA, some vendors print mA, and a small figure was taken for mA.
    pub current_unit_inferred: bool,
    /// `sysfs` (`/sys/class/power_supply`) or `dumpsys` (which has no current).
    pub source: &'static str,
}

/// No phone runs on less than this many µA with its screen on: a smaller figure is in mA (Samsung prints those).
const LEAST_MICROAMPERES: f64 = 20_000.0;

impl Battery {
    pub(super) fn read(answers: &Answers<'_>) -> Option<Self> {
        Self::sysfs(answers).or_else(|| Self::dumpsys(answers))
    }

    /// Units of the kernel's ABI (Documentation/ABI/testing/sysfs-class-power): percent, 0.1 °C, µV, µA.
    fn sysfs(answers: &Answers<'_>) -> Option<Self> {
        let names = answers.keys_after("supply.").filter_map(|k| k.rsplit_once('.')).map(|(name, _)| name);
        let name = names.min_by_key(|name| (*name != "battery", *name))?.to_owned();
        let number = |key: &str| answers.number::<i64>(&format!("supply.{name}.{key}")).map(|n| n as f64);
        let current = number("current_now");
        let small = current.is_some_and(|c| c != 0.0 && c.abs() < LEAST_MICROAMPERES);
        let battery = Self {
            level_percent: answers.number(&format!("supply.{name}.capacity")).filter(|p| *p <= 100),
            status: answers.text(&format!("supply.{name}.status")),
            temperature_c: number("temp").map(|t| t / 10.0),
            voltage_mv: number("voltage_now").map(|v| v / 1000.0),
            current_ma: current.map(|c| if small { c } else { c / 1000.0 }),
            current_unit_inferred: small,
            source: "sysfs",
        };
        // A production phone may refuse all of it to the shell.
        (battery.level_percent.is_some() || battery.status.is_some()).then_some(battery)
    }

    /// Percent, 0.1 °C, mV; the status is a number of `BatteryManager`.
    fn dumpsys(answers: &Answers<'_>) -> Option<Self> {
        let number = |key: &str| answers.number::<i64>(&format!("battery.{key}")).map(|n| n as f64);
        let status = match answers.get("battery.status")? {
            "2" => "Charging",
            "3" => "Discharging",
            "4" => "Not charging",
            "5" => "Full",
            _ => "Unknown",
        };
        Some(Self {
            level_percent: answers.number("battery.level").filter(|p| *p <= 100),
            status: Some(status.to_owned()),
            temperature_c: number("temperature").map(|t| t / 10.0),
            voltage_mv: number("voltage"),
            current_ma: None,
            current_unit_inferred: false,
            source: "dumpsys",
        })
    }
}

/// The clocks of some processors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CpuPolicy {
    /// `policy0`, or `cpu0` where the kernel has no policies.
    pub name: String,
    /// Who chooses the clock: `walt`, `schedutil`, `performance`, ...
    pub governor: Option<String>,
    /// Lowest clock that is allowed now, in kHz.
    pub min_khz: Option<u64>,
    /// Highest clock that is allowed now, in kHz.
    pub max_khz: Option<u64>,
    /// Highest clock of the hardware, in kHz.
    pub hardware_max_khz: Option<u64>,
}
impl CpuPolicy {
    /// The highest clock is kept under what the hardware can do: heat, a power mode, or a user.
    pub fn capped(&self) -> bool {
        matches!((self.max_khz, self.hardware_max_khz), (Some(now), Some(can)) if now < can)
    }

    pub(super) fn read(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace().map(|w| Some(w).filter(|w| *w != "-"));
        let name = words.next()??.to_owned();
        let governor = words.next()?.map(str::to_owned);
        let mut khz = || words.next().flatten().and_then(|w| w.parse().ok());
        Some(Self { name, governor, min_khz: khz(), max_khz: khz(), hardware_max_khz: khz() })
    }
}

/// What Android does against the heat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ThermalStatus {
    /// Nothing.
    None,
    /// The user feels nothing.
    Light,
    /// The user may notice.
    Moderate,
    /// Performance is largely limited.
    Severe,
    /// Everything is done to cool down.
    Critical,
    /// Key parts are switched off.
    Emergency,
    /// The device is about to switch off.
    Shutdown,
}
impl ThermalStatus {
    /// `dumpsys thermalservice`: 0 to 6 (`android.os.PowerManager.THERMAL_STATUS_*`).
    pub(super) fn read(answers: &Answers<'_>) -> Option<Self> {
        let all = [Self::None, Self::Light, Self::Moderate, Self::Severe, Self::Critical, Self::Emergency, Self::Shutdown];
        all.get(answers.number::<usize>("thermal")?).copied()
    }
}

/// The screen and what keeps the device awake.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Screen {
    /// `Awake`, `Asleep`, `Dozing`, `Dreaming`.
    pub wakefulness: Option<String>,
    /// Switched off after so many ms without a touch.
    pub timeout_ms: Option<u64>,
    /// Stays on while plugged in: bits for mains (1), USB (2), wireless (4), dock (8); 0 is never.
    pub stay_on_while_plugged_in: Option<u32>,
}
impl Screen {
    pub(super) fn read(answers: &Answers<'_>) -> Self {
        Self {
            wakefulness: answers.text("wakefulness"),
            timeout_ms: answers.number("setting.screen_off_timeout"),
            stay_on_while_plugged_in: answers.number("setting.stay_on_while_plugged_in"),
        }
    }

    /// Whether it is on, if the device tells.
    pub fn on(&self) -> Option<bool> {
        self.wakefulness.as_deref().map(|w| w == "Awake")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_battery_from_sysfs_in_microamperes() {
        let text = "supply.battery.capacity=83\nsupply.battery.status=Discharging\nsupply.battery.temp=312\nsupply.battery.voltage_now=4120000\n\
                    supply.battery.current_now=-512000\nsupply.bms.capacity=12\nbattery.status=2\nbattery.level=5\n";
        let battery = Battery::read(&Answers::read(text)).unwrap();
        assert_eq!((battery.level_percent, battery.status.as_deref(), battery.source), (Some(83), Some("Discharging"), "sysfs"));
        assert_eq!((battery.temperature_c, battery.voltage_mv), (Some(31.2), Some(4120.0)));
        assert_eq!((battery.current_ma, battery.current_unit_inferred), (Some(-512.0), false));
        // Samsung's mA, and a driver that knows nothing.
        let small = Battery::read(&Answers::read("supply.bms.capacity=40\nsupply.bms.current_now=-487\n")).unwrap();
        assert_eq!((small.current_ma, small.current_unit_inferred), (Some(-487.0), true));
        let none = Battery::read(&Answers::read("supply.bms.capacity=140\nsupply.bms.status=Full\nsupply.bms.current_now=0\n")).unwrap();
        assert_eq!((none.level_percent, none.current_ma, none.current_unit_inferred), (None, Some(0.0), false));
    }

    #[test]
    fn a_phone_that_hides_its_gauge_has_dumpsys() {
        let text = "supply.battery.capacity!head: /sys/class/power_supply/battery/capacity: Permission denied\n\
                    battery.AC powered=false\nbattery.level=64\nbattery.status=3\nbattery.temperature=287\nbattery.voltage=3987\n";
        let battery = Battery::read(&Answers::read(text)).unwrap();
        let expected = Battery {
            level_percent: Some(64),
            status: Some("Discharging".to_owned()),
            temperature_c: Some(28.7),
            voltage_mv: Some(3987.0),
            source: "dumpsys",
            ..Battery::default()
        };
        assert_eq!(battery, expected);
        assert_eq!(Battery::read(&Answers::read("level=3\n")), None, "a board has no battery");
    }

    #[test]
    fn policies_and_caps() {
        let policy = CpuPolicy::read("policy7 walt 480000 2016000 3187200").unwrap();
        assert_eq!((policy.governor.as_deref(), policy.min_khz, policy.max_khz), (Some("walt"), Some(480_000), Some(2_016_000)));
        assert!(policy.capped());
        assert!(!CpuPolicy::read("policy0 walt - 2265600 2265600").unwrap().capped());
        let poor = CpuPolicy::read("cpu0 - - - 99999999999999999999").unwrap();
        assert!(poor.governor.is_none() && poor.hardware_max_khz.is_none() && !poor.capped());
        assert_eq!((CpuPolicy::read(""), CpuPolicy::read("-")), (None, None));
    }

    #[test]
    fn heat_and_screen() {
        let of = |text: &str| ThermalStatus::read(&Answers::read(text));
        assert_eq!((of("thermal=3"), of("thermal=0")), (Some(ThermalStatus::Severe), Some(ThermalStatus::None)));
        assert_eq!((of("thermal=7"), of("thermal=-1"), of("")), (None, None, None));
        let screen =
            Screen::read(&Answers::read("wakefulness=Dozing\nsetting.screen_off_timeout=600000\nsetting.stay_on_while_plugged_in=null\n"));
        assert_eq!((screen.on(), screen.timeout_ms, screen.stay_on_while_plugged_in), (Some(false), Some(600_000), None));
        assert_eq!(Screen::default().on(), None);
    }
}
