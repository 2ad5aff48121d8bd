//! The HTP's own configuration, which qnn-net-run and Genie read through libQnnHtpNetRunExtensions.so: the chip, and the votes that
//! change times (rule R10).

use std::collections::BTreeMap;

use bench_backend_api::{DeviceFacts, tool::has_hexagon};
use serde_json::{Map, Value, json};

/// The words of `perf_profile`.
pub const PERF_PROFILES: [&str; 11] = [
    "low_balanced",
    "balanced",
    "default",
    "high_performance",
    "sustained_high_performance",
    "burst",
    "low_power_saver",
    "power_saver",
    "high_power_saver",
    "extreme_power_saver",
    "system_settings",
];

/// Latency of the CPU's own sleep states that is accepted during a profile, in us: the tool's default, said so that it is on record.
const RPC_CONTROL_LATENCY: u32 = 100;

/// How long the CPU polls for the end of a call before it sleeps, in us: the tool's default for the profiles in [`POLLING`].
const RPC_POLLING_TIME: u32 = 9999;
const POLLING: [&str; 3] = ["burst", "high_performance", "sustained_high_performance"];

/// What is asked of the CPU and the NPU with a performance profile: nothing without one.
fn votes(perf_profile: Option<&str>, device: &DeviceFacts) -> Map<String, Value> {
    let mut core = Map::new();
    let Some(profile) = perf_profile else { return core };
    core.insert("perf_profile".to_owned(), json!(profile));
    core.insert("rpc_control_latency".to_owned(), json!(RPC_CONTROL_LATENCY));
    // Only a call into another processor can be polled for.
    if device.remote && has_hexagon(device) && POLLING.contains(&profile) {
        core.insert("rpc_polling_time".to_owned(), json!(RPC_POLLING_TIME));
    }
    core
}

/// The `devices` of the configuration.
pub fn devices(perf_profile: Option<&str>, device: &DeviceFacts) -> Value {
    let mut entry = json!({"device_id": 0, "dsp_arch": format!("v{}", device.htp_arch)});
    if device.remote && device.soc_model > 0 {
        entry["soc_model"] = json!(device.soc_model);
    }
    let mut core = votes(perf_profile, device);
    if !core.is_empty() {
        core.insert("core_id".to_owned(), json!(0));
        entry["cores"] = json!([core]);
    }
    json!([entry])
}

/// The same as notes of a launch.
pub fn notes(perf_profile: Option<&str>, device: &DeviceFacts) -> BTreeMap<String, String> {
    let mut notes = BTreeMap::from([("perf_profile".to_owned(), perf_profile.unwrap_or("runtime-default").to_owned())]);
    for (key, value) in votes(perf_profile, device).into_iter().filter(|(key, _)| key != "perf_profile") {
        notes.insert(format!("{key}_us"), value.to_string());
    }
    notes
}
