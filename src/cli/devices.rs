//! `bench devices`: every device on every adb server; `bench devices clean`: what is staged on them is given back.

use std::{fs, time::Duration};

use clap::Subcommand;
use serde_json::json;
use tokio::task::JoinSet;

use super::{
    Format, adb,
    console::printable,
    exit::{Code, Failed},
    run::lock_file,
    runtimes::cache,
};
use crate::{
    device::{
        Device,
        adb::{
            Adb, AdbError, Address, Options,
            select::{self, Seen},
        },
    },
    runtimes::Cache,
    scenario::DeviceChoice,
};

/// Lists the devices on every adb server
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    servers: adb::Servers,
    /// How the list is printed
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Removes what bench has staged on devices, and says how many bytes that gives back
    Clean(Clean),
}

#[derive(Debug, clap::Args)]
struct Clean {
    /// Serials
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    serial: Vec<String>,
    /// Every usable device
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    servers: adb::Servers,
}

pub fn main(args: &Args) -> anyhow::Result<Code> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    match &args.verb {
        Some(Verb::Clean(args)) => runtime.block_on(clean(args)),
        None => {
            let look = runtime.block_on(look(&args.servers))?;
            match args.format {
                Format::Human => super::say(&human(&look))?,
                Format::Json => super::print(&format!("{}\n", serde_json::to_string_pretty(&machine(&look))?))?,
            }
            Ok(if look.devices.iter().any(|row| row.opened.is_ok()) { Code::Done } else { Code::Unavailable })
        }
    }
}

/// A device that hangs keeps its state `device`: after this long it is told so, and the list goes on.
const LIMIT: Duration = Duration::from_secs(25);

/// A device and what it says.
pub struct Row {
    /// As its server lists it.
    pub seen: Seen,
    /// The device, or why it can't be used.
    pub opened: Result<Box<Adb>, Unusable>,
}

/// Why a device can't be used.
pub struct Unusable {
    /// Why.
    pub reason: String,
    /// What to do about it.
    pub remedy: String,
}

/// What all servers and all devices say.
pub struct Look {
    /// Devices in the order of the servers.
    pub devices: Vec<Row>,
    /// Servers that do not answer.
    pub errors: Vec<(Address, AdbError)>,
}

/// Asks all servers at once, then all devices at once: none of them holds up the others.
pub async fn look(servers: &adb::Servers) -> anyhow::Result<Look> {
    let mut surveys = JoinSet::new();
    for (place, address) in servers.addresses()?.into_iter().enumerate() {
        surveys.spawn(async move { (place, select::survey(&[address]).await) });
    }
    let (mut look, mut seen) = (Look { devices: Vec::new(), errors: Vec::new() }, Vec::new());
    for survey in in_order(surveys).await {
        seen.extend(survey.devices);
        look.errors.extend(survey.errors);
    }
    let mut asked = JoinSet::new();
    for (place, seen) in seen.into_iter().enumerate() {
        asked.spawn(async move {
            let opened = open(&seen).await;
            (place, Row { seen, opened })
        });
    }
    look.devices = in_order(asked).await;
    Ok(look)
}

async fn in_order<T: 'static>(set: JoinSet<(usize, T)>) -> Vec<T> {
    let mut all = set.join_all().await;
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, one)| one).collect()
}

async fn open(seen: &Seen) -> Result<Box<Adb>, Unusable> {
    if let Some(remedy) = seen.listed.state.remedy() {
        return Err(Unusable { reason: seen.listed.state.to_string(), remedy: remedy.to_owned() });
    }
    let opened = tokio::time::timeout(LIMIT, Adb::open(seen.server.clone(), &seen.listed.serial, Options::default())).await;
    let reason = match opened {
        Ok(Ok(device)) => {
            let chip = adb::chip(&DeviceChoice::default(), device.said());
            return Ok(Box::new(device.with_chip(chip)));
        }
        Ok(Err(e)) => e.to_string(),
        Err(_) => format!("it does not answer within {} s", LIMIT.as_secs()),
    };
    Err(Unusable { reason, remedy: "unplug it and plug it in again, restart it if that does not help".to_owned() })
}

fn human(look: &Look) -> String {
    let mut lines = Vec::new();
    for row in &look.devices {
        let listed = &row.seen.listed;
        match &row.opened {
            Ok(device) => {
                let (said, chip, facts) = (device.said(), device.chip(), device.facts());
                let name = said.model.clone().unwrap_or_else(|| "model not told".to_owned());
                let part = match (&chip.part, chip.htp_arch) {
                    (Some(part), Some(arch)) => format!("{part} (Hexagon v{arch}, by {})", chip.source.unwrap_or("nobody")),
                    (Some(part), None) => format!("{part} (by {}), not in the catalogue", chip.source.unwrap_or("nobody")),
                    (None, _) => "chip not known".to_owned(),
                };
                let android = said.android.as_ref().map_or_else(|| facts.os.clone(), |v| format!("Android {v}"));
                let free =
                    said.storage_free_mb.map_or_else(|| "storage not told".to_owned(), |mb| format!("{:.1} GB free", mb as f64 / 1e3));
                let battery = said.battery.as_ref().and_then(|b| Some(format!(", battery {} %", b.level_percent?))).unwrap_or_default();
                lines.push(format!("{}  ready  {name}, {part}, {android}, {}, {free}{battery}", listed.serial, facts.class));
                lines.extend(chip.findings.iter().chain(&chip.no_llm).map(|words| format!("    note: {words}")));
            }
            Err(Unusable { reason, remedy }) => {
                lines.push(format!("{}  not usable: {reason}", listed.serial));
                lines.push(format!("    do: {remedy}"));
            }
        }
    }
    lines.extend(look.errors.iter().map(|(_, error)| format!("server not usable: {error}")));
    if look.devices.is_empty() {
        lines.push(
            "no device: switch on USB debugging and plug one in, or `adb connect HOST:PORT`; without a phone: tests/device/run".to_owned(),
        );
    }
    lines.iter().map(|line| printable(line) + "\n").collect()
}

fn machine(look: &Look) -> serde_json::Value {
    let row = |row: &Row| {
        let Seen { server, listed } = &row.seen;
        let mut value = json!({"server": server.address().to_string(), "serial": listed.serial, "state": listed.state.to_string(),
            "usable": row.opened.is_ok()});
        let more = match &row.opened {
            Ok(device) => {
                let (said, chip) = (device.said(), device.chip());
                json!({"model": said.model, "chip": chip.part, "chip_source": chip.source, "htp_arch": chip.htp_arch, "soc_model": chip.soc_model,
                    "android": said.android, "class": device.facts().class, "storage_free_mb": said.storage_free_mb,
                    "battery_percent": said.battery.as_ref().and_then(|b| b.level_percent),
                    "battery_status": said.battery.as_ref().and_then(|b| b.status.clone()),
                    "notes": chip.findings.iter().chain(&chip.no_llm).collect::<Vec<_>>()})
            }
            Err(Unusable { reason, remedy }) => json!({"reason": reason, "remedy": remedy}),
        };
        if let (Some(value), serde_json::Value::Object(more)) = (value.as_object_mut(), more) {
            value.extend(more);
        }
        value
    };
    let servers: Vec<_> = look.errors.iter().map(|(address, e)| json!({"address": address.to_string(), "error": e.to_string()})).collect();
    json!({"devices": look.devices.iter().map(row).collect::<Vec<_>>(), "servers_without_answer": servers})
}

async fn clean(args: &Clean) -> anyhow::Result<Code> {
    let cache = cache()?;
    let look = look(&args.servers).await?;
    let wanted = |row: &&Row| args.all || args.serial.contains(&row.seen.listed.serial);
    let mut refused: Vec<String> = args
        .serial
        .iter()
        .filter(|serial| look.devices.iter().all(|row| row.seen.listed.serial != **serial))
        .map(|serial| format!("{serial}: no such device; `bench devices` lists them"))
        .collect();
    let mut cleaned = 0;
    for row in look.devices.iter().filter(wanted) {
        let serial = &row.seen.listed.serial;
        let given = match &row.opened {
            Ok(device) => give_back(&cache, device).await,
            // With --all only the usable ones are meant.
            Err(_) if args.all => continue,
            Err(Unusable { reason, remedy }) => Err(format!("{reason}: {remedy}")),
        };
        match given {
            Ok(words) => {
                cleaned += 1;
                super::say(&printable(&format!("{serial}: {words}")))?;
                super::print("\n")?;
            }
            Err(words) => refused.push(format!("{serial}: {words}")),
        }
    }
    if refused.is_empty() && cleaned == 0 {
        refused.push("no usable device; `bench devices` says why".to_owned());
    }
    if refused.is_empty() {
        return Ok(Code::Done);
    }
    let message = refused.iter().map(|line| printable(line)).collect::<Vec<_>>().join("\n");
    Err(Failed { code: Code::Unavailable, message }.into())
}

/// Cleans a device on which nobody measures: neither a run of this computer nor one of another.
async fn give_back(cache: &Cache, device: &Adb) -> Result<String, String> {
    let path = lock_file(cache, device.remote().serial());
    fs::create_dir_all(&cache.0).map_err(|e| format!("{}: {e}", cache.0.display()))?;
    let lock = fs::File::create(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let busy = "a bench is measuring on it: nothing was removed";
    if lock.try_lock().is_err() || !device.try_lock().await.map_err(|e| e.to_string())? {
        return Err(busy.to_owned());
    }
    let cleaned = device.clean().await.map_err(|e| e.to_string())?;
    let back = device.put_back().await.map_err(|e| e.to_string())?;
    if let Some(why) = back.failed {
        return Err(format!("what an earlier bench had changed could not be put back: {why}"));
    }
    let files = crate::words::count(cleaned.files, "file");
    let changed = back.what.map(|what| format!("; put back: {what}")).unwrap_or_default();
    Ok(format!("{} bytes given back ({files}){changed}", cleaned.bytes))
}
