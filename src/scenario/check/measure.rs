//! `[measure]`, `[verify]` and `[telemetry]`.

use std::{collections::BTreeMap, time::Duration};

use bench_backend_api::Quant;

use super::{
    super::{
        checked::{Load, Measure, ModelSpec, Order, Profile, Reference, Verify},
        suggest::{self, show},
        value::At,
        wire,
    },
    Context,
};

const DEFAULT_QUERIES: u32 = 3;
const DEFAULT_REPETITIONS: u32 = 5;
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(10);
const DEFAULT_RATE_HZ: f64 = 10.0;
/// Above this rate the sampling itself disturbs what is measured.
const MAX_RATE_HZ: f64 = 50.0;
const LONGEST: Duration = Duration::from_hours(30 * 24);

impl Context<'_> {
    pub(super) fn measure(&mut self, wire: wire::Measure) -> Measure {
        let (warmup, warmup_max) = wire.warmup.map_or((1, 1), |w| self.warmup(&w.value));
        let max_time = wire.repetitions.as_ref().and_then(|r| self.duration("max-time", r.value.max_time.as_ref()?));
        let (repetitions_min, repetitions_max, until_ci) =
            wire.repetitions.map_or((DEFAULT_REPETITIONS, DEFAULT_REPETITIONS, None), |r| self.repetitions(&r.value));
        let timeout = wire.timeout.and_then(|t| self.duration("timeout", &t)).unwrap_or(DEFAULT_TIMEOUT);
        let budget = wire.budget.and_then(|b| self.duration("budget", &b));
        Measure {
            queries: wire.queries.map_or(DEFAULT_QUERIES, |q| q.value),
            warmup,
            warmup_max,
            repetitions_min,
            repetitions_max,
            until_ci,
            max_time_ms: max_time.map(|t| t.as_millis() as u64),
            order: match wire.order {
                Some(wire::Order::Sequential) => Order::Sequential,
                Some(wire::Order::Interleaved) | None => Order::Interleaved,
            },
            timeout_ms: timeout.as_millis() as u64,
            budget_ms: budget.map(|b| b.as_millis() as u64),
            load: match wire.load {
                Some(wire::Load::Cold) => Load::Cold,
                Some(wire::Load::Warm) => Load::Warm,
                Some(wire::Load::Any) | None => Load::Any,
            },
            profile: match wire.profile {
                Some(wire::Profile::Layers) => Profile::Layers,
                Some(wire::Profile::Off) | None => Profile::Off,
            },
        }
    }

    /// A gauge tells the energy of a process, not of the queries that one of its cells asked. Load and memory are told of the launches in which a cell comes
    /// first: too few where they are `required`.
    pub(super) fn share_launches(&mut self, wire: Option<&At<bool>>, power: bool, required: bool) -> bool {
        if let Some(at) = wire.filter(|at| at.value && power) {
            let help = "take it out: with [power] every cell has its own launches".to_owned();
            self.out.error(at.span(), "`share-launches` and [power] exclude each other", help);
        }
        wire.map_or(!power && !required, |at| at.value)
    }

    fn warmup(&mut self, wire: &wire::Warmup) -> (u32, u32) {
        let min = wire.min.as_ref().map_or(1, |m| m.value);
        if let Some(max) = wire.max.as_ref().filter(|m| wire.min.is_some() && m.value < min) {
            self.out.error(max.span(), format!("`max` ({}) is below `min` ({min})", max.value), None);
        }
        (min, wire.max.as_ref().map_or(min, |m| m.value))
    }

    fn repetitions(&mut self, wire: &wire::Repetitions) -> (u32, u32, Option<f64>) {
        let min = wire.min.as_ref().map_or(DEFAULT_REPETITIONS, |m| m.value);
        let max = wire.max.as_ref().map_or(min, |m| m.value);
        if let Some(at) = wire.max.as_ref().filter(|m| wire.min.is_some() && m.value < min) {
            self.out.error(at.span(), format!("`max` ({max}) is below `min` ({min})"), None);
        }
        let until = wire.until_ci.as_ref().and_then(|u| self.percentage(u));
        if let Some(until) = wire.until_ci.as_ref().filter(|_| max == min) {
            let help = format!("raise `max` above {min} to leave room");
            self.out.warning(until.span(), "`until-ci` has nothing to decide: `min` equals `max`", help);
        }
        if let Some(time) = wire.max_time.as_ref().filter(|_| max == min) {
            let help = format!("raise `max` above {min} to leave room");
            self.out.warning(time.span(), "`max-time` has nothing to decide: `min` equals `max`", help);
        }
        (min, max, until)
    }

    /// `2%` as 0.02.
    pub(super) fn percentage(&mut self, at: &At<String>) -> Option<f64> {
        let share = at.value.trim().strip_suffix('%').and_then(|n| n.trim_end().parse::<f64>().ok()).map(|n| n / 100.0);
        let good = share.filter(|s| *s > 0.0 && *s < 1.0);
        if good.is_none() {
            self.out.error(
                at.span(),
                format!("{} is not a percentage", show(&at.value)),
                "write for instance \"2%\"; it lies between 0% and 100%".to_owned(),
            );
        }
        good
    }

    /// A duration of at least a second.
    pub(super) fn duration(&mut self, key: &str, at: &At<String>) -> Option<Duration> {
        match humantime::parse_duration(&at.value) {
            Ok(d) if d < Duration::from_secs(1) => {
                self.out.error(at.span(), format!("`{key}` is shorter than a second"), "nothing could be measured in it".to_owned());
            }
            Ok(d) if d > LONGEST => self.out.error(at.span(), format!("`{key}` is longer than 30 days"), None),
            Ok(d) => return Some(d),
            Err(e) => {
                let help = format!("write for instance \"90s\", \"10m\" or \"1h 30m\" ({e})");
                self.out.error(at.span(), format!("{} is not a duration", show(&at.value)), help);
            }
        }
        None
    }

    /// `quantised` is a class of the matrix that is not of floats.
    pub(super) fn verify(&mut self, wire: wire::Verify, models: &BTreeMap<String, Option<ModelSpec>>, quantised: Option<Quant>) -> Verify {
        let mut reference = Reference::None;
        if let Some(at) = &wire.reference {
            match at.value.as_str() {
                "none" => {}
                "fp32" => {
                    reference = Reference::Fp32;
                    self.needs_seed(at, models);
                    if let Some(quant) = quantised.filter(|_| wire.min_agreement.is_none()) {
                        let message = format!("without `min-agreement` no token of a {quant} model can be wrong");
                        let help =
                            "say how much has to agree, from 0 to 1: `min-agreement = 1.0` where the format holds the weights exactly";
                        self.out.warning(at.span(), message, help.to_owned());
                    }
                }
                later if later.starts_with("backend:") || later.starts_with("file:") => {
                    let message = format!("the reference {} is not carried out by this version", show(later));
                    self.out.error(at.span(), message, "use \"fp32\" or \"none\"".to_owned());
                }
                other => {
                    let help = suggest::help(other, &["fp32", "none"]);
                    self.out.error(at.span(), format!("{} is not a reference", show(other)), help);
                }
            }
        }
        if let Some(at) = wire.min_agreement.as_ref().filter(|_| reference == Reference::None && wire.reference.is_none()) {
            self.out.warning(at.span(), "`min-agreement` without a reference checks nothing", "add `reference = \"fp32\"`".to_owned());
        }
        Verify { reference, min_agreement: wire.min_agreement.map(|m| m.value) }
    }

    fn needs_seed(&mut self, at: &At<String>, models: &BTreeMap<String, Option<ModelSpec>>) {
        for spec in models.values().flatten() {
            if spec.model.geometry.as_ref().and_then(|g| g.seed).is_none() {
                let message = format!("no fp32 reference for `{}`: its tokens will not be checked", spec.model.name);
                self.out.warning(at.span(), message, "the reference is computed from a `geometry` with a `seed`".to_owned());
            }
        }
    }

    pub(super) fn telemetry(&mut self, wire: wire::Telemetry) -> f64 {
        let Some(at) = wire.rate else { return DEFAULT_RATE_HZ };
        let rate = at.value.trim().strip_suffix("Hz").and_then(|n| n.trim_end().parse::<f64>().ok());
        if let Some(rate) = rate.filter(|r| (0.0..=MAX_RATE_HZ).contains(r)) {
            return rate;
        }
        let help = "write for instance \"10Hz\", from \"0Hz\" (off) to \"50Hz\"".to_owned();
        self.out.error(at.span(), format!("{} is not a sampling rate", show(&at.value)), help);
        DEFAULT_RATE_HZ
    }
}
