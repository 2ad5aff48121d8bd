//! Phones and boards for the verbs: where the adb servers are, and the devices that a scenario means.

use bench_backend_api::DeviceFacts;

use super::exit::{Code, Failed};
use crate::{
    device::{
        self, Device, Identified, Stated,
        adb::{
            Adb, Address, Facts, Options,
            select::{self, Seen, SelectError, Survey},
        },
        identify,
    },
    runtimes::Cache,
    scenario::{DeviceChoice, find_soc},
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
    /// How long a device that goes away during a run is waited for
    #[arg(long, value_name = "TIME", default_value = "5m")]
    reconnect: humantime::Duration,
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

    /// Asks every device what it is; all at once, since a phone takes some hundred milliseconds to answer and there may be many.
    async fn reach(&self, seen: Vec<Seen>) -> Vec<(String, Result<Adb, SelectError>)> {
        let digests = Cache::locate().map(|cache| cache.join("digests.jsonl"));
        let options = Options { reconnect: *self.reconnect, digests, ..Options::default() };
        let asked: Vec<_> = seen
            .into_iter()
            .map(|Seen { server, listed }| {
                let (serial, options) = (listed.serial.clone(), options.clone());
                (listed.serial, tokio::spawn(async move { Adb::open(server, &serial, options).await }))
            })
            .collect();
        let mut answers = Vec::new();
        for (serial, asked) in asked {
            let answer = asked.await.unwrap_or_else(|bug| std::panic::resume_unwind(bug.into_panic()));
            answers.push((serial, answer.map_err(SelectError::from)));
        }
        answers
    }

    /// The devices that a scenario means, each asked what it is.
    pub async fn open(&self, choice: &DeviceChoice) -> anyhow::Result<Vec<Adb>> {
        let survey = self.survey().await?;
        if !choice.serial.is_empty() {
            let mut devices = Vec::new();
            let seen = survey.by_serial(&choice.serial).await.map_err(unavailable)?;
            for (_, answer) in self.reach(seen).await {
                let adb = answer.map_err(unavailable)?;
                let chip = chip(choice, adb.said());
                if let Some(words) = other_chip(choice, &chip) {
                    return Err(failed(format!("{}: {words}", adb.facts().name)));
                }
                devices.push((adb.facts().name.clone(), adb.with_chip(chip)));
            }
            return Ok(each_once(devices).into_iter().map(|(_, device)| device).collect());
        }
        let mut matching = Vec::new();
        let mut others = Vec::new();
        for (serial, answer) in self.reach(survey.usable().map_err(unavailable)?).await {
            match answer {
                Ok(adb) => {
                    let chip = chip(choice, adb.said());
                    match other_chip(choice, &chip) {
                        None => matching.push((serial, adb.with_chip(chip))),
                        Some(words) => others.push(format!("{serial}: {words}")),
                    }
                }
                Err(e) => others.push(format!("{serial}: {e}")),
            }
        }
        if matching.is_empty() {
            return Err(failed(format!("no device matches [device]:\n  {}", others.join("\n  "))));
        }
        select::one(each_once(matching), choice.all).map_err(unavailable)
    }
}

/// The devices without those that are another one under another name: over USB and over Wi-Fi, or known to two servers. A boot of a kernel
/// has an id of its own; of a device that does not tell it nothing is known.
fn each_once(all: Vec<(String, Adb)>) -> Vec<(String, Adb)> {
    let mut kept: Vec<(String, Adb)> = Vec::new();
    for (serial, device) in all {
        let boot = device.said().boot_id.as_ref();
        match kept.iter().find(|(_, other)| boot.is_some() && other.said().boot_id.as_ref() == boot) {
            Some((known, other)) => {
                let at = |adb: &Adb| adb.remote().server().address().to_string();
                super::note(&format!("{serial} on {} is the same device as {known} on {}: it is measured once", at(&device), at(other)));
            }
            None => kept.push((serial, device)),
        }
    }
    kept
}

fn failed(message: String) -> anyhow::Error {
    Failed { code: Code::Unavailable, message }.into()
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err gives")]
fn unavailable(error: SelectError) -> anyhow::Error {
    failed(error.to_string())
}

/// The chip of a device: what it says, the catalogue and what the scenario states.
pub fn chip(choice: &DeviceChoice, said: &Facts) -> Identified {
    let stated = |n: u32| Some(n).filter(|n| *n > 0);
    let part = Some(choice.soc.clone()).filter(|s| !s.is_empty());
    identify(&said.chip, &Stated { part, soc_model: stated(choice.soc_model), htp_arch: stated(choice.htp_arch), vtcm_mb: choice.vtcm_mb })
}

/// Why a device is not the one that a scenario is for; `None` when it is. Artifacts are built for one chip.
pub fn other_chip(choice: &DeviceChoice, chip: &Identified) -> Option<String> {
    if choice.soc.is_empty() {
        return None;
    }
    let part = chip.part.as_deref().unwrap_or_default();
    let same = part.eq_ignore_ascii_case(&choice.soc) || find_soc(&choice.soc).is_some_and(|soc| soc.has_part(part));
    // A device that does not say what it is may be named by its serial.
    // A code name that several chips share is told by the scenario.
    let told = chip.source != Some(device::SCENARIO) || !chip.ambiguous.is_empty() || !choice.serial.is_empty();
    (!same || !told).then(|| {
        let says = if told { format!("its chip is {part}") } else { "it does not say its chip".to_owned() };
        format!("{says}, the scenario is for {}", choice.soc)
    })
}

/// The choice of exactly this device, for its run's own plan.
pub fn chosen(facts: &DeviceFacts, choice: &DeviceChoice) -> DeviceChoice {
    DeviceChoice {
        local: false,
        serial: vec![facts.name.clone()],
        all: false,
        soc: facts.soc.clone().unwrap_or_else(|| choice.soc.clone()),
        soc_model: facts.soc_model,
        htp_arch: facts.htp_arch,
        vtcm_mb: facts.vtcm_mb,
    }
}
