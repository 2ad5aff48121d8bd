//! What a runtime's own profile says of the parts of a phase.

use serde::{Deserialize, Serialize};

use crate::npu::{NpuProfile, Total};

/// A part of a phase, summed over the executions of one graph in one launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhasePart {
    /// `load`, `prefill` or `decode`.
    pub stage: String,
    /// The phase that it is a part of: `execute`, `prepare`.
    pub of: String,
    /// Its name; two that the profile does not separate are joined: `host+rpc`.
    pub name: String,
    /// Time, us.
    pub us: f64,
    /// Executions behind it.
    pub n: u32,
    /// Whose profile: `qnn-profile`, `qnn-ep-profile`, `ort-trace`.
    pub source: String,
}

/// Times that nest, each `None` where the profile does not have it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Nest {
    /// QNN's call on the host, us.
    pub wall_us: Option<Total>,
    /// The round trip over FastRPC, us.
    pub rpc_us: Option<Total>,
    /// The call as the DSP's side of QNN sees it, us.
    pub qnn_accelerator_us: Option<Total>,
    /// The NPU itself, us.
    pub accelerator_us: Option<Total>,
}

impl Nest {
    /// Adds a time of loading (`QNN (load binary) time`, `RPC (finalize) time`, ...), us, by the event's name in lower case; other events are
    /// none. The events nest as those of an execution do.
    pub fn add_load(&mut self, event: &str, us: f64) {
        let name = event.strip_suffix(" (load binary) time").or_else(|| event.strip_suffix(" (finalize) time"));
        let place = match name {
            Some("qnn") => &mut self.wall_us,
            Some("rpc") => &mut self.rpc_us,
            Some("qnn accelerator") => &mut self.qnn_accelerator_us,
            Some("accelerator") => &mut self.accelerator_us,
            _ => return,
        };
        if us.is_finite() && us >= 0.0 {
            let total = place.get_or_insert_default();
            (total.sum, total.n) = (total.sum + us, total.n.saturating_add(1));
        }
    }

    /// What one time has more than the next is a part of its own: `host` (QNN's call on the host without the round trip), `rpc` (the round trip
    /// without the DSP's side), `dsp` (QNN on the DSP's side without the NPU) and `accelerator`. Name, sum in us, and how many. A time that is not
    /// there, that is of other calls, or that is longer than the one around it separates nothing.
    fn parts(&self) -> Vec<(String, f64, u32)> {
        let Some(mut outer) = self.wall_us.filter(|wall| wall.n > 0) else { return Vec::new() };
        let fits = |inner: &Total, outer: Total| inner.n == outer.n && inner.sum <= outer.sum;
        let (mut parts, mut names) = (Vec::new(), "host".to_owned());
        for (name, inner) in [("rpc", self.rpc_us), ("dsp", self.qnn_accelerator_us), ("accelerator", self.accelerator_us)] {
            if let Some(inner) = inner.filter(|inner| fits(inner, outer)) {
                parts.push((std::mem::replace(&mut names, name.to_owned()), outer.sum - inner.sum, outer.n));
                outer = inner;
            } else {
                names = format!("{names}+{name}");
            }
        }
        if !parts.is_empty() {
            parts.push((names, outer.sum, outer.n));
        }
        parts
    }
}

impl NpuProfile {
    /// The parts of the executions of one graph, of a stage, and of its loading, which counts as one however many calls it has.
    pub fn parts(&self, stage: &str) -> Vec<PhasePart> {
        let part = |stage: &str, of: &str, (name, us, n): (String, f64, u32)| {
            let [stage, of, source] = [stage, of, self.source.as_str()].map(str::to_owned);
            PhasePart { stage, of, name, us, n, source }
        };
        let Self { wall_us, rpc_us, qnn_accelerator_us, accelerator_us, .. } = *self;
        let executed = Nest { wall_us, rpc_us, qnn_accelerator_us, accelerator_us }.parts();
        let executed = executed.into_iter().map(|found| part(stage, "execute", found));
        executed.chain(self.load.parts().into_iter().map(|(name, us, _)| part("load", "prepare", (name, us, 1)))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(values: &[(&'static str, f64)], n: u32) -> Vec<(String, f64, u32)> {
        let mut profile = NpuProfile { source: "qnn-profile".to_owned(), ..NpuProfile::default() };
        profile.add(n, |name| values.iter().find(|(key, _)| *key == name).map(|(_, value)| *value));
        profile.parts("decode").into_iter().map(|p| (p.name, p.us, p.n)).collect()
    }

    const WALL: (&str, f64) = ("qnn (execute) time", 9308.0);
    const RPC: (&str, f64) = ("rpc (execute) time", 7784.0);
    const DSP: (&str, f64) = ("qnn accelerator (execute) time", 4334.0);
    const GRAPH: (&str, f64) = ("accelerator (execute) time", 1359.0);

    /// The first execution of fixtures/profile-phone-events.csv of ort-qnn: 9308 - 7784 = 1524, 7784 - 4334 = 3450, 4334 - 1359 = 2975.
    #[test]
    fn what_nests_is_taken_apart() {
        let named = |all: &[(&str, f64)], n| all.iter().map(|(name, us)| ((*name).to_owned(), *us, n)).collect::<Vec<_>>();
        let whole = [("host", 1524.0), ("rpc", 3450.0), ("dsp", 2975.0), ("accelerator", 1359.0)];
        assert_eq!(parts(&[WALL, RPC, DSP, GRAPH], 1), named(&whole, 1));
        // The emulator has no round trip; a viewer's means count for as many executions as there were.
        assert_eq!(parts(&[WALL, GRAPH], 2), named(&[("host+rpc+dsp", 2.0 * 7949.0), ("accelerator", 2.0 * 1359.0)], 2));
        assert_eq!(parts(&[WALL, RPC], 1), named(&[("host", 1524.0), ("rpc+dsp+accelerator", 7784.0)], 1));
    }

    /// The head of the same file: 561285 us on the host, of which 14253 are the round trip, 13720 the DSP's side and 13602 the NPU.
    #[test]
    fn loading_is_taken_apart_the_same_way() {
        let mut profile = NpuProfile { source: "qnn-ep-profile".to_owned(), ..NpuProfile::default() };
        for (event, us) in [
            ("rpc (finalize) time", 14_253.0),
            ("qnn accelerator (finalize) time", 13_720.0),
            ("accelerator (finalize) time", 13_602.0),
            ("qnn (finalize) time", 561_285.0),
            ("qnn (execute) time", 1e9),
            ("qnn (finalize) time", f64::NAN),
        ] {
            profile.load.add_load(event, us);
        }
        let parts = profile.parts("decode");
        let found: Vec<_> = parts.iter().map(|p| (p.stage.as_str(), p.of.as_str(), p.name.as_str(), p.us, p.n)).collect();
        let part = |name, us| ("load", "prepare", name, us, 1);
        assert_eq!(found, [part("host", 547_032.0), part("rpc", 533.0), part("dsp", 118.0), part("accelerator", 13_602.0)]);
    }

    #[test]
    fn what_does_not_nest_separates_nothing() {
        let longer = ("qnn accelerator (execute) time", 7785.0);
        let named: Vec<String> = parts(&[WALL, RPC, longer, GRAPH], 1).into_iter().map(|(name, ..)| name).collect();
        assert_eq!(named, ["host", "rpc+dsp", "accelerator"]);
        assert!(parts(&[WALL], 1).is_empty() && parts(&[RPC, DSP, GRAPH], 1).is_empty() && parts(&[], 1).is_empty());
        // Of other executions.
        let mut profile = NpuProfile::default();
        profile.add(1, |name| (name == WALL.0).then_some(WALL.1));
        profile.add(1, |name| [WALL, GRAPH].iter().find(|(key, _)| *key == name).map(|(_, value)| *value));
        assert!(profile.parts("decode").is_empty());
    }
}
