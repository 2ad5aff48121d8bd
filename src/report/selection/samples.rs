//! The values of a metric at a cell, apart by launch.

use super::candidates::Entry;
use crate::{
    gate::history::method,
    results::schema::METRICS,
    scenario::{Source, Subject},
    words::figure,
};

/// What is known of a metric at a cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Sample {
    /// A value that is what it is: a size, an agreement.
    Exact(f64),
    /// A value of one soak: it has a spread, which nobody knows.
    Soak(f64),
    /// One value a launch.
    Launches {
        /// Number and value of each launch, by number.
        values: Vec<(i64, f64)>,
        /// Cells of one name share their launches, so that these are drawn together; no launch is of two sessions.
        bundle: String,
    },
}

impl Sample {
    /// The values without their launches.
    pub fn values(&self) -> Vec<f64> {
        match self {
            Self::Exact(value) | Self::Soak(value) => vec![*value],
            Self::Launches { values, .. } => values.iter().map(|(_, value)| *value).collect(),
        }
    }
}

/// The sample of a subject that is a number; `None` where it was not measured, or where a value is none that could be.
///
/// Power is gross and of the decode; energy is net and of a generated token, and not there where it is from a regression over cells, which leaves
/// no value a launch; `sustained` is the throughput of the soak's last stretch.
pub fn sample(subject: &Subject, entry: &Entry) -> Option<Sample> {
    match subject.source {
        Source::Metric(column) => launches(column, entry),
        Source::Gaps => launches("itl_p50_ms", entry),
        Source::Power => launches("decode_power_w", entry),
        Source::Energy if entry.row.field("energy_phase_method") == "regression" => None,
        Source::Energy => launches("energy_j_per_tok", entry),
        Source::Soak => Some(Sample::Soak(soak("soak_tok_s", entry)? * soak("sustained_ratio", entry)?)),
        Source::SoakRatio => soak("sustained_ratio", entry).map(Sample::Soak),
        Source::Exact(column) => number(column, entry).map(Sample::Exact),
        Source::Word(..) | Source::Support(_) => None,
    }
}

/// Why there is no figure of a subject that can be weighed although the tables have something of it.
pub fn damage(subject: &Subject, entry: &Entry) -> Option<String> {
    let column = match subject.source {
        Source::Metric(column) | Source::Exact(column) => column,
        Source::Gaps => "itl_p50_ms",
        Source::Power => "decode_power_w",
        Source::Energy => "energy_j_per_tok",
        Source::Soak => "soak_tok_s",
        Source::SoakRatio => "sustained_ratio",
        Source::Word(..) | Source::Support(_) => return None,
    };
    let odd = || {
        let value = entry.row.metrics.get(column)?.iter().map(|launch| launch.value).find(|value| !value.is_finite() || *value <= 0.0)?;
        Some(format!("a value of {column} is {}, which can't be one", figure(value)))
    };
    entry.row.damage(column).or_else(odd)
}

fn launches(column: &'static str, entry: &Entry) -> Option<Sample> {
    if entry.row.damage(column).is_some() {
        return None;
    }
    let values: Vec<(i64, f64)> = entry.row.metrics.get(column)?.iter().map(|launch| (launch.launch, launch.value)).collect();
    let sound = !values.is_empty() && values.iter().all(|(_, value)| value.is_finite() && *value > 0.0);
    let bundle = entry.planned.launch_group.map_or_else(|| entry.planned.id.clone(), |group| format!("group {group}"));
    let bundle = format!("session {}, {bundle}", entry.session);
    sound.then_some(Sample::Launches { values, bundle })
}

/// Of a soak that went on to its end: the last stretch of a shorter one is another moment.
fn soak(column: &'static str, entry: &Entry) -> Option<f64> {
    let counts = entry.row.field("soak_check_tokens") != "contradicted" && entry.row.field("soak_ended") == "complete";
    counts.then(|| number(column, entry))?
}

/// How a figure came about, where there are several ways: those that differ in it are never weighed against each other. That of a soak is its
/// length.
pub fn way(subject: &Subject, entry: &Entry) -> String {
    let column = match subject.source {
        Source::Metric(column) => column,
        Source::Power => "decode_power_w",
        Source::Energy => "energy_j_per_tok",
        Source::Soak | Source::SoakRatio => {
            return number("soak_s", entry).map_or_else(String::new, |s| format!("a soak of {:.0} min", s / 60.0));
        }
        Source::Gaps | Source::Exact(_) | Source::Word(..) | Source::Support(_) => return String::new(),
    };
    METRICS.iter().find(|metric| metric.name == column).map_or_else(String::new, |metric| method(metric, |name| entry.row.field(name)))
}

fn number(column: &'static str, entry: &Entry) -> Option<f64> {
    entry.row.field(column).parse().ok().filter(|value: &f64| value.is_finite() && *value > 0.0)
}
