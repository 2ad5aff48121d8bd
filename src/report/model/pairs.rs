//! Two backends on the same artifacts: the one comparison in which only the framework differs.

use std::collections::BTreeMap;

use super::figures::{DASH, median};
use super::filters::keys;
use super::groups::{AXES, Timing, artifact_short, workload};
use super::view::{PairMetric, PairRow, Pairing};
use crate::report::load::{Cell, Launches, Run};
use crate::results::schema::METRICS;
use crate::stats::{self, Ends, Ratio};

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
    /// One of the two prints one mean for all queries of a launch.
    aggregate: Option<&'a str>,
}

/// A ratio of the medians of two cells.
#[derive(Debug, Clone, Copy)]
pub enum Compared {
    /// Of the values of these numbers of launches.
    Launches(Ratio, usize, usize),
    /// Of the medians in the tables; the launches' own values are not at hand.
    MediansOnly(f64),
}

/// All pairs of a panel, in the order of its cells.
pub fn pairs<'a>(run: &Run, cells: &[&'a Cell]) -> Vec<Pair<'a>> {
    let mut found = Vec::new();
    for above in cells {
        for below in cells.iter().filter(|below| matches(above, below)) {
            let (one, other) = (Timing::of(above), Timing::of(below));
            let methods = if above.is_composed() || below.is_composed() {
                Err("not compared: composed from graph times, not measured".to_owned())
            } else if one.context != other.context && !one.context.is_empty() && !other.context.is_empty() {
                Err(format!("not compared: started from {} against {}", one.context, other.context))
            } else if one.method == other.method {
                Ok(())
            } else {
                Err(format!("not compared: timed by {} against {}", one.method, other.method))
            };
            let scopes =
                if one.scope == other.scope { Ok(()) } else { Err(format!("not compared: {} against {}", one.scope, other.scope)) };
            let ttft = methods.clone().and(scopes).and_then(|()| compare(run, above, below, "ttft_ms", |launches| &launches.ttft_ms));
            let decode = methods.and_then(|()| compare(run, above, below, "decode_tok_s", |launches| &launches.decode_tok_s));
            let means = |cell: &Cell| run.launches.get(&cell.key).is_some_and(|launches| launches.aggregate);
            let aggregate = (means(above) != means(below)).then(|| if means(above) { &above.backend } else { &below.backend }.as_str());
            found.push(Pair { above, below, ttft, decode, aggregate });
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
        && a.artifact().is_some()
        && a.artifact() == b.artifact()
        && a.text("unit_requested") == b.text("unit_requested")
        && AXES.iter().all(|(column, _)| same_axis(column))
}

/// The value of an axis: `fixed:4096` is 4096, `n/a` is none.
fn plain(value: &str) -> Option<&str> {
    (value != "n/a").then(|| value.strip_prefix("fixed:").unwrap_or(value))
}

fn compare(run: &Run, above: &Cell, below: &Cell, metric: &str, pick: impl Fn(&Launches) -> &Vec<f64>) -> Result<Compared, String> {
    let estimate = |cell: &Cell| cell.metrics.get(metric).map(|estimate| estimate.median).filter(|median| *median > 0.0);
    let medians = estimate(above).zip(estimate(below)).ok_or("absent in one of the two")?;
    let values = |cell: &Cell| run.launches.get(&cell.key).map(&pick).filter(|values| !values.is_empty());
    let found = values(above).zip(values(below)).and_then(|(above, below)| {
        let ratio = stats::ratio_of_medians(above, below, stats::DEFAULT_SEED)?;
        Some(Compared::Launches(ratio, above.len(), below.len()))
    });
    Ok(found.unwrap_or(Compared::MediansOnly(medians.0 / medians.1)))
}

impl Compared {
    /// The ratio itself.
    pub fn ratio(self) -> f64 {
        match self {
            Self::Launches(ratio, ..) => ratio.ratio,
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
            Self::Launches(ratio, ..) if ratio.ends != Ends::Range && ratio.hi - ratio.lo < 0.1 => 3,
            _ => 2,
        }
    }

    /// Whether the two can be told apart.
    pub fn is_apart(self) -> bool {
        matches!(self, Self::Launches(ratio, ..) if ratio.is_apart())
    }

    /// Whether there are launches enough for an interval at all.
    pub fn has_interval(self) -> bool {
        matches!(self, Self::Launches(ratio, ..) if ratio.ends != Ends::Range)
    }

    /// Its interval or range.
    fn between(self) -> Option<String> {
        match self {
            Self::Launches(_, 1, 1) | Self::MediansOnly(_) => None,
            Self::Launches(ratio, ..) => {
                let decimals = self.decimals();
                Some(format!("{:.decimals$}–{:.decimals$}", ratio.lo, ratio.hi))
            }
        }
    }

    /// How the ends were made.
    fn ends(self) -> String {
        let launches = |above: usize, below: usize| match above.max(below) {
            1 => "1 launch a side".to_owned(),
            _ if above == below => format!("{above} launches a side"),
            _ => format!("{above} and {below} launches"),
        };
        match self {
            Self::Launches(ratio, above, below) => {
                let ends = match ratio.ends {
                    Ends::Bootstrap => "95 % interval, the launches of both sides resampled".to_owned(),
                    Ends::Divided => "interval of at least 95 %, the ends of the two sides' own intervals divided by each other".to_owned(),
                    Ends::Range => {
                        let range = if above.max(below) == 1 { "" } else { "smallest to largest quotient of two launches; " };
                        format!(
                            "{range}too few launches for a 95 % interval, which takes {} a side, so no verdict",
                            stats::FEWEST_FOR_RATIO
                        )
                    }
                };
                format!("{}: {ends}", launches(above, below))
            }
            Self::MediansOnly(_) => "the launches' own values are not at hand: no interval, so no verdict".into(),
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
            ends: Vec::new(),
            notes: Vec::new(),
        });
        let mut once = |note: String| {
            if !table.notes.contains(&note) {
                table.notes.push(note);
            }
        };
        notes(pair).into_iter().for_each(&mut once);
        for compared in [&pair.ttft, &pair.decode].into_iter().flatten() {
            let ends = compared.ends();
            if !table.ends.contains(&ends) {
                table.ends.push(ends);
            }
        }
        let artifact = pair.above.text("artifact").unwrap_or_default();
        table.rows.push(PairRow {
            keys: keys(&[pair.above, pair.below]),
            workload: workload((pair.above.prompt, pair.above.generate)),
            quant: pair.above.quant.clone(),
            artifact: artifact_short(artifact),
            artifact_whole: artifact.to_owned(),
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
            interval: compared.between().unwrap_or_default(),
            verdict: verdict(pair, name, *compared),
            title: compared.ends(),
        },
    }
}

fn verdict(pair: &Pair, metric: &str, compared: Compared) -> String {
    if !compared.has_interval() {
        return if matches!(compared, Compared::MediansOnly(_)) { "no interval" } else { "too few launches" }.into();
    }
    if !compared.is_apart() {
        return "not told apart".into();
    }
    let higher_is_better = METRICS.iter().any(|known| known.name == metric && known.higher_is_better);
    let ahead = if (compared.ratio() > 1.0) == higher_is_better { pair.above } else { pair.below };
    format!("{} {}", ahead.backend, if metric == "ttft_ms" { "sooner" } else { "faster" })
}

/// What differs although the artifact does not.
fn notes(pair: &Pair) -> Vec<String> {
    let mut notes = Vec::new();
    for (cell, other) in [(pair.above, pair.below), (pair.below, pair.above)] {
        // `graph`: by itself, from the graphs of the model. Anything else is the engine behind the backend (rule R14).
        let Some(engine) = cell.text("engine").filter(|engine| *engine != "graph" && *engine != cell.backend) else { continue };
        let same = if engine == other.backend || other.text("engine") == Some(engine) { ": two ways to start one engine" } else { "" };
        notes.push(format!("{} ran this model through {engine}{same}", cell.backend));
    }
    notes.extend(
        pair.aggregate.map(|backend| format!("{backend} prints one mean for all queries of a launch, the other's launch is a median")),
    );
    for (column, word) in [
        ("perf_profile", "performance profile"),
        ("chunk", "chunk of the prefill graph"),
        ("compiled_context", "context that the graphs attend over"),
        ("template", "template of the prompts"),
        ("sampling", "sampling"),
        ("decoding", "decoding"),
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
