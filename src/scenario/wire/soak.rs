//! `[soak]` as it is written.

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::value::{At, List};

/// After the measurement each cell runs for long, once, without a pause: throttling, heat, and whether its tokens stay right. It feeds
/// `soak.csv` and the soak's own columns, no other figure.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Soak {
    /// How long each cell runs from its first query on, for instance `30m` or `8h`.
    #[schemars(required)]
    pub duration: Option<At<String>>,
    /// Length of the windows whose throughput, latencies, temperatures and clocks are told (default `30s`).
    pub window: Option<At<String>>,
    /// Which cells: `all` (the default), `first`, or selections such as `backend=genie,quant=w4a16`. One after the other, in the order of the matrix.
    pub cells: Option<List<String>>,
    /// Pause before each cell's soak, for instance `5m`, so that the second does not begin with the heat of the first (default none).
    pub cool_down: Option<At<String>>,
    /// Temperatures that end a soak at once and safely, by part of the device, for instance `{ skin = "48C", npu = "95C" }`. Two readings in a
    /// row count, and a device without a zone for a part that is named here is not soaked.
    pub trip: Option<Trip>,
    /// What telemetry keeps of a soak: `changes`, once a second at most (the default), or `all` samples, which fill a disk in hours.
    pub telemetry: Option<Keep>,
}

/// Temperatures in whole or decimal degrees, for instance `48C`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Trip {
    /// The compute DSP.
    pub npu: Option<At<String>>,
    /// The CPU's cores.
    pub cpu: Option<At<String>>,
    /// The GPU.
    pub gpu: Option<At<String>>,
    /// The memory.
    pub ddr: Option<At<String>>,
    /// Case or glass.
    pub skin: Option<At<String>>,
    /// The battery.
    pub battery: Option<At<String>>,
    /// The modem.
    pub modem: Option<At<String>>,
    /// Power management.
    pub pmic: Option<At<String>>,
}

/// What telemetry keeps of a soak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Keep {
    /// Values that changed, once a second at most, and the smallest, largest and mean one of each window.
    Changes,
    /// Every sample.
    All,
}
