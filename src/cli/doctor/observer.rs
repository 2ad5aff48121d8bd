//! `--observer`: what the agent's sampling costs, on every device that is there.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use super::{finding, gather::Target};
use crate::{
    cli::{note, run::lock_file},
    device::{
        DeviceError,
        adb::Adb,
        local::{LOCAL, Local},
    },
    doctor::{
        Finding, Said,
        observer::{Cost, cost},
    },
    runtimes::{Cache, agent_for},
};

/// What it costs, by the device's name.
pub type Costs = BTreeMap<String, Cost>;

const WHY: &str = "what is sampled beside a measurement must not slow it down (rule R21)";
const BUSY: &str = "a bench is measuring on it: not tried";

/// Measures on one device after the other.
pub async fn measure(cache: &Cache, targets: &mut [Target], costs: &mut Costs) -> Vec<Finding> {
    let mut findings = Vec::new();
    for target in targets.iter_mut().filter(|t| t.device.is_some() || !t.facts.remote) {
        let name = target.facts.name.clone();
        note(&format!("{name}: measuring what sampling costs, for half a minute"));
        let said = match on(cache, target).await {
            Ok(Some(cost)) => {
                let said = cost.said();
                costs.insert(name.clone(), cost);
                said
            }
            Ok(None) => Said::note(BUSY),
            Err(said) => said,
        };
        findings.push(finding("observer", &name, WHY, said));
    }
    if findings.is_empty() {
        let fix = "plug a device in, or name a scenario with `local = true` in [device]";
        findings.push(finding("observer", "devices", WHY, Said::error("no device to measure it on", fix)));
    }
    findings
}

/// `None` while another bench measures there.
async fn on(cache: &Cache, target: &mut Target) -> Result<Option<Cost>, Said> {
    let agent = agent_for(cache, &target.facts).map_err(|e| Said::error(e.to_string(), "bench runtimes build"))?;
    let folder = cache.join(&format!("doctor-observer-{}", std::process::id()));
    let cost = if let Some(device) = target.device.take() {
        let device = device.with_agent(agent);
        let cost = on_phone(&device, &folder).await;
        target.device = Some(device);
        cost
    } else {
        here(cache, agent, target, &folder).await
    };
    let _ = fs::remove_dir_all(&folder);
    cost.map_err(|e| Said::error(e.to_string(), "see the other findings about this device"))
}

async fn here(cache: &Cache, agent: PathBuf, target: &Target, folder: &Path) -> Result<Option<Cost>, DeviceError> {
    let path = lock_file(cache, LOCAL);
    let lock = fs::create_dir_all(&cache.0).and_then(|()| fs::File::create(&path)).map_err(DeviceError::io(&path))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => return Ok(None),
        Err(fs::TryLockError::Error(e)) => return Err(DeviceError::io(&path)(e)),
    }
    let device = Local::new(agent, cache.join("work"), target.facts.soc_model, target.facts.htp_arch).locked(lock);
    cost(&device, folder).await.map(Some)
}

/// Where no bench has been before, none of it is left.
async fn on_phone(device: &Adb, folder: &Path) -> Result<Option<Cost>, DeviceError> {
    let fresh = device.remote().stat(device.root()).await?.is_none();
    if !device.try_lock().await? {
        return Ok(None);
    }
    let cost = cost(device, folder).await;
    if fresh {
        device.remove_root().await?;
    }
    device.unlock().await;
    cost.map(Some)
}
