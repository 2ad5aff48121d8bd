//! `[pin]`: what the scenario sets on the device for the time of the run. How things were is written down on the device before anything is changed;
//! everything is read back, and put back at the end, by whoever comes to the device next, or by a guard on it (`device/keep.rs`).

use std::time::Duration;

use crate::{
    device::{
        Answer, Device, DeviceError,
        keep::{Keep, Was, command},
        pins::{self, PinKind},
    },
    results::pinned::Pinned,
    scenario::Pin,
};

/// Longest time for one command: a `settings` of Android's starts a virtual machine.
const LIMIT: Duration = Duration::from_secs(20);
/// The pin of the measured program itself.
const TASK_PROFILE: &str = "task-profile";

/// What is pinned.
#[derive(Debug, Default)]
pub struct Pins {
    /// Every pin and how it went.
    pub pinned: Vec<Pinned>,
    /// Where it is written down, if something is to be put back.
    keep: Option<Keep>,
}

async fn sh<D: Device>(device: &D, script: String) -> Result<Answer, DeviceError> {
    match device.ask(&["sh".to_owned(), "-c".to_owned(), script], LIMIT).await {
        // Slow or not answering: an answer like any other refusal.
        Err(DeviceError::Slow { limit, .. }) => {
            let stderr = format!("no answer within {} s", limit.as_secs()).into_bytes();
            Ok(Answer { code: None, stdout: Vec::new(), stderr })
        }
        other => other,
    }
}

/// A value as a device prints it: one short line.
fn value(said: &Answer) -> Result<String, String> {
    let text = said.text();
    let text = text.trim();
    if !said.ok() {
        return Err(format!("can't be read: {}", said.words()));
    }
    if text.lines().count() > 1 || text.len() > 200 || text.chars().any(char::is_control) {
        let first: String = text.lines().next().unwrap_or_default().chars().filter(|c| !c.is_control()).take(80).collect();
        return Err(format!("can't be read: the device says {first:?}, which is no value"));
    }
    Ok(text.to_owned())
}

/// Sets everything that the device allows; `warn` is told what it does not.
///
/// # Errors
/// The device is lost, or out of reach.
pub async fn hold<D: Device>(device: &D, wanted: &[Pin], warn: &(dyn Fn(String) + Sync)) -> Result<Pins, DeviceError> {
    let mut pins = Pins::default();
    let mut was = Vec::new();
    for pin in wanted.iter().filter(|p| p.name != TASK_PROFILE) {
        let Some(kind) = pins::find(&pin.name) else {
            pins.pinned.push(refused(pin, "", "this bench does not know it"));
            continue;
        };
        if kind.cuts_network && device.facts().name.contains(':') {
            pins.pinned.push(refused(pin, "", "it would cut off a device that is reached over the network"));
            continue;
        }
        for instance in instances(device, kind).await? {
            let Some(instance) = instance else {
                pins.pinned.push(refused(pin, "", "this device does not have it"));
                continue;
            };
            let before = match &kind.read {
                None => Ok(None),
                Some(read) => value(&sh(device, command(read, "", &instance)).await?).map(Some),
            };
            match before {
                Err(why) => pins.pinned.push(refused(pin, &instance, &why)),
                Ok(before) => {
                    pins.pinned.push(Pinned { before: before.clone(), instance: instance.clone(), ..of(pin) });
                    was.push(Was { kind, instance, value: before });
                }
            }
        }
    }
    if !was.is_empty() {
        pins.write_down(device, &was).await?;
        for state in &was {
            pins.set(device, state).await?;
        }
    }
    pins.complain(warn);
    Ok(pins)
}

fn of(pin: &Pin) -> Pinned {
    Pinned { name: pin.name.clone(), asked: pin.value.clone(), ..Pinned::default() }
}

fn refused(pin: &Pin, instance: &str, why: &str) -> Pinned {
    Pinned { instance: instance.to_owned(), refused: Some(why.to_owned()), ..of(pin) }
}

/// The instances of a pin: one without a name, or each path of its pattern; `None` where there is none.
async fn instances<D: Device>(device: &D, kind: &PinKind) -> Result<Vec<Option<String>>, DeviceError> {
    let Some(each) = &kind.each else { return Ok(vec![Some(String::new())]) };
    let said = sh(device, format!("for d in {each}; do [ -e \"$d\" ] && printf '%s\\n' \"$d\"; done; true")).await?;
    let found: Vec<_> = said.text().lines().filter(|l| l.starts_with('/')).map(|l| Some(l.to_owned())).collect();
    Ok(if found.is_empty() { vec![None] } else { found })
}

impl Pins {
    /// Says what was refused, once for all instances of a pin.
    fn complain(&self, warn: &(dyn Fn(String) + Sync)) {
        let refused = || self.pinned.iter().filter(|p| p.refused.is_some());
        for (i, pin) in refused().enumerate().filter(|(i, p)| !refused().take(*i).any(|before| before.name == p.name)) {
            let others = refused().skip(i + 1).filter(|p| p.name == pin.name).count();
            let place = match (pin.instance.as_str(), others) {
                ("", _) => String::new(),
                (instance, 0) => format!(" of {instance}"),
                (instance, n) => format!(" of {instance} and {n} others"),
            };
            let why = pin.refused.as_deref().unwrap_or_default();
            warn(format!("{}{place} is not pinned to {}: {why}; the rows say so", pin.name, pin.asked));
        }
    }

    /// How things are, onto the device and before anything is changed; then the guard.
    async fn write_down<D: Device>(&mut self, device: &D, was: &[Was]) -> Result<(), DeviceError> {
        let Some(keep) = device.keep() else {
            self.give_up("this device keeps nothing of bench's");
            return Ok(());
        };
        let said = sh(device, keep.write(was)).await?;
        if !said.ok() {
            self.give_up(&format!("how it was can't be written down on the device: {}", said.words()));
            return Ok(());
        }
        sh(device, keep.guard()).await?;
        self.keep = Some(keep);
        Ok(())
    }

    fn give_up(&mut self, why: &str) {
        for pin in self.pinned.iter_mut().filter(|p| p.refused.is_none()) {
            pin.refused = Some(why.to_owned());
        }
    }

    /// Sets one and reads it back.
    async fn set<D: Device>(&mut self, device: &D, was: &Was) -> Result<(), DeviceError> {
        let ours = |p: &&mut Pinned| p.name == was.kind.name && p.instance == was.instance && p.refused.is_none();
        let Some(pin) = self.pinned.iter_mut().find(ours) else { return Ok(()) };
        let said = sh(device, command(&was.kind.set, &pin.asked, &was.instance)).await?;
        let Some(read) = &was.kind.read else {
            // Nothing but its own words tells.
            pin.refused = (!said.ok()).then(|| said.words());
            return Ok(());
        };
        match value(&sh(device, command(read, "", &was.instance)).await?) {
            Ok(found) => {
                if found != pin.asked {
                    let words = if said.ok() { String::new() } else { format!(": {}", said.words()) };
                    pin.refused = Some(format!("the device has {found:?} instead{words}"));
                }
                pin.found = Some(found);
            }
            Err(why) => pin.refused = Some(why),
        }
        Ok(())
    }

    /// Keeps the guard from acting, for ever.
    pub async fn beat<D: Device>(&self, device: &D) {
        let Some(keep) = &self.keep else { return std::future::pending().await };
        loop {
            tokio::time::sleep(keep.limit / 5).await;
            // A device that is away is the guard's business.
            let _ = sh(device, keep.beat()).await;
        }
    }

    /// Puts everything back; `warn` is told what could not be.
    pub async fn release<D: Device>(self, device: &D, warn: &(dyn Fn(String) + Sync)) {
        let Some(keep) = self.keep else { return };
        let why = match device.put_back().await {
            Ok(back) => back.failed,
            Err(e) => Some(e.to_string()),
        };
        if let Some(why) = why {
            let minutes = keep.limit.as_secs().div_ceil(60);
            warn(format!(
                "what was pinned could not be put back ({why}): the device tries it by itself after {minutes} min, and bench when it next comes to it; \
                 `bench devices clean` does it now"
            ));
        }
    }
}

/// The task profile that the measured programs get.
pub fn task_profile(wanted: &[Pin]) -> Option<&str> {
    wanted.iter().find(|p| p.name == TASK_PROFILE).map(|p| p.value.as_str())
}
