//! The geometric mean over the cells that both runs have, by class and metric.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Row, Settings, session::Spread};
use crate::{
    gate::verdict::{Effect, Verdict},
    results::schema::METRICS,
};

/// One class and metric.
#[derive(Debug, Serialize)]
pub struct Overall {
    /// Class of the cells.
    pub class: String,
    /// The metric.
    pub metric: &'static str,
    /// How many cells are in it.
    pub cells: usize,
    /// Geometric mean of B over A.
    pub ratio: f64,
    /// Its 95 % interval, for these cells and not for others.
    pub interval: (f64, f64),
    /// Its verdict.
    pub verdict: Verdict,
}

/// Log of a ratio, its error by the launches, and what sessions differ by.
type Seen<'a> = (f64, f64, &'a Spread);

/// Of the rows that have an interval. Composed ones are upper bounds and in no mean; with one cell the row says it all.
pub fn of_rows(rows: &[Row], settings: &Settings) -> Vec<Overall> {
    let mut groups: BTreeMap<(&str, &'static str), Vec<Seen>> = BTreeMap::new();
    for row in rows.iter().filter(|row| !row.composed && !row.class.is_empty()) {
        if let Some((compared, error)) = row.compared().and_then(|compared| Some((compared, compared.error?))) {
            groups.entry((&row.class, row.metric)).or_default().push((compared.ratio.ln(), error, &compared.spread));
        }
    }
    let mean = |((class, metric), cells): (_, Vec<Seen>)| {
        let n = cells.len();
        (n > 1).then(|| overall(class, metric, &cells, settings.tolerance))
    };
    groups.into_iter().filter_map(mean).collect()
}

/// The launches' errors are independent from cell to cell, a session is the same for all: its part does not shrink with their number. The
/// largest spread counts.
fn overall(class: &str, metric: &'static str, cells: &[Seen], tolerance: f64) -> Overall {
    let n = cells.len() as f64;
    let log = cells.iter().map(|(log, ..)| log).sum::<f64>() / n;
    let launches = cells.iter().map(|(_, error, _)| error * error).sum::<f64>() / (n * n);
    let widest = cells.iter().map(|(.., spread)| *spread).max_by(|a, b| a.sd.total_cmp(&b.sd));
    let (lo, hi) = widest.map_or((log, log), |spread| spread.widen(log, launches.sqrt(), f64::INFINITY));
    let higher = METRICS.iter().any(|known| known.name == metric && known.higher_is_better);
    Overall {
        class: class.to_owned(),
        metric,
        cells: cells.len(),
        ratio: log.exp(),
        interval: (lo.exp(), hi.exp()),
        verdict: Effect::oriented(log, lo, hi, higher).verdict(tolerance),
    }
}
