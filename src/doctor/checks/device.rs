//! A device by itself.

use std::path::PathBuf;

use bench_backend_api::{DeviceClass, DeviceFacts, tool::has_hexagon};

use crate::{
    device::{
        Identified,
        adb::{
            Facts,
            facts::{Reading, ThermalStatus},
            shell::quote,
        },
    },
    doctor::{Check, Said, Severity, ask::Asked},
};

/// The agent built for a device, or the way to one.
pub type Agent = Result<PathBuf, String>;

/// The check of the agent, also for a device that is not there.
pub const AGENT: Check<Agent> = Check { id: "agent", why: "the agent starts and watches everything that is measured", of: agent };

/// What is known of a device.
#[derive(Debug, Clone)]
pub struct Phone {
    /// What backends know of it; its name is the serial.
    pub device: DeviceFacts,
    /// What it says about itself.
    pub facts: Facts,
    /// Its chip.
    pub chip: Identified,
    /// What only the doctor asks.
    pub asked: Asked,
    /// The agent built for it, or the way to one.
    pub agent: Agent,
    /// Our runners for it, by name, and whether they are built.
    pub runners: Vec<(String, bool)>,
}

impl Phone {
    fn adb(&self, command: &str) -> String {
        format!("adb -s {} {command}", quote(&self.device.name))
    }
}

/// Charge in percent under which phones save power.
const LOW_BATTERY: u32 = 20;
/// A battery this warm, in degrees Celsius, makes phones lower their clocks.
const WARM_BATTERY: f64 = 40.0;
/// A screen that goes off sooner than this, in ms, does so in the middle of a cell.
const SHORT_SCREEN_MS: u64 = 600_000;
/// Genie uses what only the system images of this Android version have (qualcomm/ai-hub-apps#56).
const GENIE_ANDROID: u32 = 15;

/// The list.
pub static CHECKS: &[Check<Phone>] = &[
    Check { id: "chip", why: "libraries and models are built for one chip", of: chip },
    Check { id: "class", why: "figures of an emulated NPU are never a phone's", of: class },
    Check { id: "android", why: "the vendor's part of the system image decides what the NPU can do", of: android },
    Check { id: AGENT.id, why: AGENT.why, of: |phone| agent(&phone.agent) },
    Check { id: "work-root", why: "models, libraries and evidence go there", of: work_root },
    Check { id: "runners", why: "without our runners the vendors' programs are used, which time no single tokens", of: runners },
    Check { id: "fastrpc", why: "every call of the NPU goes through this node", of: fastrpc },
    Check { id: "unsigned-pd", why: "your SDK's skel libraries are not signed by the phone's vendor", of: unsigned },
    Check { id: "dsp-library", why: "QNN and Genie reach the compute DSP through it", of: dsp_library },
    Check { id: "dsp-firmware", why: "a firmware of another version changes figures, and old ones refuse new libraries", of: firmware },
    Check { id: "selinux", why: "SELinux can refuse the DSP to a program that may open its node", of: selinux },
    Check { id: "battery", why: "a phone with little charge saves power", of: battery },
    Check { id: "heat", why: "a warm phone lowers its clocks", of: heat },
    Check { id: "clocks", why: "a cap or a saving governor is measured instead of the chip", of: clocks },
    Check { id: "battery-saver", why: "it lowers clocks and stops what runs in the background", of: saver },
    Check { id: "screen", why: "with the screen off an unplugged phone suspends, and the CPU may get another cpuset", of: screen },
    Check { id: "pins", why: "what a killed bench has set would be measured as the device's own state", of: pins },
    Check { id: "radios", why: "radios wake the CPU in the middle of a measurement", of: radios },
];

fn chip(phone: &Phone) -> Vec<Said> {
    let chip = &phone.chip;
    let state = "state `soc` (or `soc-model` and `hexagon`) in [device] of the scenario";
    let mut said: Vec<Said> = chip.findings.iter().map(|words| Said::warning(words, state)).collect();
    if let Some(why) = &chip.no_llm {
        said.push(Said::warning(why, "measure its CPU and GPU, or take another device"));
    }
    if let (Some(part), Some(arch)) = (&chip.part, chip.htp_arch) {
        let name = chip.name.as_ref().map(|n| format!(", {n}")).unwrap_or_default();
        let number = chip.soc_model.map(|n| format!(", soc_model {n}")).unwrap_or_default();
        let vtcm = chip.vtcm_mb.map(|mb| format!(", {mb} MB VTCM")).unwrap_or_default();
        said.push(Said::ok(format!("{part} (by {}){name}: Hexagon v{arch}{number}{vtcm}", chip.source.unwrap_or("nobody"))));
    }
    said
}

fn class(phone: &Phone) -> Vec<Said> {
    match phone.device.class {
        DeviceClass::Emulator => {
            let own = || format!("programs of it are {}", phone.device.arch);
            let why = phone.facts.virtual_machine.as_ref().map_or_else(own, |says| format!("it says {says}"));
            vec![Said::note(format!("{why}: an emulator, not a phone"))]
        }
        other => vec![Said::ok(format!("{other}, {}", phone.device.arch))],
    }
}

fn android(phone: &Phone) -> Vec<Said> {
    let Some(version) = &phone.facts.android else { return Vec::new() };
    let number = version.split('.').next().and_then(|n| n.parse::<u32>().ok());
    vec![match number {
        Some(n) if n < GENIE_ANDROID => Said::warning(
            format!(
                "Android {version}: Genie needs what the vendors' images of Android {GENIE_ANDROID} have, older ones work on some phones only"
            ),
            "update the phone; the other backends are not concerned",
        ),
        _ => Said::ok(format!("Android {version}")),
    }]
}

fn agent(agent: &Agent) -> Vec<Said> {
    vec![match agent {
        Ok(path) => Said::ok(path.display().to_string()),
        Err(words) => Said { severity: Severity::Error, what: words.clone(), fix: None },
    }]
}

fn runners(phone: &Phone) -> Vec<Said> {
    let missing: Vec<&str> = phone.runners.iter().filter(|(_, there)| !there).map(|(name, _)| name.as_str()).collect();
    match missing.as_slice() {
        [] if phone.runners.is_empty() => Vec::new(),
        [] => vec![Said::ok(phone.runners.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", "))],
        _ => vec![Said::warning(format!("not built: {}", missing.join(", ")), "bench runtimes build --ndk DIR")],
    }
}

fn work_root(phone: &Phone) -> Vec<Said> {
    let fix = || {
        phone.adb("shell ls -ldZ /data/local/tmp/bench")
            + " tells the owner; what an adbd with root has made, it alone removes: adb root, then rm -rf it"
    };
    match phone.asked.unwritable.as_slice() {
        [] => vec![Said::ok("this user can write there")],
        folders => folders.iter().map(|words| Said::error(format!("no file can be made in {words}"), fix())).collect(),
    }
}

fn fastrpc(phone: &Phone) -> Vec<Said> {
    let dsp = &phone.facts.dsp;
    if !has_hexagon(&phone.device) {
        return Vec::new();
    }
    let nodes = dsp.nodes.iter().map(|(path, node)| match node {
        Reading::Value(node) => {
            let may = if node.may.is_empty() { "nothing" } else { &node.may };
            format!("{path} {} {}:{}, this user may {may}", node.mode, node.owner, node.group)
        }
        Reading::Denied(words) | Reading::Absent(words) => format!("{path}: {words}"),
    });
    let words = nodes.collect::<Vec<_>>().join("; ");
    vec![if dsp.reachable() {
        Said::ok(words)
    } else if dsp.nodes.is_empty() {
        Said::error(
            "no FastRPC node: the NPU can't be reached",
            "a board needs the fastrpc driver and a compute DSP that is up; on a phone try another system image",
        )
    } else {
        Said::error(
            words,
            "this user may not open it: `adb root` where the build allows it; on a production phone the vendor does not let the shell use the NPU",
        )
    }]
}

/// Nodes named `-secure` are for programs that the vendor has signed for.
fn unsigned(phone: &Phone) -> Vec<Said> {
    let may = |secure: bool| {
        let open = |(path, node): (&String, &Reading<_>)| -> bool {
            let node: &Reading<crate::device::adb::facts::Access> = node;
            path.ends_with("-secure") == secure && node.value().is_some_and(|n| n.may == "rw")
        };
        phone.facts.dsp.nodes.iter().any(open)
    };
    match (may(false), may(true)) {
        (true, _) if has_hexagon(&phone.device) => {
            vec![Said::ok("the node for unsigned processes is open; whether the DSP takes one, only a run tells")]
        }
        (false, true) if has_hexagon(&phone.device) => vec![Said::warning(
            "only a node for signed processes is open",
            "sign the skel libraries with the vendor's tools, or take a phone whose plain node is open",
        )],
        _ => Vec::new(),
    }
}

fn dsp_library(phone: &Phone) -> Vec<Said> {
    match &phone.facts.dsp.library {
        _ if !has_hexagon(&phone.device) => Vec::new(),
        Reading::Value(access) if access.may.contains('r') => vec![Said::ok("libcdsprpc.so can be read")],
        Reading::Value(_) => vec![Said::warning("libcdsprpc.so can't be read by this user", "adb root, where the build allows it")],
        Reading::Denied(words) | Reading::Absent(words) => {
            vec![Said::warning(words, "without libcdsprpc.so of the vendor the NPU can't be reached; boards: install the fastrpc package")]
        }
    }
}

fn firmware(phone: &Phone) -> Vec<Said> {
    match &phone.facts.dsp.firmware {
        _ if !has_hexagon(&phone.device) => Vec::new(),
        Reading::Value(known) => vec![Said::ok(format!("{} (by {})", known.value, known.source))],
        Reading::Denied(words) => vec![Said::note(format!("denied: {words}"))],
        Reading::Absent(words) => vec![Said::note(format!("not told: {words}"))],
    }
}

fn selinux(phone: &Phone) -> Vec<Said> {
    let mode = phone.facts.selinux.as_deref().unwrap_or("not told");
    let refusals = &phone.asked.refusals;
    if refusals.is_empty() {
        return vec![Said::ok(format!("{mode}; no refusal on the way to the DSP in the log"))];
    }
    refusals.iter().map(|r| Said::warning(format!("{mode}; in the log: {}", r.line), &r.hint)).collect()
}

fn battery(phone: &Phone) -> Vec<Said> {
    let Some(battery) = &phone.facts.battery else { return vec![Said::ok("none: a board")] };
    let status = battery.status.as_deref().unwrap_or("status not told");
    let level = battery.level_percent.map_or("charge not told".to_owned(), |p| format!("{p} %"));
    let words = format!("{level}, {status}");
    if battery.level_percent.is_some_and(|p| p < LOW_BATTERY) {
        return vec![Said::warning(words, format!("charge it to {LOW_BATTERY} % and more"))];
    }
    if status == "Charging" {
        return vec![Said::note(format!("{words}: charging warms the phone, and its power is not the load's; wait until it is full"))];
    }
    vec![Said::ok(words)]
}

fn heat(phone: &Phone) -> Vec<Said> {
    let wait = "let it cool down: out of its case, screen off, not charging";
    let mut said = Vec::new();
    match phone.facts.thermal {
        Some(ThermalStatus::None) => said.push(Said::ok("Android does nothing against heat")),
        Some(ThermalStatus::Light) => said.push(Said::note("thermal status light")),
        Some(status) => said.push(Said::warning(format!("thermal status {status:?}").to_lowercase(), wait)),
        None => said.push(Said::note("the device does not tell its thermal status")),
    }
    if let Some(c) = phone.facts.battery.as_ref().and_then(|b| b.temperature_c).filter(|c| *c >= WARM_BATTERY) {
        said.push(Said::warning(format!("battery at {c:.0} C"), wait));
    }
    said
}

fn clocks(phone: &Phone) -> Vec<Said> {
    let capped: Vec<String> = phone
        .facts
        .cpu
        .iter()
        .filter(|p| p.capped())
        .map(|p| format!("{} {} of {} MHz", p.name, p.max_khz.unwrap_or(0) / 1000, p.hardware_max_khz.unwrap_or(0) / 1000))
        .collect();
    let saving = phone.facts.cpu.iter().find(|p| p.governor.as_deref() == Some("powersave"));
    let mut said = Vec::new();
    if !capped.is_empty() {
        said.push(Said::warning(
            format!("capped: {}", capped.join(", ")),
            "let it cool down, and switch off power modes and the battery saver; the caps are kept in the manifest",
        ));
    }
    if let Some(policy) = saving {
        said.push(Said::warning(format!("{} has the governor powersave", policy.name), "switch off power modes"));
    }
    if said.is_empty() && !phone.facts.cpu.is_empty() {
        let governors: std::collections::BTreeSet<&str> = phone.facts.cpu.iter().filter_map(|p| p.governor.as_deref()).collect();
        said.push(Said::ok(format!("no cap; governor {}", governors.into_iter().collect::<Vec<_>>().join(", "))));
    }
    said
}

fn saver(phone: &Phone) -> Vec<Said> {
    match phone.facts.battery_saver {
        Some(true) => vec![Said::warning("on", phone.adb("shell settings put global low_power 0"))],
        Some(false) => vec![Said::ok("off")],
        None => Vec::new(),
    }
}

fn screen(phone: &Phone) -> Vec<Said> {
    let screen = &phone.facts.screen;
    let stays = screen.stay_on_while_plugged_in.is_some_and(|bits| bits > 0);
    match (screen.on(), screen.timeout_ms) {
        (_, None) if !stays => Vec::new(),
        _ if stays => vec![Said::ok("stays on while plugged in")],
        (on, Some(ms)) if ms < SHORT_SCREEN_MS || on == Some(false) => {
            let now = if on == Some(false) { "off now, " } else { "" };
            vec![Said::warning(format!("{now}goes off after {} s", ms / 1000), phone.adb("shell svc power stayon true"))]
        }
        _ => vec![Said::ok("stays on long enough")],
    }
}

fn pins(phone: &Phone) -> Vec<Said> {
    vec![match &phone.asked.pinned {
        None => Said::ok("nothing that a bench has changed is left to be put back"),
        Some(what) => Said::warning(
            format!("a bench has changed the device and not put it back yet: {what}"),
            "wait if one is measuring; else `bench devices clean` puts it back now, and the next run or a guard on the device does",
        ),
    }]
}

fn radios(phone: &Phone) -> Vec<Said> {
    match phone.facts.airplane {
        Some(true) => vec![Said::ok("airplane mode is on")],
        Some(false) => {
            vec![Said::note(
                "airplane mode is off; for figures of power and of single tokens switch it on (Wi-Fi too, unless adb goes over it)",
            )]
        }
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
