//! Phones and boards for the verbs: where the adb servers are, and the devices that a scenario means.

use bench_backend_api::DeviceFacts;

use super::exit::{Code, Failed};
use crate::{
    device::{
        Device,
        adb::{
            Adb, Address, Facts, Options,
            select::{self, Seen, SelectError, Survey},
        },
    },
    scenario::{DeviceChoice, Soc, find_soc},
};

/// Where the adb servers are.
#[derive(Debug, Clone, clap::Args)]
pub struct Servers {
    /// Host of the adb server (default: as for adb, `ADB_SERVER_SOCKET`, else this computer)
    #[arg(short = 'H', long = "adb-host", value_name = "HOST")]
    host: Option<String>,
    /// Port of the adb server (default: 5037)
    #[arg(short = 'P', long = "adb-port", value_name = "PORT")]
    port: Option<u16>,
    /// A further adb server, tcp:HOST:PORT or localfilesystem:PATH; may be given several times
    #[arg(long = "adb-server", value_name = "ADDRESS")]
    further: Vec<Address>,
}

impl Servers {
    /// Their addresses, each once.
    pub fn addresses(&self) -> anyhow::Result<Vec<Address>> {
        let first = Address::find(self.host.as_deref(), self.port, |name| std::env::var(name).ok());
        let mut all = vec![first.map_err(|e| super::usage(e.to_string()))?];
        for address in &self.further {
            if !all.contains(address) {
                all.push(address.clone());
            }
        }
        Ok(all)
    }

    /// Everything that the servers know.
    pub async fn survey(&self) -> anyhow::Result<Survey> {
        Ok(select::survey(&self.addresses()?).await)
    }

    /// The devices that a scenario means, each asked what it is.
    pub async fn open(&self, choice: &DeviceChoice) -> anyhow::Result<Vec<Adb>> {
        let survey = self.survey().await?;
        if !choice.serial.is_empty() {
            let mut devices = Vec::new();
            for seen in survey.by_serial(&choice.serial).await.map_err(unavailable)? {
                let adb = open(seen).await.map_err(unavailable)?;
                let (soc_model, htp_arch) = chip(choice, adb.said()).map_err(|words| failed(format!("{}: {words}", adb.facts().name)))?;
                devices.push(adb.with_chip(soc_model, htp_arch));
            }
            return Ok(devices);
        }
        let mut matching = Vec::new();
        let mut others = Vec::new();
        for seen in survey.usable().map_err(unavailable)? {
            let serial = seen.listed.serial.clone();
            match open(seen).await {
                Ok(adb) => match chip(choice, adb.said()) {
                    Ok((soc_model, htp_arch)) => matching.push((serial, adb.with_chip(soc_model, htp_arch))),
                    Err(words) => others.push(format!("{serial}: {words}")),
                },
                Err(e) => others.push(format!("{serial}: {e}")),
            }
        }
        if matching.is_empty() {
            return Err(failed(format!("no device matches [device]:\n  {}", others.join("\n  "))));
        }
        select::one(matching, choice.all).map_err(unavailable)
    }
}

async fn open(seen: Seen) -> Result<Adb, SelectError> {
    Ok(Adb::open(seen.server, &seen.listed.serial, Options::default()).await?)
}

fn failed(message: String) -> anyhow::Error {
    Failed { code: Code::Unavailable, message }.into()
}

fn unavailable(error: SelectError) -> anyhow::Error {
    failed(error.to_string())
}

/// The catalogue's entry of what a device says it is.
pub fn identified(said: &Facts) -> Option<&'static Soc> {
    said.soc.as_ref().and_then(|known| find_soc(&known.value))
}

/// QNN's number and Hexagon architecture of a device: what the scenario states, if the device does not contradict it; else what the
/// catalogue has for what the device says; else 0, which every NPU backend refuses in its own words.
fn chip(choice: &DeviceChoice, said: &Facts) -> Result<(u32, u32), String> {
    let found = identified(said);
    if let Some(found) = found
        && !choice.soc.is_empty()
        && !found.soc.eq_ignore_ascii_case(&choice.soc)
    {
        return Err(format!("it says that it is {} ({}), the scenario is for {}", found.soc, found.name, choice.soc));
    }
    // A device that does not say what it is has to be named.
    if found.is_none() && !choice.soc.is_empty() && choice.serial.is_empty() {
        let says = said.soc.as_ref().map_or("nothing about its chip", |k| k.value.as_str());
        if !says.eq_ignore_ascii_case(&choice.soc) {
            return Err(format!("it says {says}, the scenario is for {}; name it with `serial` to measure it all the same", choice.soc));
        }
    }
    let pick = |stated: u32, known: Option<u32>| if stated == 0 { known.unwrap_or(0) } else { stated };
    Ok((pick(choice.soc_model, found.map(|s| s.soc_model)), pick(choice.htp_arch, found.map(|s| s.htp_arch))))
}

/// The choice of exactly this device, for its run's own plan.
pub fn chosen(facts: &DeviceFacts, said: &Facts, choice: &DeviceChoice) -> DeviceChoice {
    let soc = if choice.soc.is_empty() { identified(said).map(|s| s.soc.clone()).unwrap_or_default() } else { choice.soc.clone() };
    DeviceChoice { local: false, serial: vec![facts.name.clone()], all: false, soc, soc_model: facts.soc_model, htp_arch: facts.htp_arch }
}
