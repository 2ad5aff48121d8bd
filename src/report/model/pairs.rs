//! Two backends on the same artifacts: the one comparison in which only the framework differs.

use std::collections::BTreeMap;

use super::distributions::higher_is_better;
use super::figures::{DASH, median};
use super::groups::{AXES, Timing, workload};
use super::view::{PairMetric, PairRow, Pairing};
use crate::report::load::{Cell, Run, Sample};
use crate::stats::{self, Ratio};

/// A matched pair of cells with its ratios.
pub struct Pair<'a> {
    /// The cell above the line.
    pub above: &'a Cell,
    /// The cell below.
    pub below: &'a Cell,
    /// Ratio of the TTFT, or why there is none.
    pub ttft: Result<Compared, String>,
    /// Ratio of the decode rate, or why there is none.
    pub decode: Result<Compared, String>,
}

/// A ratio of medians; without an interval where single values are not at hand.
#[derive(Debug, Clone, Copy)]
pub enum Compared {
    /// With its interval.
    Measured(Ratio),
    /// Of the medians alone.
    MediansOnly(f64),
}

/// All pairs of a panel, in the order of its cells.
pub fn pairs<'a>(run: &Run, cells: &[&'a Cell]) -> Vec<Pair<'a>> {
    let mut found = Vec::new();
    for above in cells {
        for below in cells.iter().filter(|below| matches(above, below)) {
            let (one, other) = (Timing::of(above), Timing::of(below));
            let methods = if one.method == other.method {
                Ok(())
            } else {
                Err(format!("not compared: timed by {} against {}", one.method, other.method))
            };
            let scopes =
                if one.scope == other.scope { Ok(()) } else { Err(format!("not compared: {} against {}", one.scope, other.scope)) };
            let ttft = methods.clone().and(scopes).and_then(|()| compare(run, above, below, "ttft_ms", |sample| sample.ttft_ms));
            let decode = methods.and_then(|()| compare(run, above, below, "decode_tok_s", |sample| sample.decode_tok_s));
            found.push(Pair { above, below, ttft, decode });
        }
    }
    found
}

/// Same class, device, artifact, model, quantisation, workload and unit; no axis that both have and that differs; each pair once.
fn matches(a: &Cell, b: &Cell) -> bool {
    let same_axis = |column| match (a.text(column).and_then(plain), b.text(column).and_then(plain)) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    };
    a.backend < b.backend
        && a.counts()
        && b.counts()
        && (&a.class, &a.key.device, &a.model, &a.quant, a.prompt, a.generate)
            == (&b.class, &b.key.device, &b.model, &b.quant, b.prompt, b.generate)
        && a.text("artifact").is_some()
        && a.text("artifact") == b.text("artifact")
        && a.text("unit_requested") == b.text("unit_requested")
        && AXES.iter().all(|(column, _)| same_axis(column))
}

/// The value of an axis: `fixed:4096` is 4096, `n/a` is none.
fn plain(value: &str) -> Option<&str> {
    (value != "n/a").then(|| value.strip_prefix("fixed:").unwrap_or(value))
}

fn compare(run: &Run, above: &Cell, below: &Cell, metric: &str, pick: impl Fn(&Sample) -> Option<f64>) -> Result<Compared, String> {
    let estimate = |cell: &Cell| cell.metrics.get(metric).map(|estimate| estimate.median).filter(|median| *median > 0.0);
    let medians = estimate(above).zip(estimate(below)).ok_or("absent in one of the two")?;
    let values = |cell: &Cell| {
        let samples = run.samples.get(&cell.key)?;
        // An aggregate is one number for many: resampling it would make an interval out of nothing.
        if samples.iter().any(|sample| sample.aggregate) { None } else { Some(samples.iter().filter_map(&pick).collect::<Vec<_>>()) }
    };
    let ratio = values(above).zip(values(below)).and_then(|(above, below)| stats::ratio_of_medians(&above, &below, stats::DEFAULT_SEED));
    Ok(ratio.map_or(Compared::MediansOnly(medians.0 / medians.1), Compared::Measured))
}

impl Compared {
    /// The ratio itself.
    pub fn ratio(self) -> f64 {
        match self {
            Self::Measured(ratio) => ratio.ratio,
            Self::MediansOnly(ratio) => ratio,
        }
    }

    /// The ratio as text.
    pub fn figure(self) -> String {
        format!("{:.*}", self.decimals(), self.ratio())
    }

    /// A narrow interval beside 1 must not be rounded onto it.
    fn decimals(self) -> usize {
        match self {
            Self::Measured(ratio) if ratio.hi - ratio.lo < 0.1 => 3,
            _ => 2,
        }
    }

    /// Whether the two can be told apart.
    pub fn is_apart(self) -> bool {
        matches!(self, Self::Measured(ratio) if ratio.is_apart())
    }

    /// Its interval.
    pub fn interval(self) -> Option<String> {
        match self {
            Self::Measured(ratio) if ratio.coverage > 0.0 => {
                let decimals = self.decimals();
                Some(format!("{:.decimals$}–{:.decimals$}", ratio.lo, ratio.hi))
            }
            _ => None,
        }
    }

    fn title(self) -> String {
        match self {
            Self::Measured(ratio) if ratio.method == stats::Method::Bootstrap => "95 % interval, both samples resampled".into(),
            Self::Measured(ratio) => format!(
                "ends of the two order-statistics intervals divided by each other; coverage at least {:.1} %",
                ratio.coverage * 100.0
            ),
            Self::MediansOnly(_) => "ratio of the medians; no single values at hand, so no interval".into(),
        }
    }
}

/// The tables of the pairs, one for each two backends.
pub fn tables(pairs: &[Pair], what: &str) -> Vec<Pairing> {
    let mut tables: BTreeMap<(&str, &str), Pairing> = BTreeMap::new();
    for pair in pairs {
        let (above, below) = (pair.above.backend.as_str(), pair.below.backend.as_str());
        let table = tables.entry((above, below)).or_insert_with(|| Pairing {
            title: format!("{above} against {below} on the same {what}"),
            above: above.into(),
            below: below.into(),
            rows: Vec::new(),
            notes: Vec::new(),
        });
        for note in notes(pair) {
            if !table.notes.contains(&note) {
                table.notes.push(note);
            }
        }
        table.rows.push(PairRow {
            workload: workload(pair.above),
            quant: pair.above.quant.clone(),
            artifact: pair.above.text("artifact").unwrap_or_default().chars().take(12).collect(),
            metrics: vec![metric(pair, "ttft_ms", &pair.ttft), metric(pair, "decode_tok_s", &pair.decode)],
        });
    }
    tables.into_values().collect()
}

fn metric(pair: &Pair, name: &str, compared: &Result<Compared, String>) -> PairMetric {
    let figure = |cell: &Cell| cell.metrics.get(name).map_or_else(|| DASH.to_owned(), median);
    let (above, below) = (figure(pair.above), figure(pair.below));
    match compared {
        Err(reason) => {
            PairMetric { above, below, ratio: DASH.into(), interval: String::new(), verdict: reason.clone(), title: reason.clone() }
        }
        Ok(compared) => PairMetric {
            above,
            below,
            ratio: compared.figure(),
            interval: compared.interval().unwrap_or_default(),
            verdict: verdict(pair, name, *compared),
            title: compared.title(),
        },
    }
}

fn verdict(pair: &Pair, metric: &str, compared: Compared) -> String {
    if !compared.is_apart() {
        return "not told apart".into();
    }
    let ahead = if (compared.ratio() > 1.0) == higher_is_better(metric) { pair.above } else { pair.below };
    format!("{} {}", ahead.backend, if metric == "ttft_ms" { "sooner" } else { "faster" })
}

/// What differs although the artifact does not.
fn notes(pair: &Pair) -> Vec<String> {
    let mut notes = Vec::new();
    for cell in [pair.above, pair.below] {
        if cell.text("engine").is_some_and(|engine| engine == "genie") && cell.backend != "genie" {
            notes.push(format!("{} ran this model through Genie: two ways to start one engine", cell.backend));
        }
    }
    for (column, word) in [
        ("perf_profile", "performance profile"),
        ("chunk", "chunk of the prefill graph"),
        ("unit_found", "unit that worked"),
        ("runtime_version", "runtime"),
    ] {
        let (above, below) = (pair.above.text(column), pair.below.text(column));
        if above != below {
            let say = |value: Option<&str>| value.unwrap_or("not stated").to_owned();
            notes.push(format!("{word}: {} {}, {} {}", pair.above.backend, say(above), pair.below.backend, say(below)));
        }
    }
    notes
}
