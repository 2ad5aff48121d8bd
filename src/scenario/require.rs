//! Requirements: what the product needs of a cell. The words of `[[require]]` as data, and one checked entry.

use std::collections::BTreeMap;

use bench_backend_api::Cell;
use serde::{Deserialize, Serialize};

use super::{
    key::{Key, cell_has},
    limit::Limit,
    suggest::show,
};

/// A checked `[[require]]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Requirement {
    /// Word of a [`Subject`].
    pub metric: String,
    /// What it may be at most or has to be at least.
    pub limit: Limit,
    /// The limit as the scenario writes it, with its unit.
    pub text: String,
    /// Which value of it; absent where there is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistic: Option<Statistic>,
    /// Part of the answer that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Minute of the soak, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minute: Option<u32>,
    /// Which cells: values by key of the matrix.
    #[serde(default)]
    pub cells: BTreeMap<String, Vec<String>>,
}

impl Requirement {
    /// Whether it is about a cell.
    pub fn selects(&self, cell: &Cell) -> bool {
        self.cells.iter().all(|(word, values)| Key::parse(word).is_some_and(|key| values.iter().any(|value| cell_has(cell, key, value))))
    }

    /// What no scenario can have said: of a stored plan that was changed.
    pub fn fault(&self) -> Option<String> {
        let fits = self.limit.fits(self.subject()?);
        (!fits).then(|| format!("require.limit of {} is none that it can have, {}", show(&self.metric), self.limit.words()))
    }

    /// What it is about; `None` for the word of a newer version.
    pub fn subject(&self) -> Option<&'static Subject> {
        Subject::parse(&self.metric)
    }

    /// It in a line: `ttft p95 <= 380ms (prompt-tokens 128)`.
    pub fn words(&self) -> String {
        let statistic = self.statistic.map(|s| format!(" {}", s.as_str())).unwrap_or_default();
        let phase = self.phase.map(|p| format!("phase {}", p.as_str()));
        let minute = self.minute.map(|m| format!("minute {m}"));
        let cells = self.cells.iter().map(|(key, values)| format!("{key} {}", values.join("|")));
        let conditions: Vec<String> = cells.chain(phase).chain(minute).collect();
        format!("{}{statistic} {} ({})", self.metric, self.text, conditions.join(", "))
    }
}

/// Which value of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// The middle one.
    Median,
    /// What 90 % of the queries keep to.
    P90,
    /// What 95 % of the queries keep to.
    P95,
    /// What 99 % of the queries keep to.
    P99,
    /// All that the device draws.
    Gross,
    /// Without what the idle device draws.
    Net,
}
impl Statistic {
    /// All of them.
    pub const ALL: &[Self] = &[Self::Median, Self::P90, Self::P95, Self::P99, Self::Gross, Self::Net];

    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Median => "median",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::Gross => "gross",
            Self::Net => "net",
        }
    }

    /// Share of the queries that keep to the value; `None` for those that are no quantile.
    pub const fn share(self) -> Option<f64> {
        match self {
            Self::Median => Some(0.5),
            Self::P90 => Some(0.9),
            Self::P95 => Some(0.95),
            Self::P99 => Some(0.99),
            Self::Gross | Self::Net => None,
        }
    }

    /// The one that a word names; `p50` is the median.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|s| s.as_str() == word || (*s == Self::Median && word == "p50"))
    }
}

/// Part of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Until the first token.
    Prefill,
    /// From the first token on.
    Decode,
    /// Both, and the time between queries.
    All,
}
impl Phase {
    /// All of them.
    pub const ALL: &[Self] = &[Self::Prefill, Self::Decode, Self::All];

    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Prefill => "prefill",
            Self::Decode => "decode",
            Self::All => "all",
        }
    }

    /// The one that a word names.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|p| p.as_str() == word)
    }
}

/// What a requirement can be about.
#[derive(Debug, Clone, Copy)]
pub struct Subject {
    /// Its word.
    pub word: &'static str,
    /// Where its values are.
    pub source: Source,
    /// Units that a limit may have, each with its factor to that of the column. The first is the column's own.
    pub units: &'static [(&'static str, f64)],
    /// A higher value is better.
    pub higher_is_better: bool,
    /// Words of `statistic`.
    pub statistics: &'static [&'static str],
    /// `statistic` has to be given: there is no usual one.
    pub ask_statistic: bool,
    /// Conditions without which its limit means nothing (rule R27).
    pub needs: &'static [Need],
}
impl Subject {
    /// The one that a word names.
    pub fn parse(word: &str) -> Option<&'static Self> {
        SUBJECTS.iter().find(|s| s.word == word)
    }
}

/// Where the values of a subject are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A metric, one value a query or launch.
    Metric(&'static str),
    /// A quantile of the gaps between tokens: the statistic names the metric.
    Gaps,
    /// Watts of a phase.
    Power,
    /// Joules of a token of a phase.
    Energy,
    /// Throughput in a minute of the soak, in tokens a second.
    Soak,
    /// That over the soak's first stretch.
    SoakRatio,
    /// A column of `cells.csv` that is what it is: no interval belongs to it.
    Exact(&'static str),
    /// A column of `cells.csv` that holds a word.
    Word(&'static str, &'static [&'static str]),
    /// The verdict of `support.csv` over the cell's model, quantisation, backend and unit, and how the cell itself ended.
    Support(&'static [&'static str]),
}
impl Source {
    /// The words that a limit can ask for; `None` where it is a number.
    pub const fn words(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Word(_, words) | Self::Support(words) => Some(words),
            _ => None,
        }
    }
}

/// A condition that a subject needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// A key of the matrix.
    Cells(Key),
    /// Part of the answer.
    Phase,
    /// Minute of the soak.
    Minute,
    /// Anything that says which cells.
    Any,
}

const MS: &[(&str, f64)] = &[("ms", 1.0), ("s", 1e3), ("us", 1e-3)];
const TOK_S: &[(&str, f64)] = &[("tok/s", 1.0)];
const MB: &[(&str, f64)] = &[("MB", 1.0), ("GB", 1e3), ("kB", 1e-3), ("MiB", 1.048_576), ("GiB", 1_073.741_824)];
const WATT: &[(&str, f64)] = &[("W", 1.0), ("mW", 1e-3)];
const JOULE: &[(&str, f64)] = &[("J/tok", 1.0), ("mJ/tok", 1e-3)];
const SHARE: &[(&str, f64)] = &[("", 1.0), ("%", 0.01)];
const PER_PERCENT: &[(&str, f64)] = &[("tok/%", 1.0)];
const QUANTILES: &[&str] = &["median", "p50", "p90", "p95", "p99"];
const PROMPT: Need = Need::Cells(Key::PromptTokens);
const GENERATED: Need = Need::Cells(Key::GenTokens);

const fn metric(word: &'static str, column: &'static str, units: &'static [(&'static str, f64)], needs: &'static [Need]) -> Subject {
    // Durations and sizes are better when low, rates when high.
    let higher_is_better = matches!(units[0].0.as_bytes(), b"tok/s" | b"tok/%");
    Subject { word, source: Source::Metric(column), units, higher_is_better, statistics: QUANTILES, ask_statistic: false, needs }
}

const fn other(word: &'static str, source: Source, units: &'static [(&'static str, f64)], higher: bool, needs: &'static [Need]) -> Subject {
    Subject { word, source, units, higher_is_better: higher, statistics: &[], ask_statistic: false, needs }
}

const fn asked(subject: Subject, statistics: &'static [&'static str]) -> Subject {
    Subject { statistics, ask_statistic: true, ..subject }
}

/// Every word of `metric`.
pub const SUBJECTS: &[Subject] = &[
    metric("ttft", "ttft_ms", MS, &[PROMPT]),
    metric("prefill", "prefill_tok_s", TOK_S, &[PROMPT]),
    metric("decode", "decode_tok_s", TOK_S, &[PROMPT]),
    metric("tpot", "tpot_ms", MS, &[PROMPT]),
    asked(other("itl", Source::Gaps, MS, false, &[PROMPT]), &["p50", "p90", "p99"]),
    metric("e2e", "e2e_ms", MS, &[PROMPT, GENERATED]),
    metric("load", "load_ms", MS, &[Need::Any]),
    metric("memory", "peak_mem_mb", MB, &[PROMPT]),
    asked(other("power", Source::Power, WATT, false, &[Need::Phase]), &["gross", "net"]),
    asked(other("energy", Source::Energy, JOULE, false, &[Need::Phase]), &["net"]),
    metric("tokens-per-battery-percent", "tokens_per_battery_pct", PER_PERCENT, &[PROMPT, GENERATED]),
    other("sustained", Source::Soak, TOK_S, true, &[Need::Minute]),
    other("sustained-ratio", Source::SoakRatio, SHARE, true, &[Need::Minute]),
    other("agreement", Source::Exact("token_agreement"), SHARE, true, &[Need::Any]),
    other("model-size", Source::Exact("model_mb"), MB, false, &[Need::Any]),
    other("stability", Source::Word("stability", &["stable"]), &[], true, &[Need::Any]),
    other("placement", Source::Word("unit_found", &["cpu", "gpu", "npu", "hybrid"]), &[], true, &[Need::Any]),
    other("support", Source::Support(&["runs"]), &[], true, &[Need::Any]),
];
