//! The two runs of an A/B run: launches of one number are partners, made one right after the other. What hits both alike (heat, other load, the
//! room) is in neither's favour, so nothing is assumed about sessions: there was one.

use serde_json::Value;

use super::run::{Cell, Run};
use crate::{results::manifest::are_sides, stats};

/// Chance of finding a regression of the size of the minimum detectable effect; the same as that of a history of nights.
const POWER: f64 = 0.9;

/// The cells of two runs that are each other's partner.
#[derive(Debug, Clone, Copy)]
pub struct Partners<'a>(&'a Value);

impl<'a> Partners<'a> {
    /// `None` unless they are the sides of one A/B run.
    pub fn of(a: &'a Run, b: &Run) -> Option<Self> {
        are_sides(&a.manifest, &b.manifest).then(|| Self(&a.manifest["ab"]["cells"]))
    }

    /// Id in B of a cell of A.
    pub fn in_b(self, cell: &str) -> Option<&'a str> {
        self.0[cell].as_str()
    }

    /// Id in A of a cell of B.
    pub fn in_a(self, cell: &str) -> Option<&'a str> {
        self.0.as_object()?.iter().find(|(_, partner)| partner.as_str() == Some(cell)).map(|(id, _)| id.as_str())
    }
}

/// The values of a metric in the launches that both cells have.
pub fn pairs(a: &Cell, b: &Cell, metric: &str) -> Vec<(f64, f64)> {
    let of = |cell: &Cell| cell.metrics.get(metric).cloned().unwrap_or_default();
    let of_b = of(b);
    let partner = |launch: i64| of_b.iter().find(|other| other.launch == launch);
    of(a).iter().filter_map(|launch| Some((launch.value, partner(launch.launch)?.value))).collect()
}

/// Smallest regression, 0.02 for 2 %, that as many pairs of this noise find nine times out of ten; `None` where there is no interval.
///
/// Found is what the interval tells from 0 and the estimate from the tolerance (see [`super::verdict::Effect::verdict`]), so the estimate has to be beyond both,
/// and the chance adds its quantile of its own error.
pub fn detectable(effect: &stats::Effect, tolerance: f64) -> Option<f64> {
    let ((lo, _), error) = (effect.interval?, effect.error?);
    let least = (effect.log - lo).max(tolerance.max(0.0).ln_1p());
    Some((least + stats::student(POWER, effect.degrees) * error).exp_m1())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::gate::{
        run::Launch,
        verdict::{Effect, Verdict},
    };

    fn run(id: &str, partner: &str, cells: &Value) -> Run {
        Run { id: format!("folder-of-{id}"), manifest: json!({"run": id, "ab": {"partner": partner, "cells": cells}}), ..Run::default() }
    }

    #[test]
    fn two_runs_are_partners_if_each_names_the_other() {
        let (a, b) = (run("r1", "r2", &json!({"x": "y"})), run("r2", "r1", &json!({"y": "x"})));
        let partners = Partners::of(&a, &b).expect("partners");
        assert_eq!((partners.in_b("x"), partners.in_b("y")), (Some("y"), None));
        assert_eq!((partners.in_a("y"), partners.in_a("x")), (Some("x"), None));
        assert!(Partners::of(&a, &run("r2", "r3", &json!({}))).is_none());
        assert!(Partners::of(&run("r1", "r4", &json!({})), &b).is_none());
        assert!(Partners::of(&Run::default(), &Run::default()).is_none());
    }

    fn cell(values: &[(i64, f64)]) -> Cell {
        let launches = values.iter().map(|(launch, value)| Launch { launch: *launch, value: *value }).collect();
        Cell { metrics: BTreeMap::from([("ttft_ms", launches)]), ..Cell::default() }
    }

    #[test]
    fn a_launch_without_its_partner_does_not_count() {
        let (a, b) = (cell(&[(0, 10.0), (1, 20.0), (3, 40.0)]), cell(&[(0, 11.0), (2, 33.0), (3, 44.0)]));
        assert_eq!(pairs(&a, &b, "ttft_ms"), [(10.0, 11.0), (40.0, 44.0)]);
        assert_eq!(pairs(&a, &b, "decode_tok_s"), []);
    }

    /// A device that gets 50 % slower while it is measured: side by side a tenth is plain to see, and the two as samples of their own say nothing.
    #[test]
    fn drift_that_hits_both_is_in_neither() {
        let slower = |launch: i64| 1.0 + 0.05 * launch as f64;
        let a: Vec<_> = (0..10).map(|i| (i, 100.0 * slower(i))).collect();
        let noise = [1.001, 0.9985, 1.0012, 0.9993, 1.0004, 0.9978, 1.0021, 0.9996, 1.0008, 0.9999];
        let b: Vec<_> = (0..10).zip(noise).map(|(i, noise)| (i, 110.0 * slower(i) * noise)).collect();
        let found = stats::paired_effect(&pairs(&cell(&a), &cell(&b), "ttft_ms")).expect("an effect");
        let (lo, hi) = found.interval.expect("an interval");
        // ln 1.1 = 0.09531.
        assert!(lo < 0.095_31 && 0.095_31 < hi && (0.000_1..0.01).contains(&(hi - lo)), "{found:?}");
        assert_eq!(Effect::oriented(found.log, lo, hi, false).verdict(0.02), Verdict::Regressed);
        let values = |side: &[(i64, f64)]| side.iter().map(|(_, value)| *value).collect::<Vec<_>>();
        let (lo, hi) = stats::log_effect(&values(&a), &values(&b)).and_then(|apart| apart.interval).expect("an interval");
        assert!(lo < 0.0 && 0.0 < hi);
    }

    /// By hand, t quantiles from R (`qt(c(.975, .9), 19)` = 2.093024, 1.327728). Error 1 %: half-width 2.093 %, beyond the tolerance's ln 1.02 =
    /// 1.980 %; together 3.4208 %, e^0.034208 = 1.03480. Error 0.1 %: the tolerance counts, 1.9803 % + 0.1328 % = 2.1130 %: 1.021355.
    #[test]
    fn what_can_be_detected() {
        let effect =
            |error: f64| stats::Effect { log: 0.5, error: Some(error), degrees: 19.0, interval: Some((0.5 - 2.093_024 * error, 1.0)) };
        for (error, wanted) in [(0.01, 0.034_80), (0.001, 0.021_355)] {
            let found = detectable(&effect(error), 0.02).expect("a size");
            assert!((found - wanted).abs() < 1e-5, "{found} is not {wanted}");
        }
        assert_eq!(detectable(&stats::Effect { interval: None, ..effect(0.01) }, 0.02), None);
    }
}
