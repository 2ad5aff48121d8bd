//! What a framework's own profile says of the NPU: times and counts as it measured them, summed over one launch. Cycles are not in it: there
//! is no way from them to time (the clock changes, and several threads count at once).

use serde::{Deserialize, Serialize};

use crate::parts::Nest;

/// A sum, and over how many executions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Total {
    /// The sum, in the unit that the field says.
    pub sum: f64,
    /// Executions behind it.
    pub n: u32,
}

impl Total {
    /// The mean of an execution.
    pub fn mean(&self) -> Option<f64> {
        (self.n > 0).then(|| self.sum / f64::from(self.n))
    }
}

/// A part of a whole, both measured in the same executions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// The part, us.
    pub part_us: f64,
    /// The whole, us.
    pub whole_us: f64,
    /// Executions in which both were told.
    pub n: u32,
}

impl Share {
    /// 0 to 1.
    pub fn ratio(&self) -> Option<f64> {
        (self.whole_us > 0.0).then(|| self.part_us / self.whole_us)
    }
}

/// One launch, all of its graphs together; a field is `None` where the profile does not have it.
///
/// The events nest (formats/qnn.md, after Qualcomm's documentation of QNN's profiling): `QNN (execute)` is the time of the call on the host and
/// holds `RPC (execute)`, the round trip over FastRPC, which holds `QNN accelerator (execute)`, the call as the DSP's side of QNN sees it, which
/// holds `Accelerator (execute)`, the graph itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NpuProfile {
    /// Whose profile: `qnn-profile`, `qnn-ep-profile`.
    pub source: String,
    /// How the figures came about, in words.
    pub method: String,
    /// `Accelerator (execute) time`, us.
    #[serde(default)]
    pub accelerator_us: Option<Total>,
    /// `QNN accelerator (execute) time`, us.
    #[serde(default)]
    pub qnn_accelerator_us: Option<Total>,
    /// `RPC (execute) time`, us.
    #[serde(default)]
    pub rpc_us: Option<Total>,
    /// `QNN (execute) time`, us: wall time on the host.
    #[serde(default)]
    pub wall_us: Option<Total>,
    /// Accelerator time (`Accelerator (execute) time`, else `QNN accelerator (execute) time`) within wall time.
    #[serde(default)]
    pub duty: Option<Share>,
    /// What FastRPC adds (`RPC (execute) time` less `QNN accelerator (execute) time`) within wall time.
    #[serde(default)]
    pub rpc_overhead: Option<Share>,
    /// How often a graph gave way to another user of the NPU.
    #[serde(default)]
    pub yields: Option<Total>,
    /// `Time for initial VTCM acquire`, us: waiting for the NPU's own memory.
    #[serde(default)]
    pub vtcm_acquire_us: Option<Total>,
    /// `Time for HVX + HMX power on and acquire`, us.
    #[serde(default)]
    pub power_acquire_us: Option<Total>,
    /// `Number of HVX threads used`, the most of any execution.
    #[serde(default)]
    pub hvx_threads: Option<u32>,
    /// Loading of its graphs; used for the parts of a load alone.
    #[serde(skip)]
    pub load: Nest,
}

fn add(into: &mut Option<Total>, value: Option<f64>, n: u32) {
    if let Some(value) = value {
        let total = into.get_or_insert_default();
        (total.sum, total.n) = (total.sum + value * f64::from(n), total.n + n);
    }
}

fn add_share(into: &mut Option<Share>, part: Option<f64>, whole: Option<f64>, n: u32) {
    // A part that is more than its whole is of another execution, or of another clock.
    let fits = |(part, whole): &(f64, f64)| *whole > 0.0 && (0.0..=*whole).contains(part);
    if let Some((part, whole)) = part.zip(whole).filter(fits) {
        let share = into.get_or_insert_default();
        share.part_us += part * f64::from(n);
        share.whole_us += whole * f64::from(n);
        share.n += n;
    }
}

impl NpuProfile {
    /// Adds one execution, or `n` of which the profile has the means. `event` gives the value of an event by its name in lower case, times in us.
    pub fn add(&mut self, n: u32, event: impl Fn(&str) -> Option<f64>) {
        // No execution takes a day, and no count of a graph has ten digits.
        let event = |name: &str| event(name).filter(|v| v.is_finite() && (0.0..8.64e10).contains(v));
        let accelerator = event("accelerator (execute) time");
        let qnn_accelerator = event("qnn accelerator (execute) time");
        let (rpc, wall) = (event("rpc (execute) time"), event("qnn (execute) time"));
        add(&mut self.accelerator_us, accelerator, n);
        add(&mut self.qnn_accelerator_us, qnn_accelerator, n);
        add(&mut self.rpc_us, rpc, n);
        add(&mut self.wall_us, wall, n);
        add_share(&mut self.duty, accelerator.or(qnn_accelerator), wall, n);
        add_share(&mut self.rpc_overhead, rpc.zip(qnn_accelerator).map(|(rpc, dsp)| rpc - dsp), wall, n);
        // As QNN spells it, and as it may once be spelt.
        add(&mut self.yields, event("num times yield occured").or_else(|| event("num times yield occurred")), n);
        add(&mut self.vtcm_acquire_us, event("time for initial vtcm acquire"), n);
        add(&mut self.power_acquire_us, event("time for hvx + hmx power on and acquire"), n);
        let threads = event("number of hvx threads used").map(|threads| threads.round() as u32);
        self.hvx_threads = self.hvx_threads.max(threads);
    }

    /// Whether it says anything.
    pub fn is_empty(&self) -> bool {
        let Self { accelerator_us, qnn_accelerator_us, rpc_us, yields, vtcm_acquire_us, power_acquire_us, hvx_threads, .. } = self;
        let totals = [accelerator_us, qnn_accelerator_us, rpc_us, yields, vtcm_acquire_us, power_acquire_us];
        totals.iter().all(|total| total.is_none()) && hvx_threads.is_none()
    }

    /// Every sum and count so many times: a tool that prints means of `times` executions and does not say of how many.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        for total in self.totals().into_iter().flatten() {
            (total.sum, total.n) = (total.sum * f64::from(times), total.n.saturating_mul(times));
        }
        for share in [&mut self.duty, &mut self.rpc_overhead].into_iter().flatten() {
            (share.part_us, share.whole_us) = (share.part_us * f64::from(times), share.whole_us * f64::from(times));
            share.n = share.n.saturating_mul(times);
        }
        self
    }

    fn totals(&mut self) -> [Option<&mut Total>; 7] {
        [
            self.accelerator_us.as_mut(),
            self.qnn_accelerator_us.as_mut(),
            self.rpc_us.as_mut(),
            self.wall_us.as_mut(),
            self.yields.as_mut(),
            self.vtcm_acquire_us.as_mut(),
            self.power_acquire_us.as_mut(),
        ]
    }

    /// Adds another graph's figures of the same launch.
    pub fn merge(&mut self, other: &Self) {
        if self.source.is_empty() {
            (self.source, self.method) = (other.source.clone(), other.method.clone());
        }
        let pairs = [
            (&mut self.accelerator_us, other.accelerator_us),
            (&mut self.qnn_accelerator_us, other.qnn_accelerator_us),
            (&mut self.rpc_us, other.rpc_us),
            (&mut self.wall_us, other.wall_us),
            (&mut self.yields, other.yields),
            (&mut self.vtcm_acquire_us, other.vtcm_acquire_us),
            (&mut self.power_acquire_us, other.power_acquire_us),
        ];
        for (mine, theirs) in pairs {
            if let Some(theirs) = theirs {
                let total = mine.get_or_insert_default();
                (total.sum, total.n) = (total.sum + theirs.sum, total.n + theirs.n);
            }
        }
        for (mine, theirs) in [(&mut self.duty, other.duty), (&mut self.rpc_overhead, other.rpc_overhead)] {
            if let Some(theirs) = theirs {
                let share = mine.get_or_insert_default();
                share.part_us += theirs.part_us;
                share.whole_us += theirs.whole_us;
                share.n += theirs.n;
            }
        }
        self.hvx_threads = self.hvx_threads.max(other.hvx_threads);
    }
}

/// Two profiles of one launch as one.
pub fn merged(mine: Option<NpuProfile>, theirs: Option<&NpuProfile>) -> Option<NpuProfile> {
    match (mine, theirs) {
        (Some(mut mine), Some(theirs)) => {
            mine.merge(theirs);
            Some(mine)
        }
        (mine, theirs) => mine.or_else(|| theirs.cloned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[(&'static str, f64)], n: u32) -> NpuProfile {
        let mut profile = NpuProfile::default();
        profile.add(n, |name| values.iter().find(|(key, _)| *key == name).map(|(_, value)| *value));
        profile
    }

    #[test]
    fn shares_are_of_the_same_executions() {
        let mut profile = of(&[("qnn (execute) time", 200.0), ("accelerator (execute) time", 150.0)], 1);
        // An execution whose accelerator time is not known counts for the wall, and not for the share.
        profile.merge(&of(&[("qnn (execute) time", 1000.0), ("num times yield occured", 2.0)], 3));
        assert_eq!(profile.wall_us, Some(Total { sum: 3200.0, n: 4 }));
        assert_eq!(profile.duty, Some(Share { part_us: 150.0, whole_us: 200.0, n: 1 }));
        assert_eq!((profile.duty.unwrap().ratio(), profile.yields.unwrap().mean()), (Some(0.75), Some(2.0)));
        assert_eq!((profile.rpc_overhead, profile.vtcm_acquire_us, profile.hvx_threads), (None, None, None));
    }

    #[test]
    fn what_can_not_be_is_left_out() {
        let profile = of(&[("qnn (execute) time", 100.0), ("accelerator (execute) time", 101.0), ("rpc (execute) time", f64::NAN)], 1);
        assert_eq!((profile.duty, profile.rpc_us), (None, None));
        let profile = of(&[("qnn (execute) time", 0.0), ("accelerator (execute) time", 0.0), ("num times yield occured", -1.0)], 1);
        assert_eq!((profile.duty, profile.yields), (None, None));
        assert!(NpuProfile::default().is_empty() && of(&[("qnn (execute) time", 5.0)], 1).is_empty(), "wall time alone is no NPU's");
        assert!(!of(&[("number of hvx threads used", 4.0)], 1).is_empty());
    }

    #[test]
    fn means_become_sums() {
        let profile =
            of(&[("rpc (execute) time", 90.0), ("qnn accelerator (execute) time", 70.0), ("qnn (execute) time", 100.0)], 1).times(20);
        assert_eq!(profile.rpc_us, Some(Total { sum: 1800.0, n: 20 }));
        assert_eq!(profile.rpc_overhead, Some(Share { part_us: 400.0, whole_us: 2000.0, n: 20 }));
        // Without the graph's own time, what QNN sees on the DSP's side.
        assert_eq!(profile.duty.unwrap().ratio(), Some(0.7));
    }
}
