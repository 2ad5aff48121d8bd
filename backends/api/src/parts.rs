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

impl NpuProfile {
    /// The parts of a graph's executions: its times nest, so that what one has more than the next is a part of its own: `host` (QNN's call on the
    /// host without the round trip), `rpc` (the round trip without the DSP's side), `dsp` (QNN on the DSP's side without the graph) and
    /// `accelerator` (the graph). A time that the profile does not have, that is of other executions, or that is longer than the one around it
    /// separates nothing.
    pub fn parts(&self, stage: &str) -> Vec<PhasePart> {
        let Some(mut outer) = self.wall_us.filter(|wall| wall.n > 0) else { return Vec::new() };
        let fits = |inner: &Total, outer: Total| inner.n == outer.n && inner.sum <= outer.sum;
        let (mut parts, mut names) = (Vec::new(), "host".to_owned());
        let part = |name: &str, us: f64, n: u32| {
            let [stage, of, name, source] = [stage, "execute", name, self.source.as_str()].map(str::to_owned);
            PhasePart { stage, of, name, us, n, source }
        };
        for (name, inner) in [("rpc", self.rpc_us), ("dsp", self.qnn_accelerator_us), ("accelerator", self.accelerator_us)] {
            if let Some(inner) = inner.filter(|inner| fits(inner, outer)) {
                parts.push(part(&names, outer.sum - inner.sum, outer.n));
                name.clone_into(&mut names);
                outer = inner;
            } else {
                names = format!("{names}+{name}");
            }
        }
        if !parts.is_empty() {
            parts.push(part(&names, outer.sum, outer.n));
        }
        parts
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
