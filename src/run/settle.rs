//! Waiting until the device is in the state that the scenario asks for (rules R9, R19): a thin loop around `state` (what was seen) and `decide`
//! (whether that is it, and whether it is worth waiting).

mod decide;
mod state;

use std::{
    fs::File,
    io::Read,
    path::Path,
    time::{Duration, Instant},
};

use decide::{Decision, Lack, Look, decide};
pub use state::State;

use crate::{
    device::{Cancel, Device, DeviceError, Reading, readings},
    scenario::Settle,
};

/// Longest time for what Android's services say.
const SERVICES: Duration = Duration::from_secs(15);
/// Looks that are kept: trends need the last minutes only.
const KEPT: usize = 200;

/// How a wait ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Waited {
    /// Seconds.
    pub seconds: f64,
    /// Why it ended without the state; `None` when the device is ready.
    pub why: Option<String>,
    /// What was missing at the end, in words.
    pub lacks: Vec<String>,
    /// What was missing at some time.
    pub missed: Vec<String>,
    /// What was seen last.
    pub state: State,
}

/// Waits; `told` is called once, with what is missing, if the device is not ready at once. `None` when the user wants to stop.
///
/// # Errors
/// The device is lost. Any other trouble ends the wait without the state.
pub async fn wait<D: Device>(
    device: &D,
    wanted: &Settle,
    cancel: &Cancel,
    told: impl Fn(Vec<String>),
) -> Result<Option<Waited>, DeviceError> {
    let begun = Instant::now();
    let mut cancel = cancel.clone();
    let mut looks: Vec<Look> = Vec::new();
    let mut waited_for: Vec<String> = Vec::new();
    loop {
        if *cancel.borrow() {
            return Ok(None);
        }
        let state = match look(device, wanted).await {
            Ok(state) => state,
            Err(e) if e.is_lost() => return Err(e),
            Err(e) => {
                let (seconds, why) = (begun.elapsed().as_secs_f64(), Some(format!("it can't be looked at: {e}")));
                return Ok(Some(Waited { seconds, why, lacks: Vec::new(), missed: waited_for, state: State::default() }));
            }
        };
        looks.push(Look { at_s: begun.elapsed().as_secs_f64(), state });
        if looks.len() > KEPT {
            looks.remove(0);
        }
        let (lacks, why) = match decide(wanted, &looks) {
            Decision::Wait(lacks) => {
                if waited_for.is_empty() {
                    told(words(&lacks));
                }
                note(&mut waited_for, &lacks);
                tokio::select! {
                    () = tokio::time::sleep(Duration::from_millis(wanted.poll_ms)) => {}
                    Ok(_) = cancel.wait_for(|stop| *stop) => return Ok(None),
                }
                continue;
            }
            Decision::Ready => (Vec::new(), None),
            Decision::GiveUp(lacks, why) => (lacks, Some(why)),
        };
        note(&mut waited_for, &lacks);
        let seconds = looks.last().map_or(0.0, |l| l.at_s);
        let mut state = looks.pop().map(|l| l.state).unwrap_or_default();
        if !services(wanted) {
            // Nobody waited for it, the rows have it all the same.
            state = asked(device, state).await?;
        }
        return Ok(Some(Waited { seconds, why, lacks: words(&lacks), missed: waited_for, state }));
    }
}

fn words(lacks: &[Lack]) -> Vec<String> {
    lacks.iter().map(|l| l.words.clone()).collect()
}

fn note(waited_for: &mut Vec<String>, lacks: &[Lack]) {
    for lack in lacks {
        if !waited_for.contains(&lack.what) {
            waited_for.push(lack.what.clone());
        }
    }
}

/// Whether something is asked for that only Android's services tell. The battery is among it: some phones hide the gauge.
const fn services(wanted: &Settle) -> bool {
    wanted.screen.is_some() || wanted.contention || wanted.battery_pct.is_some() || wanted.charging.is_some()
}

async fn look<D: Device>(device: &D, wanted: &Settle) -> Result<State, DeviceError> {
    let soc = device.facts().soc.clone().unwrap_or_default();
    let state = State::read(&soc, &device.sense().await?);
    if services(wanted) { asked(device, state).await } else { Ok(state) }
}

/// Adds what Android's services say; a computer has none, and who uses it is its owner's business.
async fn asked<D: Device>(device: &D, state: State) -> Result<State, DeviceError> {
    if !device.facts().remote {
        return Ok(state);
    }
    let argv = ["sh", "-c", state::SCRIPT].map(str::to_owned);
    match device.ask(&argv, SERVICES).await {
        Ok(said) => Ok(state.asked(&said.text())),
        Err(e) if e.is_lost() => Err(e),
        Err(_) => Ok(state),
    }
}

/// The beginning of a launch as its own telemetry has it: the first value of everything within two seconds of the first row.
pub fn at_start(telemetry: &Path, soc: &str) -> State {
    const BEGIN: u64 = 1 << 20;
    const WITHIN_NS: u64 = 2_000_000_000;
    let mut bytes = Vec::new();
    let read = File::open(telemetry).and_then(|file| file.take(BEGIN).read_to_end(&mut bytes));
    let all = read.ok().and_then(|_| readings(&String::from_utf8_lossy(&bytes)).ok()).unwrap_or_default();
    let Some(begin) = all.iter().map(|r| r.t_ns).min() else { return State::default() };
    let mut first: Vec<Reading> = Vec::new();
    for reading in all.into_iter().filter(|r| r.t_ns <= begin.saturating_add(WITHIN_NS)) {
        if !first.iter().any(|f| f.source == reading.source && f.name == reading.name) {
            first.push(reading);
        }
    }
    State::read(soc, &first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::zones::Domain;

    #[test]
    fn a_launch_begins_with_its_first_rows() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("telemetry.csv");
        let rows = "t_ns,source,name,value,unit\n5000000000,thermal,skin-therm,31,C\n5000100000,thermal,nsp0,40,C\n6100000000,thermal,skin-therm,35,C\n\
                    7100000000,thermal,gpu,70,C\n6000000000,battery,battery/capacity,80,pct\n";
        std::fs::write(&path, rows).unwrap();
        let state = at_start(&path, "");
        assert_eq!((state.domains.get(&Domain::Skin), state.domains.get(&Domain::Npu)), (Some(&31.0), Some(&40.0)));
        assert_eq!((state.domains.get(&Domain::Gpu), state.battery_pct), (None, Some(80.0)), "over two seconds later is no start");
        assert_eq!(at_start(&dir.path().join("none"), ""), State::default());
    }
}
