//! What a run does so that power can be measured (rules R15, R16): the idle baseline before the first launch, the pulses that an external meter's
//! clock is found by, the meter's own program, and the cable, which a hub or the user takes away for as long as a launch lasts.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Seek, SeekFrom},
    path::{Path, PathBuf},
    process::Stdio,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use bench_agent::spec::{Done, Spec, VERSION};
use bench_backend_api::DeviceFacts;
use tokio::{process, sync::Notify, time::sleep};

use super::{capture::REMOTE_PATH, events::Event, launch::StepTimes};
use crate::{
    device::{Away, Cancel, Device, DeviceError},
    results::power::{METER, METER_END},
    scenario::{MeterSource, Plan, Power},
};

/// How long a device that lost its cable may take to say `Discharging`, and a user to pull it, in s, if the scenario says nothing else.
const HUB_S: u64 = 60;
const HAND_S: u64 = 600;
/// A user who is asked to pull it has done so within this time, most of the times, in s.
const PULL_S: u64 = 30;
/// A hub's command answers within this time.
const COMMAND: Duration = Duration::from_secs(30);
/// Added to how long the cell's last launch took: the wait for the battery's status, and a slower launch.
const SLACK: Duration = Duration::from_secs(20);
/// A meter's program gets this long to begin before the first pulse.
const METER_STARTS: Duration = Duration::from_secs(3);
/// Idle time beside the baseline's own, in s: a gauge still shows what was before.
pub(super) const LEAD_S: u64 = 5;
/// Pulses of load in s, busy and then idle, uneven so that they fit in one place only: before the first launch, and others after the last one (the
/// one pattern correlates with the other by less than 0.5 wherever it is laid).
const PULSES: [(u32, u32); 3] = [(3, 2), (1, 3), (2, 2)];
const LAST_PULSES: [(u32, u32); 4] = [(1, 1), (2, 1), (1, 1), (1, 2)];

/// How long a plan's device may be away at a time, its cable cut or pulled.
pub fn absence(plan: &Plan) -> Duration {
    match &plan.power {
        Some(power) if power.on_battery || !power.usb_off.is_empty() => {
            // A launch may idle before it measures.
            let baseline = Duration::from_millis(power.baseline_ms) + Duration::from_secs(LEAD_S);
            Duration::from_millis(plan.measure.timeout_ms) + baseline + Duration::from_secs(2 * wait_s(power, power.on_battery))
        }
        _ => Duration::ZERO,
    }
}

/// How long the battery may take to discharge once the cable is cut, or the user was asked to pull it.
fn wait_s(power: &Power, by_hand: bool) -> u64 {
    power.wait_ms.map_or(if by_hand { HAND_S } else { HUB_S }, |ms| ms.div_ceil(1000))
}

/// The cable while something runs.
#[derive(Clone, Copy)]
pub struct Cable<'a> {
    power: &'a Power,
    /// The user pulls it, since no hub does.
    by_hand: bool,
    /// How long a step of a launch has taken before, by its name.
    last: Option<&'a StepTimes>,
    /// What is asked beside a usual launch: the length of a soak, idle time.
    more: Duration,
    /// The launch's time-out, with that.
    timeout: Duration,
    say: &'a (dyn Fn(&Event) + Sync),
}

impl<'a> Cable<'a> {
    /// The cable for one launch; `None` where it stays, or where it was pulled for the whole run.
    pub fn of<D: Device>(
        device: &D,
        power: Option<&'a Power>,
        (last, more): (Option<&'a StepTimes>, Duration),
        timeout: Duration,
        say: &'a (dyn Fn(&Event) + Sync),
    ) -> Option<Self> {
        let power = power?;
        let by_hand = power.on_battery && device.cabled();
        (by_hand || !power.usb_off.is_empty()).then_some(Self { power, by_hand, last, more, timeout, say })
    }

    /// How long it is away for a step.
    fn away(&self, step: &str) -> Duration {
        let known = self.last.and_then(|times| times.get(step)).map(|took| took.mul_f64(1.1) + SLACK + self.more);
        known.or(self.power.away_ms.map(|ms| Duration::from_millis(ms) + self.more)).unwrap_or(self.timeout)
    }

    async fn take(&self, away: Duration) {
        if self.by_hand {
            let about = humantime::format_duration(Duration::from_secs(away.as_secs()));
            let text = format!(
                "unplug the device now: the launch begins when its battery discharges; plug it in again {about} later, or when asked to"
            );
            (self.say)(&Event::Ask { text });
        } else {
            self.command(&self.power.usb_off, "usb-off").await;
        }
    }

    async fn give(&self) {
        if self.by_hand {
            (self.say)(&Event::Ask { text: "plug the device in again".to_owned() });
        } else {
            self.command(&self.power.usb_on, "usb-on").await;
        }
    }

    async fn command(&self, argv: &[String], key: &str) {
        let Some((program, arguments)) = argv.split_first() else { return };
        let mut command = process::Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let text = match tokio::time::timeout(COMMAND, command.output()).await {
            Ok(Ok(said)) if said.status.success() => return,
            Ok(Ok(said)) => {
                let words = String::from_utf8_lossy(&said.stderr);
                format!("`{key}` failed ({}): {}", said.status, words.trim().chars().take(300).collect::<String>())
            }
            Ok(Err(e)) => format!("`{key}` can't be run: {program}: {e}"),
            Err(_) => format!("`{key}` did not end within {}", humantime::format_duration(COMMAND)),
        };
        (self.say)(&Event::Warning { text });
    }
}

/// Runs a spec; with a cable, away from it: the command waits on the device until its battery discharges, the host waits as long as the run may
/// last, and the cable is back afterwards however the run ends.
pub async fn run<D: Device>(device: &D, spec: &Spec, step: &str, cancel: Cancel, cable: Option<Cable<'_>>) -> Result<Done, DeviceError> {
    let Some(cable) = cable else { return device.run(spec, cancel).await };
    let spec = waiting(spec, device.facts(), wait_s(cable.power, cable.by_hand));
    let started = Notify::new();
    let absence = Duration::from_millis(spec.timeout_ms.saturating_add(spec.grace_ms));
    let away = Duration::from_secs(if cable.by_hand { PULL_S } else { 0 }) + cable.away(step);
    let taken = AtomicBool::new(false);
    let mut stop = cancel.clone();
    let running = device.run_away(&spec, cancel, Away { started: &started, absence });
    tokio::pin!(running);
    let result = {
        let pulled = async {
            started.notified().await;
            taken.store(true, Ordering::Relaxed);
            cable.take(cable.away(step)).await;
            // Who wants to stop needs the device to end what runs there.
            tokio::select! {
                () = sleep(away) => {}
                Ok(_) = stop.wait_for(|stop| *stop) => {}
            }
            cable.give().await;
            taken.store(false, Ordering::Relaxed);
        };
        tokio::select! {
            result = &mut running => Some(result),
            () = pulled => None,
        }
    };
    match result {
        None => running.await,
        Some(result) => {
            // Over before it was expected to be: the way to the device is not the cable.
            if taken.load(Ordering::Relaxed) {
                cable.give().await;
            }
            result
        }
    }
}

/// The shell of a device.
fn shell(facts: &DeviceFacts) -> String {
    if facts.os == "android" { "/system/bin/sh" } else { "/bin/sh" }.to_owned()
}

/// Succeeds when a battery discharges, or when none says anything; fails when the time is over. Half a second a look.
fn until_discharging(seconds: u64) -> String {
    format!(
        "discharging() {{ n=0; while [ $n -lt {} ]; do seen=; for f in /sys/class/power_supply/*/status; do s=; read -r s <\"$f\" 2>/dev/null && seen=1; \
         [ \"$s\" = Discharging ] && return 0; done; [ -n \"$seen\" ] || return 0; sleep 0.5; n=$((n+1)); done; return 1; }}",
        seconds * 2
    )
}

/// The same command, begun when the battery discharges; it begins late rather than never, and the status in its telemetry then says why it has no
/// power.
fn waiting(spec: &Spec, facts: &DeviceFacts, seconds: u64) -> Spec {
    let mut spec = spec.clone();
    let script = format!("{}; discharging; exec \"$@\"", until_discharging(seconds));
    let argv = std::mem::take(&mut spec.argv);
    spec.argv = [shell(facts), "-c".to_owned(), script, "bench".to_owned()].into_iter().chain(argv).collect();
    spec.timeout_ms = spec.timeout_ms.saturating_add(seconds * 1000 + 5000);
    spec
}

/// The part of a session that looks after power.
pub struct Begun {
    meter: Option<process::Child>,
    /// Bytes that the meter's file had before the run: its program may have been writing for days.
    before: u64,
    name: String,
    dir: PathBuf,
}

/// Before the first launch: waits for the battery where the user pulls the cable once, starts the meter's program, gives the pulses, measures the idle
/// baseline. What goes wrong is said, and costs figures of power alone.
pub async fn begin<D: Device>(
    device: &D,
    power: &Power,
    (name, dir): (&str, &Path),
    rate_hz: f64,
    cancel: Cancel,
    say: &(dyn Fn(&Event) + Sync),
) -> Result<Begun, DeviceError> {
    let before = match &power.meter {
        Some(MeterSource::File(path)) => fs::metadata(path).map_or(0, |m| m.len()),
        _ => 0,
    };
    let mut begun = Begun { meter: None, before, name: name.to_owned(), dir: dir.to_path_buf() };
    let warn = |text: String| say(&Event::Warning { text });
    let _ = fs::remove_dir_all(dir);
    if let Err(e) = fs::create_dir_all(dir) {
        warn(format!("no baseline: {}: {e}", dir.display()));
        return Ok(begun);
    }
    if power.on_battery && !device.cabled() {
        say(&Event::Ask { text: "unplug the device now; the run begins when its battery discharges".to_owned() });
        let wait = wait_s(power, true);
        let script = format!("{}; discharging", until_discharging(wait));
        let done = step(device, &format!("{name}-wait"), &dir.join("wait"), script, wait, 0.0, cancel.clone(), None).await?;
        if done.ended.code != Some(0) && !*cancel.borrow() {
            warn(format!("the device is still on external power after {wait} s: there will be no figures of power"));
        }
    }
    if let Some(MeterSource::Command(argv)) = &power.meter {
        match meter(argv, dir) {
            Ok(child) => {
                begun.meter = Some(child);
                sleep(METER_STARTS).await;
            }
            Err(e) => warn(format!("the meter's program can't be started: {}: {e}", argv.first().map_or("", String::as_str))),
        }
    }
    let idle_s = if power.baseline_ms > 0 { power.baseline_ms.div_ceil(1000) + LEAD_S } else { 0 };
    let pulses = if power.meter.is_some() { pulses(&PULSES) } else { String::new() };
    if (idle_s == 0 && pulses.is_empty()) || *cancel.borrow() {
        return Ok(begun);
    }
    let what = "the idle baseline of power".to_owned();
    say(&Event::Preparing { what: what.clone() });
    let limit_s = idle_s + longest_s(&PULSES);
    let away = StepTimes::from([(BASELINE.to_owned(), Duration::from_secs(limit_s))]);
    let cable = Cable::of(device, Some(power), (Some(&away), Duration::ZERO), Duration::from_secs(limit_s), say);
    let script = format!("{pulses}sleep {idle_s}");
    let clock = std::time::Instant::now();
    let done = step(device, &format!("{name}-baseline"), dir, script, limit_s, rate_hz, cancel.clone(), cable).await?;
    if done.ended.code == Some(0) {
        say(&Event::Prepared { what, seconds: clock.elapsed().as_secs_f64(), cached: false });
    } else if !*cancel.borrow() {
        warn(format!("the idle baseline ended with {:?}: net joules may be absent", done.ended));
    }
    Ok(begun)
}

const BASELINE: &str = "baseline";
/// What the meter's program writes to its standard error.
const METER_WORDS: &str = "meter.err";

/// How long a script of pulses may take on a device that is busy, in s.
fn longest_s(pulses: &[(u32, u32)]) -> u64 {
    2 * pulses.iter().map(|(busy, idle)| u64::from(busy + idle)).sum::<u64>() + 30
}

impl Begun {
    /// After the last launch: gives the pulses that tell how fast the meter's clock runs, ends its program, or keeps a copy of what its file has got
    /// since the run began. The tables are made of what is in the run folder. Without the pulses (`cancel`, a cable that is pulled by hand) the clock's
    /// speed is not known.
    pub async fn end<D: Device>(self, device: &D, power: &Power, cancel: Cancel, say: &(dyn Fn(&Event) + Sync)) {
        let Self { meter, before, name, dir } = self;
        let warn = |text: String| say(&Event::Warning { text });
        let by_hand = power.on_battery && device.cabled();
        if power.meter.is_some() && !by_hand && !*cancel.borrow() {
            let limit_s = longest_s(&LAST_PULSES);
            let away = StepTimes::from([(BASELINE.to_owned(), Duration::from_secs(limit_s))]);
            let cable = Cable::of(device, Some(power), (Some(&away), Duration::ZERO), Duration::from_secs(limit_s), say);
            let (name, out) = (format!("{name}-end"), dir.join(METER_END));
            if let Err(e) = step(device, &name, &out, pulses(&LAST_PULSES), limit_s, 0.0, cancel, cable).await {
                warn(format!("no pulses for the meter after the last launch: {e}"));
            }
        }
        if let Some(mut child) = meter {
            if let Ok(Some(status)) = child.try_wait() {
                let words = fs::read_to_string(dir.join(METER_WORDS)).unwrap_or_default();
                let last = words.lines().next_back().unwrap_or_default().chars().take(300).collect::<String>();
                warn(format!("the meter's program ended before the run did ({status}): {last}"));
            }
            #[cfg(unix)]
            if let Some(pid) = child.id().and_then(|pid| i32::try_from(pid).ok()) {
                let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGTERM);
            }
            if tokio::time::timeout(Duration::from_secs(5), child.wait()).await.is_err() {
                let _ = child.kill().await;
            }
        }
        if let Some(MeterSource::File(path)) = &power.meter
            && let Err(e) = keep(Path::new(path), before, &dir.join(METER))
        {
            warn(format!("the meter's file can't be read: {path}: {e}"));
        }
    }
}

/// Copies the whole lines that a file has got since it had so many bytes; all of a file that was begun anew.
fn keep(from: &Path, before: u64, to: &Path) -> std::io::Result<()> {
    let mut file = fs::File::open(from)?;
    if before > 0 && file.metadata()?.len() >= before {
        // From the byte before on: what follows the next end of a line is whole.
        file.seek(SeekFrom::Start(before - 1))?;
        let mut file = BufReader::new(file);
        file.skip_until(b'\n')?;
        std::io::copy(&mut file, &mut fs::File::create(to)?)?;
    } else {
        std::io::copy(&mut file, &mut fs::File::create(to)?)?;
    }
    Ok(())
}

fn meter(argv: &[String], dir: &Path) -> std::io::Result<process::Child> {
    let (program, arguments) = argv.split_first().ok_or(std::io::ErrorKind::NotFound)?;
    let out = fs::File::create(dir.join(METER))?;
    let words = fs::File::create(dir.join(METER_WORDS))?;
    process::Command::new(program).args(arguments).stdin(Stdio::null()).stdout(out).stderr(words).kill_on_drop(true).spawn()
}

/// A script of pulses: each says when it began and ended by /proc/uptime, whose reading is its load.
fn pulses(all: &[(u32, u32)]) -> String {
    let function = String::from(
        "busy() { read -r t r </proc/uptime; echo begin $t; e=$((${t%.*}+$1)); f=${t#*.}; \
         while read -r t r </proc/uptime; do [ ${t%.*} -gt $e ] && break; [ ${t%.*} -eq $e ] && [ ${t#*.} -ge $f ] && break; done; echo end $t; }; sleep 3; ",
    );
    let pulses: Vec<String> = all.iter().map(|(busy, idle)| format!("busy {busy}; sleep {idle}; ")).collect();
    format!("{function}{}", pulses.concat())
}

/// Runs a script of bench's own on the device, with its evidence in a folder of the run.
#[expect(clippy::too_many_arguments, reason = "each is another thing")]
async fn step<D: Device>(
    device: &D,
    name: &str,
    out: &Path,
    script: String,
    limit_s: u64,
    rate_hz: f64,
    cancel: Cancel,
    cable: Option<Cable<'_>>,
) -> Result<Done, DeviceError> {
    let facts = device.facts();
    let work = device.work_folder(name).await?;
    let path = if facts.remote { REMOTE_PATH.to_owned() } else { std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned()) };
    let spec = Spec {
        v: VERSION,
        argv: vec![shell(facts), "-c".to_owned(), script],
        env: BTreeMap::from([("PATH".to_owned(), path)]),
        cwd: work.clone(),
        stdin: None,
        out_dir: out.to_string_lossy().into_owned(),
        timeout_ms: limit_s * 1000 + 30_000,
        grace_ms: 2000,
        rate_hz,
        max_output_bytes: 1 << 20,
        watch: Vec::new(),
        phase_file: None,
        trip: Vec::new(),
        load: None,
        window_ms: 0,
        compact_ms: 0,
    };
    let done = run(device, &spec, BASELINE, cancel, cable).await;
    device.remove(&work).await;
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, arguments: &[&str]) -> std::process::Output {
        std::process::Command::new("sh").args(["-c", script, "bench"]).args(arguments).output().unwrap()
    }

    #[test]
    fn pulses_say_when_they_were() {
        let text = pulses(&PULSES);
        // The shortest alone, without its pauses.
        let function = text.split("sleep 3;").next().unwrap();
        let said = sh(&format!("{function} busy 1"), &[]);
        let words = String::from_utf8(said.stdout).unwrap();
        let at = |word: &str| words.lines().find_map(|l| l.strip_prefix(word)?.trim().parse::<f64>().ok()).unwrap();
        let took = at("end") - at("begin");
        assert!((1.0..30.0).contains(&took), "{words}");
    }

    #[test]
    fn of_a_meters_file_what_the_run_saw_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("all.csv"), dir.path().join("kept.csv"));
        let kept = |before: u64| {
            keep(&from, before, &to).unwrap();
            fs::read_to_string(&to).unwrap()
        };
        fs::write(&from, "t_s,w\n1,2\n2,3\n3,4\n").unwrap();
        // None before; up to the end of a line; up to the middle of one; a file that was begun anew.
        assert_eq!([kept(0), kept(10), kept(11), kept(999)], ["t_s,w\n1,2\n2,3\n3,4\n", "2,3\n3,4\n", "3,4\n", "t_s,w\n1,2\n2,3\n3,4\n"]);
        assert_eq!(kept(18), "");
    }

    #[test]
    fn a_command_keeps_its_words_while_it_waits() {
        let spec: Spec = serde_json::from_str(
            r#"{"v":1,"argv":["printf","%s|","a b","$HOME",""],"env":{},"cwd":"/","out_dir":"/tmp/x","timeout_ms":1000,"grace_ms":1,"rate_hz":10,"max_output_bytes":1}"#,
        )
        .unwrap();
        let facts: DeviceFacts = crate::device::local_facts(57, 75);
        let waits = waiting(&spec, &facts, 0);
        assert_eq!((waits.argv[0].as_str(), waits.timeout_ms), ("/bin/sh", 6000));
        let out = std::process::Command::new(&waits.argv[0]).args(&waits.argv[1..]).output().unwrap();
        assert_eq!(String::from_utf8(out.stdout).unwrap(), "a b|$HOME||");
    }
}
