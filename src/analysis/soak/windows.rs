//! Cutting a soak into windows.

use bench_backend_api::Query;

use super::{
    DOMAINS,
    answers::{self, Checked},
    figures::{Input, Window},
    heat::Heat,
    throttle::States,
    trace::{Trace, seconds},
};
use crate::stats;

/// Five times what a scenario may ask for: of a program whose agent was killed nobody knows when it ran, and one that gives times of another
/// clock must not fill the memory.
const MOST_WINDOWS: usize = 100_000;

/// What the tokens of a window add up to.
#[derive(Default)]
struct Filling {
    queries: u32,
    count: u32,
    ttft_ms: Vec<f64>,
    gaps_ms: Vec<f64>,
}

/// The windows from the first measured query to the last token. A last one of less than half the length is left out: its rate is chance.
pub fn cut(input: &Input<'_>, queries: &[&Query], (begin, last): (u64, u64), heat: &Heat<'_>, checked: &[Checked]) -> Vec<Window> {
    let w = input.window_ns.max(1);
    let whole = ((last - begin) / w) as usize;
    let rest = (last - begin) % w;
    let count = (whole + usize::from(rest * 2 >= w || whole == 0)).clamp(1, MOST_WINDOWS);
    // The last token of all lies on the end of its window. What comes after the last window is in none.
    let ends = begin.saturating_add((count as u64).saturating_mul(w)) >= last;
    let place = |t: u64| match t {
        t if t < begin => usize::MAX,
        t if t == last && ends => count - 1,
        t => ((t - begin) / w) as usize,
    };
    let mut filled: Vec<Filling> = Vec::new();
    filled.resize_with(count, Filling::default);
    for q in queries {
        let mut before: Option<u64> = None;
        for token in &q.tokens {
            if let Some(t) = filled.get_mut(place(token.t_ns)) {
                t.count += 1;
                match before {
                    None => t.ttft_ms.push(seconds(q.start_ns, token.t_ns) * 1e3),
                    Some(b) => t.gaps_ms.push(seconds(b, token.t_ns) * 1e3),
                }
            }
            before = Some(token.t_ns);
        }
        if let Some(t) = q.end_ns.and_then(|end| filled.get_mut(place(end))) {
            t.queries += 1;
        }
    }
    let states = States::of(input.trace, heat.hold_ns);
    filled
        .into_iter()
        .enumerate()
        .map(|(i, tokens)| {
            let from = begin + i as u64 * w;
            let to = (from + w).min(last);
            let mut window = of_tokens(&tokens, from, to);
            if input.speculative {
                window.itl_ms = None;
            }
            window.start_s = seconds(begin, from);
            let last_one = i + 1 == count;
            let inside = |c: &&Checked| c.t_ns >= from && (c.t_ns < to || (last_one && ends && c.t_ns == to));
            let (word, wrong, changed) = answers::verdict(checked.iter().filter(inside));
            (window.check, window.wrong, window.changed) = (word.to_owned(), wrong, changed);
            sampled(&mut window, input, heat, &states, (from, to));
            window
        })
        .collect()
}

fn of_tokens(t: &Filling, from: u64, to: u64) -> Window {
    let length_s = seconds(from, to);
    let quantiles = |values: &[f64], p: f64| stats::quantile(values, p);
    // Rule R5: tokens that came in one event say nothing about single ones.
    let merged = t.gaps_ms.iter().any(|gap| *gap <= 0.0);
    let largest = t.gaps_ms.iter().copied().reduce(f64::max);
    let itl = |p| quantiles(&t.gaps_ms, p);
    let sum: f64 = t.gaps_ms.iter().sum();
    Window {
        start_ns: from,
        length_s,
        queries: t.queries,
        tokens: t.count,
        tok_s: if length_s > 0.0 { f64::from(t.count) / length_s } else { 0.0 },
        decode_tok_s: (sum > 0.0).then(|| t.gaps_ms.len() as f64 * 1e3 / sum),
        ttft_ms: quantiles(&t.ttft_ms, 0.5).zip(quantiles(&t.ttft_ms, 0.9)).map(|(a, b)| [a, b]),
        itl_ms: (|| Some([itl(0.5)?, itl(0.9)?, itl(0.99)?, largest?]))().filter(|_| !merged),
        ..Window::default()
    }
}

fn sampled(window: &mut Window, input: &Input<'_>, heat: &Heat<'_>, states: &States<'_>, (from, to): (u64, u64)) {
    for domain in DOMAINS {
        if let Some(temps) = heat.extent(domain, from, to) {
            window.domains.insert(domain.to_owned(), temps);
        }
    }
    let mean = |source: &str, name: &str| Some(input.trace.get(source, name)?.extent(from, to, heat.hold_ns)?.mean);
    window.cpu_mhz = fastest(input.trace).and_then(|name| mean("cpufreq", &name));
    window.cpu_cap = states.lowest_cap(from, to);
    window.gpu_mhz = mean("gpu", "clock");
    window.ddr_mhz = mean("ddr", "DDR");
    window.npu_mhz = mean("npu", "q6_clock");
    window.cooling = states.highest_cooling(from, to);
    window.throttled = states.fraction(from, to);
    window.watts = input.power.and_then(|power| Some(power.extent(from, to, heat.hold_ns)?.mean));
}

/// The CPU cluster with the highest clock that it can have, or that it had.
fn fastest(trace: &Trace) -> Option<String> {
    let clusters = trace.of("cpufreq").filter(|(name, _)| !name.ends_with("_cap") && !name.ends_with("_max"));
    let highest = |name: &str, values: &[(u64, f64)]| {
        let told = trace.get("cpufreq", &format!("{name}_max")).and_then(|s| s.values().first().map(|v| v.1));
        told.or_else(|| values.iter().map(|v| v.1).reduce(f64::max))
    };
    let all = clusters.filter_map(|(name, series)| Some((highest(name, series.values())?, name.to_owned())));
    all.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}
