//! `bench doctor [SCENARIO]`: everything that a run will need, checked before it is needed.

mod gather;
mod observer;
mod print;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use bench_agent::spec::SourceReport;
use bench_backend_api::{Axis, Backend, DeviceFacts};
use serde_json::json;

use super::{
    Format, adb,
    devices::{self, Look, Row, Unusable},
    exit::Code,
    runtimes::cache,
};
use crate::{
    device::{
        DeviceError,
        adb::{Adb, Server, connect},
    },
    doctor::{Finding, Said, Severity, ask::Asked, checks, examine, unplug},
    registry,
    runtimes::{Cache, agent_for},
    scenario::{DeviceChoice, Roots, Scenario},
};
use gather::{Target, Wanted};

/// Checks everything that a run will need, on this computer and on the devices
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The scenario that is to run; without one this computer and every usable device are checked
    scenario: Option<PathBuf>,
    /// Also try whether a run survives it when the cable is unplugged: asks you to do so
    #[arg(long)]
    survive_unplug: bool,
    /// Also measure what the agent's sampling costs: half a minute for each device
    #[arg(long)]
    observer: bool,
    #[command(flatten)]
    servers: adb::Servers,
    /// How the findings are printed
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

pub fn main(args: &Args) -> anyhow::Result<Code> {
    let cache = cache()?;
    let scenario = args.scenario.as_deref().map(load).transpose()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let Examined { findings, sources, costs } = runtime.block_on(examined(&cache, args, scenario.as_ref()))?;
    match args.format {
        Format::Human => super::say(&print::human(&findings))?,
        Format::Json => {
            let count = |severity| findings.iter().filter(|f| f.severity == severity).count();
            let mut value = json!({"scenario": args.scenario, "errors": count(Severity::Error), "warnings": count(Severity::Warning), "findings": findings, "sources": sources});
            if args.observer {
                value["observer"] = json!(costs);
            }
            super::print(&format!("{}\n", serde_json::to_string_pretty(&value)?))?;
        }
    }
    let stops = findings.iter().any(|f| f.severity == Severity::Error);
    Ok(if stops { Code::Unavailable } else { Code::Done })
}

fn load(path: &Path) -> anyhow::Result<Scenario> {
    super::load(path).map_err(|problems| super::plan::invalid(&problems))
}

/// What each device lets its user see, by the device's name.
type Sources = BTreeMap<String, Vec<SourceReport>>;

/// All that was found out.
struct Examined {
    findings: Vec<Finding>,
    sources: Sources,
    costs: observer::Costs,
}

async fn examined(cache: &Cache, args: &Args, scenario: Option<&Scenario>) -> anyhow::Result<Examined> {
    let choice = scenario.map(|s| s.device.clone()).unwrap_or_default();
    let phones = scenario.is_none() || !choice.local;
    let look = if phones { look(args, &choice).await? } else { Look { devices: Vec::new(), errors: Vec::new() } };
    let mut findings = gather::host(cache, &args.servers, &look, phones).await?;
    findings.extend(scenario.iter().flat_map(|s| gather::warnings(s)));

    let mut targets = Vec::new();
    for device in chosen(look, &choice, scenario.is_some(), &mut findings) {
        match gather::asked(device).await {
            Ok(target) => targets.push(target),
            Err(finding) => findings.push(finding),
        }
    }
    if let (Some(scenario), true) = (scenario, targets.is_empty()) {
        let facts = super::plan::facts(&scenario.device);
        let soc = Some(choice.soc.clone()).filter(|s| !s.is_empty());
        let name =
            if phones { soc.as_ref().map_or("any device".to_owned(), |soc| format!("a device with {soc}")) } else { facts.name.clone() };
        targets.push(Target { facts: DeviceFacts { name, soc, ..facts }, device: None, asked: Asked::default() });
    }

    let mut sources = Sources::new();
    for target in &targets {
        findings.extend(gather::phone(cache, target));
        if let Some(observed) = gather::sources(cache, target).await {
            findings.extend(examine(checks::sources::CHECKS, &target.facts.name, &observed));
            sources.extend(observed.ok().map(|reports| (target.facts.name.clone(), reports)));
        }
        let own = side(cache, target, scenario);
        // Of the second side what is not as in the first.
        let second = scenario.and_then(|s| s.ab.as_deref()).map(|b| side(cache, target, Some(b))).unwrap_or_default();
        let second = second.into_iter().filter(|finding| !own.contains(finding));
        let second: Vec<Finding> = second.map(|finding| Finding { what: format!("side B: {}", finding.what), ..finding }).collect();
        findings.extend(own.into_iter().chain(second));
    }
    let mut costs = observer::Costs::new();
    if args.observer {
        findings.extend(observer::measure(cache, &mut targets, &mut costs).await);
    }
    if args.survive_unplug {
        findings.push(survive_unplug(cache, targets).await?);
    }
    Ok(Examined { findings, sources, costs })
}

/// The backends, files and cells of a scenario, or of one side of its A/B run, on a target; without one every backend there is.
fn side(cache: &Cache, target: &Target, scenario: Option<&Scenario>) -> Vec<Finding> {
    let own = scenario.map(|s| registry::commands(&s.commands)).unwrap_or_default();
    let all = registry::with(&own);
    let named = |backend: &&&dyn Backend| scenario.is_none_or(|s| s.matrix.backend.iter().any(|id| id == backend.id()));
    let wanted: Vec<&dyn Backend> = all.iter().filter(named).copied().collect();
    let asked = Wanted {
        by_name: scenario.is_some(),
        profile: scenario.is_some_and(|s| s.matrix.axes.contains_key(&Axis::PerfProfile)),
        roots: &scenario.map_or_else(Roots::default, |s| s.runtimes.clone()),
    };
    let installed = gather::backends(cache, target, &wanted, asked);
    let cells = scenario.map(|scenario| gather::cells(scenario, target, &all, &installed));
    gather::engines(&installed).into_iter().chain(cells.into_iter().flatten()).collect()
}

/// Devices on the network that a scenario names are connected to, as for a run.
async fn look(args: &Args, choice: &DeviceChoice) -> anyhow::Result<Look> {
    let look = devices::look(&args.servers).await?;
    let there = |serial: &String| look.devices.iter().any(|row| row.seen.listed.serial == *serial);
    let network = |serial: &&String| serial.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let absent: Vec<&String> = choice.serial.iter().filter(|serial| !there(serial)).filter(network).collect();
    if absent.is_empty() {
        return Ok(look);
    }
    if let Some(address) = args.servers.addresses()?.into_iter().next()
        && let Ok(server) = Server::reach(address).await
    {
        for serial in absent {
            // Whether it came to anything is seen in the list.
            let _ = connect::connect(&server, serial).await;
        }
    }
    devices::look(&args.servers).await
}

fn finding(check: &'static str, place: &str, why: &'static str, said: Said) -> Finding {
    Finding { check, place: place.to_owned(), severity: said.severity, what: said.what, why, fix: said.fix }
}

const WHY_DEVICE: &str = "it can't be measured before that";
const HOW_TO_GET_ONE: &str = "plug one in with USB debugging switched on, or `adb connect HOST:PORT`; name one with another chip word by `serial` in [device]; \
                              without a phone try tests/device/run";

/// The devices that are meant; of the others it is said why they are not.
fn chosen(look: Look, choice: &DeviceChoice, scenario: bool, findings: &mut Vec<Finding>) -> Vec<Adb> {
    let mut chosen = Vec::new();
    let mut unknown: Vec<&String> = choice.serial.iter().collect();
    for Row { seen, opened } in look.devices {
        let serial = &seen.listed.serial;
        unknown.retain(|wanted| *wanted != serial);
        let named = choice.serial.contains(serial);
        if !choice.serial.is_empty() && !named {
            continue;
        }
        match opened {
            Err(Unusable { reason, remedy }) => {
                let severity = if named { Severity::Error } else { Severity::Warning };
                findings.push(finding("device", serial, WHY_DEVICE, Said::with(severity, reason, remedy)));
            }
            Ok(device) => {
                let chip = adb::chip(choice, device.said());
                match adb::other_chip(choice, &chip) {
                    Some(words) if named => {
                        let fix = "take the device that the scenario is for, or files and a scenario for this one";
                        findings.push(finding("device", serial, "artifacts are built for one chip", Said::error(words, fix)));
                    }
                    Some(words) => findings.push(finding("device", serial, "artifacts are built for one chip", Said::note(words))),
                    None => chosen.push(device.with_chip(chip)),
                }
            }
        }
    }
    for serial in unknown {
        let fix = format!("adb connect {}", crate::device::adb::shell::quote(serial));
        findings.push(finding("device", serial, WHY_DEVICE, Said::error("no adb server knows it", fix)));
    }
    if chosen.is_empty() && choice.serial.is_empty() && !choice.local {
        let what = if choice.soc.is_empty() { "no usable device".to_owned() } else { format!("no usable device with {}", choice.soc) };
        let severity = if scenario { Severity::Error } else { Severity::Warning };
        findings.push(finding("device", "devices", "a phone or board is measured over adb", Said::with(severity, what, HOW_TO_GET_ONE)));
    }
    if scenario && chosen.len() > 1 && !choice.all && choice.serial.is_empty() {
        let what = format!("{} devices match", chosen.len());
        findings.push(finding(
            "device",
            "devices",
            "a run measures one unless told otherwise",
            Said::error(what, "name one by `serial` in [device], or say `all = true`"),
        ));
    }
    chosen
}

async fn survive_unplug(cache: &Cache, mut targets: Vec<Target>) -> anyhow::Result<Finding> {
    let (check, why) = ("survive-unplug", "a run needs no connection while it measures, if Android lets it live (rule R18)");
    let (Some(Target { facts, device: Some(device), .. }), true) = (targets.pop(), targets.is_empty()) else {
        return Ok(finding(check, "devices", why, Said::error("exactly one usable device is needed", "name one in a scenario's [device]")));
    };
    let said = match agent_for(cache, &facts) {
        Err(e) => Said::error(e.to_string(), "bench runtimes build"),
        Ok(agent) => {
            let device = device.with_agent(agent);
            let folder = cache.join("doctor");
            let tried = async {
                if !device.try_lock().await? {
                    return Ok(Said::note("a bench is measuring on it: not tried"));
                }
                unplug::survives(&device, &folder, unplug::Patience::default(), &super::note).await
            };
            let tried: Result<Said, DeviceError> = tried.await;
            let _ = std::fs::remove_dir_all(&folder);
            tried.unwrap_or_else(|e| Said::error(e.to_string(), "see the other findings about this device"))
        }
    };
    Ok(finding(check, &facts.name, why, said))
}
