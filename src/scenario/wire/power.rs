//! `[power]` as it is written.

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::value::{At, List};

/// Power and energy, which need the device on its battery (or a supply that is measured) and windows of two minutes: see `scenarios/power.toml`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Power {
    /// How power is measured (default `auto`: the meter if there is one, else the battery if there is one, else rails of hwmon).
    pub method: Option<At<Method>>,
    /// `measured` when what is read is the device's supply, whatever else is plugged in: a battery replaced by a lab supply, a meter in the only cable.
    pub supply: Option<At<Supply>>,
    /// Command of this computer that cuts the device's USB power, run once a launch has begun on the device; no shell is involved. For instance `uhubctl -l 1-1 -p 2 -a off`.
    pub usb_off: Option<List<String>>,
    /// Command of this computer that gives USB power back, run when the launch should be over.
    pub usb_on: Option<List<String>>,
    /// How long USB stays cut in the first launch of a cell (default: the launch's `timeout`); later ones stay as long as the cell's last one took, and some more.
    pub away: Option<At<String>>,
    /// How long the device waits for its battery to discharge once USB is cut (default `1m`), or once the user was asked to unplug it (default `10m`). After that the launch begins all the same and has no figure of power.
    pub wait: Option<At<String>>,
    /// `true` asks to unplug the device, waits for `Discharging` and asks to plug it in again; no hub is needed.
    pub on_battery: Option<At<bool>>,
    /// Idle time with the same screen and charge state (default `60s`, the least), or `off`: then there are no net joules. It is measured before the first launch, and again in the first launch of each cell between load and first query, with the model in memory, where the program can do that.
    pub baseline: Option<At<String>>,
    /// An external meter.
    pub meter: Option<At<Meter>>,
    /// Rails of hwmon that are added, as `<chip>/<label>` (default: the only one, or the one named after the whole system).
    pub rails: Option<List<String>>,
}

/// A way to measure power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Method {
    /// What there is.
    Auto,
    /// Current times voltage of the battery: the whole device's draw.
    Battery,
    /// Power rails of a board.
    Hwmon,
    /// An external meter.
    Meter,
}

/// What the readings are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Supply {
    /// The device's supply.
    Measured,
}

/// An external meter: a CSV of `t_s,w` (seconds of its own clock that rise, watts) that has been recording since before the run. Its clock is found by pulses of load at the start.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Meter {
    /// File that the meter's own program writes.
    pub file: Option<At<String>>,
    /// Command of this computer that writes the CSV to its standard output until it is ended.
    pub command: Option<List<String>>,
}
