//! The input and the outcome of a soak's analysis.

use std::collections::BTreeMap;

use bench_backend_api::Query;
use serde::{Deserialize, Serialize};

use super::{
    answers::{self, Checked},
    heat, outliers, throttle,
    trace::{Series, Trace, ns, seconds},
    windows,
};

/// Everything that is known of one launch of a soak.
pub struct Input<'a> {
    /// Its queries in order, the discarded ones too, times in `CLOCK_MONOTONIC` ns.
    pub queries: &'a [Query],
    /// Queries at the start that are discarded.
    pub warmup: u32,
    /// Tokens are guessed ahead: the time between two of them is none of a step (rule R5).
    pub speculative: bool,
    /// Listed prompts: query n has the prompt n mod this.
    pub prompts: u32,
    /// Tokens asked of a query.
    pub gen_tokens: u32,
    /// The reference's tokens for each listed prompt.
    pub reference: Option<&'a [Vec<u32>]>,
    /// Share of tokens before the first difference that a right answer has.
    pub least_agreement: f64,
    /// What was sampled.
    pub trace: &'a Trace,
    /// Largest value of each zone, where it is known better than from the samples.
    pub peaks: &'a BTreeMap<String, f64>,
    /// The part of the device that a zone belongs to, one of [`super::DOMAINS`] or another word.
    pub domain: &'a dyn Fn(&str) -> Option<&'static str>,
    /// The part whose heat this cell's is: that of the processor that was asked for.
    pub own_domain: &'static str,
    /// Watts over time, where there is a source that says so.
    pub power: Option<&'a Series>,
    /// Length of a window, in ns.
    pub window_ns: u64,
    /// Duration asked for, in seconds.
    pub asked_s: f64,
    /// Why it ended before that.
    pub early: Option<String>,
}

/// One window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Start, in seconds since the first measured query was submitted.
    pub start_s: f64,
    /// Start, `CLOCK_MONOTONIC` ns.
    pub start_ns: u64,
    /// Length in seconds; the last one may be shorter.
    pub length_s: f64,
    /// Queries that ended in it.
    pub queries: u32,
    /// Tokens that came out in it.
    pub tokens: u32,
    /// Tokens per second of the window, prefill and the time between queries included.
    pub tok_s: f64,
    /// Tokens per second of decoding: gaps between tokens over their sum.
    pub decode_tok_s: Option<f64>,
    /// Median and 90 % quantile of the TTFT of queries whose first token came in it, in ms.
    pub ttft_ms: Option<[f64; 2]>,
    /// Median, 90 %, 99 % quantile and largest gap between tokens, in ms.
    pub itl_ms: Option<[f64; 4]>,
    /// Mean and largest temperature by part of the device, of its hottest zone, in C.
    #[serde(default)]
    pub domains: BTreeMap<String, [f64; 2]>,
    /// Mean clock of the fastest CPU cluster, in MHz.
    pub cpu_mhz: Option<f64>,
    /// Lowest cap of any CPU cluster over what it can do, 0 to 1.
    pub cpu_cap: Option<f64>,
    /// Mean clock of the GPU, in MHz.
    pub gpu_mhz: Option<f64>,
    /// Mean clock of the memory, in MHz.
    pub ddr_mhz: Option<f64>,
    /// Mean clock of the compute DSP, in MHz.
    pub npu_mhz: Option<f64>,
    /// Highest state of any cooling device.
    pub cooling: Option<f64>,
    /// Share of the window's time in which a cooling device worked or a cluster was capped.
    pub throttled: Option<f64>,
    /// Mean power in W, each reading for as long as it stands.
    pub watts: Option<f64>,
    /// `confirmed`, `contradicted` or `not-checkable`: the answers that ended in it against the reference, or, without one, against the first
    /// answer to the same prompt.
    pub check: String,
    /// Answers under the agreement that is asked for.
    pub wrong: u32,
    /// Answers that differ from the first one to the same prompt.
    pub changed: u32,
}

/// A rise of temperature, in C per minute, with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rise {
    /// C per minute.
    pub value: f64,
    /// Lower end.
    pub lo: f64,
    /// Upper end.
    pub hi: f64,
}

/// What throttled first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Throttle {
    /// Seconds since the first measured query; negative while it was loading or warming up.
    pub t_s: f64,
    /// The cooling device or the cap.
    pub name: String,
    /// Before and after: states, or MHz.
    pub change: [f64; 2],
}

/// How latency goes with temperature over the windows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Association {
    /// Spearman's rank correlation.
    pub rho: f64,
    /// Least-squares slope in ms per C.
    pub slope: f64,
    /// Windows.
    pub n: u32,
}

/// Something that happened in a soak.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Happening {
    /// Seconds since the first measured query.
    pub t_s: f64,
    /// `throttle`, `slow-token`, `wrong-tokens`, `changed-tokens`, `end`.
    pub kind: String,
    /// In words.
    pub what: String,
    /// Temperature of the cell's own part of the device at that time, in C.
    pub temp_c: Option<f64>,
}

/// What the measured queries add up to: their record is too long to be kept, and memory's growth, power and the NPU's counters are of all of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Worked {
    /// The first one that gave a token.
    pub first: Query,
    /// The last one that did.
    pub last: Query,
    /// Queries that did.
    pub queries: u32,
    /// Their prompt tokens.
    pub prompt_tokens: Option<u64>,
    /// Tokens that came out.
    pub gen_tokens: u64,
    /// From submission to first token, all together, in seconds.
    pub prefill_s: f64,
    /// From first to last token, all together, in seconds.
    pub decode_s: f64,
}
impl Worked {
    fn of(measured: &[&Query]) -> Option<Self> {
        let answered = || measured.iter().copied().filter(|q| q.aggregate_n.is_none() && !q.tokens.is_empty());
        let (first, last) = (answered().next()?, answered().next_back()?);
        let mut all = Self {
            first: first.clone(),
            last: last.clone(),
            queries: 0,
            prompt_tokens: Some(0),
            gen_tokens: 0,
            prefill_s: 0.0,
            decode_s: 0.0,
        };
        for q in answered() {
            let (Some(begin), Some(end)) = (q.tokens.first(), q.tokens.last()) else { continue };
            all.queries += 1;
            let prompt_tokens = q.prompt_tokens.or(q.prompt_tokens_reported);
            all.prompt_tokens = all.prompt_tokens.zip(prompt_tokens).map(|(sum, own)| sum + u64::from(own));
            all.gen_tokens += q.tokens.len() as u64;
            all.prefill_s += seconds(q.start_ns, begin.t_ns);
            all.decode_s += seconds(begin.t_ns, end.t_ns);
        }
        Some(all)
    }

    /// The two queries that are kept, or the one if they are the same.
    pub fn ends(&self) -> Vec<Query> {
        if self.first.query == self.last.query { vec![self.first.clone()] } else { vec![self.first.clone(), self.last.clone()] }
    }
}

/// The outcome.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Soak {
    /// The windows in order.
    pub windows: Vec<Window>,
    /// What happened, in order of time.
    pub happenings: Vec<Happening>,
    /// What the measured queries add up to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worked: Option<Worked>,
    /// From the first measured query to the last token, in seconds.
    pub length_s: f64,
    /// What was asked, in seconds.
    pub asked_s: f64,
    /// Why it ended before its time.
    pub early: Option<String>,
    /// Length of the stretches at start and end that are compared, in seconds: 60, or a third of a shorter soak.
    pub span_s: Option<f64>,
    /// Median throughput of the first stretch.
    pub initial_tok_s: Option<f64>,
    /// Median throughput of the last stretch over that of the first.
    pub sustained_ratio: Option<f64>,
    /// Start of the first of two windows in a row under 0.9 of the initial throughput, in seconds.
    pub time_to_throttle_s: Option<f64>,
    /// From when on all windows stay within 5 % of their median, in seconds.
    pub steady_state_s: Option<f64>,
    /// Share of the time in which a cooling device worked or a cluster was capped.
    pub throttled_fraction: Option<f64>,
    /// Median throughput of the first minute.
    pub minute_1_tok_s: Option<f64>,
    /// Median throughput of the thirtieth minute.
    pub minute_30_tok_s: Option<f64>,
    /// Highest temperature by part of the device, in C.
    #[serde(default)]
    pub peaks: BTreeMap<String, f64>,
    /// The part whose rise is told.
    pub heat_domain: Option<String>,
    /// Rise over the first 60 s.
    pub rise_60s: Option<Rise>,
    /// Rise over the first 5 min.
    pub rise_5min: Option<Rise>,
    /// What throttled first.
    pub first_throttle: Option<Throttle>,
    /// Latency against temperature.
    pub latency_temp: Option<Association>,
    /// Figure and reason, for each that there is not.
    pub absent: Vec<(String, String)>,
}

/// The figures of a soak. `None` if no measured query began.
pub fn analyse(input: &Input<'_>) -> Option<Soak> {
    let measured: Vec<&Query> = input.queries.iter().filter(|q| q.query >= input.warmup).collect();
    let begin = measured.first()?.start_ns;
    let last = measured.iter().map(|q| q.end_ns.unwrap_or(0).max(q.tokens.last().map_or(q.start_ns, |t| t.t_ns))).max()?;
    let hold_ns = (2 * input.window_ns).max(ns(10.0));
    let checked: Vec<Checked> = answers::check(input);
    let heat = heat::Heat { trace: input.trace, domain: input.domain, hold_ns };
    let domain =
        heat.has(input.own_domain).then_some(input.own_domain).or_else(|| ["skin", "cpu", "battery"].into_iter().find(|d| heat.has(d)));

    let mut soak = Soak { asked_s: input.asked_s, early: input.early.clone(), length_s: seconds(begin, last), ..Soak::default() };
    soak.worked = Worked::of(&measured);
    soak.windows = windows::cut(input, &measured, (begin, last), &heat, &checked);
    let mut absent: Vec<(&str, &str)> = Vec::new();
    throttle::put(&mut soak, &mut absent);
    let states = throttle::States::of(input.trace, hold_ns);
    soak.throttled_fraction = states.fraction(begin, last);
    if soak.throttled_fraction.is_none() {
        absent.push(("throttled_fraction", "neither cooling devices nor caps of the CPU can be read"));
    }
    soak.first_throttle =
        states.first().filter(|(t, ..)| *t <= last).map(|(t, name, change)| Throttle { t_s: seconds(begin, t), name, change });
    if soak.first_throttle.is_none() {
        let why = if states.any() { "nothing was throttled" } else { "neither cooling devices nor caps of the CPU can be read" };
        absent.push(("first_throttle", why));
    }
    soak.peaks = heat.peaks(input.peaks);
    soak.heat_domain = domain.map(str::to_owned);
    let heated = input.queries.first().map_or(begin, |q| q.start_ns);
    for (figure, minutes, into) in [("rise_60s", 1.0, &mut soak.rise_60s), ("rise_5min", 5.0, &mut soak.rise_5min)] {
        match domain {
            None => absent.push((figure, "no temperature of this part of the device, nor of its case")),
            Some(_) if seconds(heated, last) < 60.0 * minutes => absent.push((figure, "not reached")),
            Some(domain) => {
                *into = heat.rise(domain, heated, minutes);
                if into.is_none() {
                    absent.push((figure, "the temperature was not read at both ends"));
                }
            }
        }
    }
    soak.latency_temp = domain.and_then(|d| heat::association(&soak.windows, d));
    if soak.latency_temp.is_none() {
        absent.push(("latency_temp", "fewer than 5 windows with a latency and a temperature that changed"));
    }
    let temp = |t: u64| domain.and_then(|d| heat.at(d, t));
    happen(&mut soak, input, begin, &checked, &states, &temp);
    soak.absent = absent.into_iter().map(|(figure, why)| (figure.to_owned(), why.to_owned())).collect();
    Some(soak)
}

fn happen(
    soak: &mut Soak,
    input: &Input<'_>,
    begin: u64,
    checked: &[Checked],
    states: &throttle::States<'_>,
    temp: &dyn Fn(u64) -> Option<f64>,
) {
    let mut all = Vec::new();
    if let Some(first) = &soak.first_throttle {
        let at = begin.saturating_add_signed((first.t_s * 1e9) as i64);
        let what = format!("{} from {} to {}", first.name, first.change[0], first.change[1]);
        all.push(Happening { t_s: first.t_s, kind: "throttle".to_owned(), what, temp_c: temp(at) });
    }
    let mut tell = |kind: &str, found: Option<&Checked>, words: &str| {
        if let Some(c) = found {
            let what = format!("query {}: {words} (token {} is the first that differs)", c.query, c.differs.unwrap_or(0));
            all.push(Happening { t_s: seconds(begin, c.t_ns), kind: kind.to_owned(), what, temp_c: temp(c.t_ns) });
        }
    };
    tell("wrong-tokens", checked.iter().find(|c| c.wrong == Some(true)), "the first answer that disagrees with the reference");
    tell("changed-tokens", checked.iter().find(|c| c.changed), "the first answer that is not the same as before to the same prompt");
    all.extend(outliers::find(input, begin, states, temp));
    if let Some(why) = &soak.early {
        let t_ns = begin.saturating_add(ns(soak.length_s));
        all.push(Happening { t_s: soak.length_s, kind: "end".to_owned(), what: why.clone(), temp_c: temp(t_ns) });
    }
    all.sort_by(|a, b| a.t_s.total_cmp(&b.t_s));
    soak.happenings = all;
}
