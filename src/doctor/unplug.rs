//! Whether a run survives a real unplug (rule R18): a small command is started under the agent, the user unplugs the device and plugs it in again, and
//! what is left is looked at. On some phones adbd stops with the cable, and Android's init then ends every process that it started.

use std::{collections::BTreeMap, path::Path, time::Duration};

use bench_agent::spec::Spec;
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};

use crate::{
    device::{Device, DeviceError, adb::Adb},
    doctor::Said,
};

/// How long the user may take for each of the two steps.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Until the device is gone.
    pub vanish: Duration,
    /// Until it is back.
    pub come_back: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { vanish: Duration::from_mins(2), come_back: Duration::from_mins(2) }
    }
}

/// A device answers this question in milliseconds; a cable that is out says nothing for ever.
const PING: Duration = Duration::from_secs(2);
/// The command leaves this file in its folder when it begins.
const STARTED: &str = "started";
/// Sending the agent and starting it takes seconds.
const START: Duration = Duration::from_mins(1);
/// After the device is back, the agent is asked for within this time.
const SETTLE: Duration = Duration::from_secs(15);

/// Carries the test out. `say` asks the user for each step; `folder` is a folder of this machine for the evidence.
///
/// # Errors
/// The command could not be started, for a reason that has nothing to do with the cable.
pub async fn survives(device: &Adb, folder: &Path, patience: Patience, say: &(dyn Fn(&str) + Sync)) -> Result<Said, DeviceError> {
    let work = device.work_folder("doctor-unplug").await?;
    let said = tried(device, &spec(device, &work, folder, patience), patience, say).await;
    device.remove(&work).await;
    said
}

/// A command that does nothing for longer than the test may take.
fn spec(device: &Adb, work: &str, folder: &Path, patience: Patience) -> Spec {
    let seconds = (patience.vanish + patience.come_back + 3 * SETTLE).as_secs();
    let shell = if device.said().android.is_some() { "/system/bin/sh" } else { "/bin/sh" };
    Spec {
        v: 1,
        argv: vec![shell.to_owned(), "-c".to_owned(), format!("touch {STARTED} && sleep {seconds}")],
        env: BTreeMap::from([("PATH".to_owned(), "/system/bin:/usr/bin:/bin".to_owned())]),
        cwd: work.to_owned(),
        stdin: None,
        out_dir: folder.display().to_string(),
        timeout_ms: (seconds + 60) * 1000,
        grace_ms: 1000,
        rate_hz: 0.0,
        max_output_bytes: 1 << 16,
        watch: Vec::new(),
        phase_file: None,
        compact_ms: 0,
        window_ms: 0,
        trip: Vec::new(),
        load: None,
    }
}

async fn tried(device: &Adb, spec: &Spec, patience: Patience, say: &(dyn Fn(&str) + Sync)) -> Result<Said, DeviceError> {
    let (stop, cancel) = watch::channel(false);
    let run = device.run(spec, cancel);
    tokio::pin!(run);
    // A run that ends before its time tells by itself.
    let not_done = tokio::select! {
        ended = &mut run => return early(ended.map(|_| ())),
        words = cable(device, &spec.cwd, patience, say) => words,
    };
    if not_done.is_none()
        && let Ok(ended) = timeout(SETTLE, &mut run).await
    {
        return early(ended.map(|_| ()));
    }
    // It still runs. That its agent carries out a request shows that it lives.
    let _ = stop.send(true);
    let ended = timeout(SETTLE, &mut run).await;
    match (not_done, ended) {
        (Some(words), _) => Ok(Said::note(words)),
        (None, Ok(Ok(_))) => Ok(Said::ok("the agent and its command went on while the cable was out")),
        (None, Ok(Err(e))) => early(Err(e)),
        (None, Err(_)) => Ok(Said::note("the device came back, and did not tell in time whether the agent lives")),
    }
}

/// The run ended although nobody wanted it to.
fn early(ended: Result<(), DeviceError>) -> Result<Said, DeviceError> {
    match ended {
        Err(e) if e.is_device() => Ok(Said::warning(
            format!("what ran was ended with the connection: {e}"),
            "leave the cable in while this device measures, or measure over Wi-Fi (`adb tcpip 5555`, then `adb connect`); a lost cable costs the launch that runs",
        )),
        Err(e) => Err(e),
        Ok(()) => Ok(Said::note("the command ended by itself, and nothing was learnt")),
    }
}

/// Waits for the command to run, then for the device to go and to come back; words if one of them did not happen.
async fn cable(device: &Adb, work: &str, patience: Patience, say: &(dyn Fn(&str) + Sync)) -> Option<String> {
    // What is not yet started can't be ended: a cable that is out too early would prove nothing.
    let mark = format!("{work}/{STARTED}");
    let end = Instant::now() + START;
    while !matches!(device.remote().stat(&mark).await, Ok(Some(_))) {
        if Instant::now() >= end {
            return Some(format!("the command did not begin within {} s: nothing was learnt", START.as_secs()));
        }
        sleep(Duration::from_millis(100)).await;
    }
    say("unplug the device now (over Wi-Fi: switch its Wi-Fi off)");
    if !until(device, false, patience.vanish).await {
        return Some(format!("the device was not unplugged within {} s: nothing was learnt", patience.vanish.as_secs()));
    }
    say("it is gone; plug it in again");
    if !until(device, true, patience.come_back).await {
        return Some(format!("the device did not come back within {} s: nothing was learnt", patience.come_back.as_secs()));
    }
    say("it is back; looking for the agent");
    None
}

async fn until(device: &Adb, there: bool, limit: Duration) -> bool {
    let end = Instant::now() + limit;
    loop {
        let answers = matches!(timeout(PING, device.remote().sh("asking whether it is there", "true")).await, Ok(Ok(_)));
        if answers == there {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        sleep(Duration::from_millis(200)).await;
    }
}
