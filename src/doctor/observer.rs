//! What the agent's sampling costs on this device (rule R21): one fixed piece of work, done again and again under the agent with sampling off and
//! on in turn, and how much longer it takes with it.

use std::{collections::BTreeMap, path::Path};

use bench_agent::{
    done::{Done, Reason},
    spec::Spec,
};
use serde::Serialize;
use tokio::sync::watch;

use crate::{
    device::{Device, DeviceError},
    doctor::Said,
    stats::{DEFAULT_SEED, interval, median},
};

/// The rate at which runs sample.
const RATE_HZ: f64 = 10.0;
/// Pairs of runs: from ten on there is a bootstrap interval of their median.
const PAIRS: usize = 10;
/// How long one piece of work should take, in seconds: in a short one the start and the end of sampling, which read each source once more, weigh too much.
const WORK_S: f64 = 2.0;
/// The work is counted on a run of at least this length, in seconds: a shell's start is no part of it.
const COUNTED_S: f64 = 0.25;
/// Turns of the loop that even a slow shell makes in a second, and more than the fastest makes in ten.
const TURNS: [u64; 2] = [50_000, 1 << 32];
/// What sampling may cost, in percent of the time and of a core (design: under 1 %).
const LIMIT_PCT: f64 = 1.0;

/// What sampling cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cost {
    /// Pairs of a run without and a run with sampling.
    pub pairs: usize,
    /// Rate of the sampling, in Hz.
    pub rate_hz: f64,
    /// Turns of the loop in a run.
    pub turns: u64,
    /// Durations without sampling, in seconds of the device's `CLOCK_MONOTONIC`.
    pub off_s: Vec<f64>,
    /// Durations with it, in seconds.
    pub on_s: Vec<f64>,
    /// Median of the pairs' ratios, with over without.
    pub ratio: f64,
    /// Lower end of its 95 % interval.
    pub ratio_lo: f64,
    /// Upper end of its 95 % interval.
    pub ratio_hi: f64,
    /// CPU time of the agent with sampling over the runs' duration, in percent of a core: its start, which runs of a second make much of, too (as they do of the slow sources' first round).
    pub agent_cpu_pct: f64,
    /// The same without sampling.
    pub agent_cpu_off_pct: f64,
    /// Rounds that the agent was late for, of all in the runs with sampling.
    pub overruns: u64,
    /// Rounds that it made.
    pub samples: u64,
}

/// One run of the work.
#[derive(Debug, Clone, Copy, Default)]
struct Ran {
    wall_s: f64,
    agent_cpu_s: f64,
    samples: u64,
    overruns: u64,
}

/// Measures it, in a work folder of the device that is gone afterwards; `folder` is one of this machine for the agent's evidence. Only for
/// whoever has the device to himself.
///
/// # Errors
/// The device is lost, has no room, or can't do the work.
pub async fn cost<D: Device>(device: &D, folder: &Path) -> Result<Cost, DeviceError> {
    let work = device.work_folder("doctor-observer").await?;
    let cost = measured(device, &work, folder).await;
    device.remove(&work).await;
    cost
}

async fn measured<D: Device>(device: &D, work: &str, folder: &Path) -> Result<Cost, DeviceError> {
    let turns = calibrated(device, work, folder).await?;
    let (mut off, mut on) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS {
        // Either is first in turn: what drifts (heat, clocks) favours neither.
        for sampling in [pair % 2 == 1, pair % 2 == 0] {
            let rate = if sampling { RATE_HZ } else { 0.0 };
            let ran = ran(device, &spec(device, work, folder, turns, rate)).await?;
            if sampling { &mut on } else { &mut off }.push(ran);
        }
    }
    of(turns, &off, &on).ok_or_else(|| DeviceError::Agent("the runs took no time: the device's clock stands".to_owned()))
}

/// How many turns take about [`WORK_S`].
async fn calibrated<D: Device>(device: &D, work: &str, folder: &Path) -> Result<u64, DeviceError> {
    let mut turns = TURNS[0];
    loop {
        let wall_s = ran(device, &spec(device, work, folder, turns, 0.0)).await?.wall_s;
        if wall_s >= COUNTED_S || turns >= TURNS[1] {
            return Ok(((turns as f64 * WORK_S / wall_s.max(1e-3)) as u64).max(1));
        }
        turns *= 2;
    }
}

/// A loop of the shell: every phone has one, it needs one core and no memory to speak of.
fn spec<D: Device>(device: &D, work: &str, folder: &Path, turns: u64, rate_hz: f64) -> Spec {
    let shell = if device.facts().os == "android" { "/system/bin/sh" } else { "/bin/sh" };
    let script = format!("i=0; while [ $i -lt {turns} ]; do i=$((i+1)); done");
    Spec {
        v: 1,
        argv: [shell, "-c", &script].map(str::to_owned).to_vec(),
        env: BTreeMap::new(),
        cwd: work.to_owned(),
        stdin: None,
        out_dir: folder.display().to_string(),
        timeout_ms: 60_000,
        grace_ms: 1000,
        rate_hz,
        max_output_bytes: 1 << 16,
        watch: Vec::new(),
        phase_file: None,
        compact_ms: 0,
        window_ms: 0,
        trip: Vec::new(),
        load: None,
    }
}

async fn ran<D: Device>(device: &D, spec: &Spec) -> Result<Ran, DeviceError> {
    let (_stop, cancel) = watch::channel(false);
    let done: Done = device.run(spec, cancel).await?;
    if done.ended.reason != Reason::Exited || done.ended.code != Some(0) {
        let said = serde_json::to_string(&done.ended).unwrap_or_default();
        return Err(DeviceError::Agent(format!("a loop of {} did not end well: {said}", spec.argv[0])));
    }
    Ok(Ran {
        wall_s: done.end_ns.saturating_sub(done.start_ns) as f64 / 1e9,
        agent_cpu_s: done.agent_cpu_s,
        samples: done.samples,
        overruns: done.overruns,
    })
}

/// The figures of runs in the order of their pairs; `None` if one took no time.
fn of(turns: u64, off: &[Ran], on: &[Ran]) -> Option<Cost> {
    let walls = |runs: &[Ran]| runs.iter().map(|r| r.wall_s).collect::<Vec<_>>();
    let cpu_pct = |runs: &[Ran]| {
        let all: f64 = walls(runs).iter().sum();
        100.0 * runs.iter().map(|r| r.agent_cpu_s).sum::<f64>() / all
    };
    // Two runs one after the other share the device's state: their ratio does without most of its drift.
    let ratios: Vec<f64> = on.iter().zip(off).map(|(on, off)| on.wall_s / off.wall_s).collect();
    let interval = interval(&ratios, DEFAULT_SEED)?;
    Some(Cost {
        pairs: ratios.len(),
        rate_hz: RATE_HZ,
        turns,
        off_s: walls(off),
        on_s: walls(on),
        ratio: median(&ratios)?,
        ratio_lo: interval.lo,
        ratio_hi: interval.hi,
        agent_cpu_pct: cpu_pct(on),
        agent_cpu_off_pct: cpu_pct(off),
        overruns: on.iter().map(|r| r.overruns).sum(),
        samples: on.iter().map(|r| r.samples).sum(),
    })
}

impl Cost {
    /// What of a core the sampling itself takes, in percent: without the agent's start and end, which every run has.
    pub fn sampling_cpu_pct(&self) -> f64 {
        self.agent_cpu_pct - self.agent_cpu_off_pct
    }

    /// In words, and whether it is too much.
    pub fn said(&self) -> Said {
        let words = format!(
            "with sampling at {} Hz a loop of {:.2} s takes {:.4} of its time (95 % interval {:.4} to {:.4}, {} pairs); sampling takes {:.2} % of a \
             core, and the agent's start and end {:.2} % of a run as short as that; {} of {} rounds were late",
            self.rate_hz,
            median(&self.off_s).unwrap_or_default(),
            self.ratio,
            self.ratio_lo,
            self.ratio_hi,
            self.pairs,
            self.sampling_cpu_pct(),
            self.agent_cpu_off_pct,
            self.overruns,
            self.samples + self.overruns
        );
        let (slow, fast) = (1.0 + LIMIT_PCT / 100.0, "set `rate` in [telemetry] lower, or to `0Hz` for what must not be disturbed");
        if self.ratio_lo > slow || self.sampling_cpu_pct() > LIMIT_PCT {
            Said::warning(format!("over {LIMIT_PCT} %: {words}"), fast)
        } else if self.ratio_hi > slow {
            Said::note(format!("{words}: this device varies too much to tell whether it costs over {LIMIT_PCT} %"))
        } else {
            Said::ok(words)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;

    fn runs(wall_s: f64, more: f64, agent_cpu_s: f64) -> Vec<Ran> {
        (0..10).map(|i| Ran { wall_s: wall_s + more * f64::from(i), agent_cpu_s, samples: 10, overruns: u64::from(i == 3) }).collect()
    }

    #[test]
    fn a_device_that_gets_slower_is_no_cost() {
        // Each pair takes 10 % longer than the one before; with sampling half a percent longer.
        let off = runs(1.0, 0.1, 0.01);
        let on: Vec<Ran> = off.iter().map(|r| Ran { wall_s: r.wall_s * 1.005, agent_cpu_s: 0.02, ..*r }).collect();
        let cost = of(7, &off, &on).unwrap();
        for figure in [cost.ratio, cost.ratio_lo, cost.ratio_hi] {
            assert!((figure - 1.005).abs() < 1e-12, "{figure}");
        }
        // 0.1 s in 14.5 s, and 0.2 s in 14.5725 s.
        assert!((cost.agent_cpu_off_pct - 0.689_655).abs() < 1e-5 && (cost.agent_cpu_pct - 1.372_448).abs() < 1e-5, "{cost:?}");
        assert_eq!((cost.pairs, cost.turns, cost.samples, cost.overruns), (10, 7, 100, 1));
        let said = cost.said();
        assert_eq!(said.severity, Severity::Ok);
        for words in ["takes 1.0050 of its time", "(95 % interval 1.0050 to 1.0050, 10 pairs)", "0.68 % of a core", "1 of 101 rounds"] {
            assert!(said.what.contains(words), "{words}: {}", said.what);
        }
    }

    #[test]
    fn too_much_is_said_and_so_is_too_little_known() {
        let slow = of(1, &runs(1.0, 0.0, 0.0), &runs(1.02, 0.0, 0.001)).unwrap().said();
        assert!(slow.severity == Severity::Warning && slow.fix.is_some() && slow.what.starts_with("over 1 %"), "{slow:?}");
        let busy = of(1, &runs(1.0, 0.0, 0.001), &runs(1.0, 0.0, 0.0112)).unwrap().said();
        assert_eq!(busy.severity, Severity::Warning, "1.02 % of a core: {busy:?}");
        // From 0.98 to 1.07 of the time.
        let vague = of(1, &runs(1.0, 0.0, 0.0), &runs(0.98, 0.01, 0.0)).unwrap().said();
        assert!(vague.severity == Severity::Note && vague.what.contains("varies too much"), "{vague:?}");
        assert!(of(1, &runs(0.0, 0.0, 0.0), &runs(1.0, 0.0, 0.0)).is_none(), "a clock that stands");
    }
}
