//! The history for people.

use std::{borrow::Borrow, collections::BTreeMap, fmt::Write};

use super::{History, Part};
use crate::{
    cli::console::printable,
    gate::{
        history::{self, Figure, Gap, LeftOut, NoFigure, Run, Series, StepNight, Trend},
        nights::Judgement,
        unlike::{Difference, Weight},
        verdict::Verdict,
    },
    results::folder::id_of,
    words::{self, count, figure, percent, tenths},
};

/// Characters of a sparkline.
const WIDTH: usize = 32;
/// Names of a list that are told before "and N more".
const SHOWN: usize = 5;

/// All of it.
pub fn text(history: &History, asked: f64) -> String {
    let runs = &history.scan.runs;
    let mut lines = Vec::new();
    if let (Some(first), Some(last)) = (runs.first(), runs.last()) {
        lines.push(format!("{}, from {} to {}", count(runs.len(), "run"), day(first), day(last)));
    }
    for part in &history.parts {
        lines.extend(metric(part, runs, asked));
    }
    lines.extend(history.remarks.iter().map(|remark| format!("note: {remark}")));
    lines.extend(left_out(&history.scan.left_out));
    lines.iter().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "{}", printable(line));
        text
    })
}

fn metric(part: &Part, runs: &[Run], asked: f64) -> Vec<String> {
    let better = if part.metric.higher_is_better { "higher" } else { "lower" };
    let mut lines = vec![String::new(), format!("{} ({better} is better; {} matters)", part.metric.name, percent(asked))];
    let mut group = None;
    for trend in &part.trends {
        let key = &trend.series.key;
        let heading = (&key.scenario, &key.device, &key.class);
        if group != Some(heading) {
            group = Some(heading);
            let is_own = |t: &Trend| (&t.series.key.scenario, &t.series.key.device, &t.series.key.class) == heading;
            let of: Vec<&Trend> = part.trends.iter().filter(|t| is_own(t)).collect();
            lines.push(format!("  {} on {} ({}): {}", or(&key.scenario, "scenario without a name"), key.device, key.class, tally(&of)));
            lines.extend(of.into_iter().map(|trend| format!("    {}", line(trend, part, runs))));
            let steps = part.steps.iter().filter(|step| step.lines.iter().any(|(place, _)| is_own(&part.trends[*place])));
            lines.extend(steps.flat_map(|step| step_words(step, part, runs, |series| series.key.cell.clone())));
        }
    }
    if part.steps.is_empty() {
        lines.push(format!("  no step of {} or more was found", percent(asked / 2.0)));
    }
    lines
}

/// How many figures have which verdict.
pub fn tally(trends: &[&Trend]) -> String {
    let mut counts: BTreeMap<Option<Verdict>, usize> = BTreeMap::new();
    for trend in trends {
        *counts.entry(trend.tonight.as_ref().ok().map(|tonight| tonight.verdict)).or_default() += 1;
    }
    let word =
        |(verdict, n): (&Option<Verdict>, &usize)| format!("{n} {}", verdict.map_or("without a figure in the last run", Verdict::word));
    counts.iter().rev().map(word).collect::<Vec<_>>().join(", ")
}

fn line(trend: &Trend, part: &Part, runs: &[Run]) -> String {
    let series = &trend.series;
    let higher = part.metric.higher_is_better;
    let last = series.points.iter().rev().find_map(|point| match point.figure {
        Figure::Value { at, .. } => Some(figure(at)),
        Figure::None(_) => None,
    });
    let (word, words) = judged(trend, higher, runs);
    let words = if word.is_empty() { words } else { format!("{word:<9} {words}") };
    format!("{} {:>8}  {words}  {}{}", sparkline(series), last.unwrap_or_else(|| "-".to_owned()), series.key.cell, apart(trend, part))
}

/// What tells a line from others of its cell: the way of measuring, and the processor where a device's name had several.
pub fn apart(trend: &Trend, part: &Part) -> String {
    let key = &trend.series.key;
    let chips = part
        .trends
        .iter()
        .any(|t| (&t.series.key.scenario, &t.series.key.device) == (&key.scenario, &key.device) && t.series.key.chip != key.chip);
    let method = if key.method.is_empty() { String::new() } else { format!(" ({})", key.method) };
    if chips { format!("{method} on {}", or(&key.chip, "a processor that is not stated")) } else { method }
}

/// Verdict on the last run, and the change that it rests on; without a figure no word, and why there is none.
pub fn judged(trend: &Trend, higher_is_better: bool, runs: &[Run]) -> (&'static str, String) {
    match &trend.tonight {
        Ok(Judgement { verdict, effect, window, mde, reasons, .. }) => {
            let change = effect.map_or_else(
                || reasons.join("; "),
                |effect| {
                    let (ratio, lo, hi) = effect.ratio(higher_is_better);
                    let nights = if *window > 1 { format!(" over {window} runs") } else { String::new() };
                    format!("{} [{}, {}]{nights}", signed(ratio), signed(lo), signed(hi))
                },
            );
            let least = mde.map_or_else(String::new, |mde| format!(", finds {} %", tenths(mde)));
            (verdict.word(), format!("{change}{least}"))
        }
        Err(why) => ("", no_figure(*why, &trend.series, runs)),
    }
}

fn no_figure(why: NoFigure, series: &Series, runs: &[Run]) -> String {
    let why = match why {
        NoFigure::NotInIt => "not in the last run",
        NoFigure::Gap(Gap::Absent) => "not measured in the last run",
        NoFigure::Gap(Gap::Skipped) => "skipped in the last run",
        NoFigure::Gap(Gap::Infra) => "lost in the last run to the device or its surroundings",
        NoFigure::Gap(Gap::Failed) => "failed in the last run",
        NoFigure::Gap(Gap::Unverified) => "contradicted by a check in the last run",
    };
    let last = series.points.iter().rev().find(|point| matches!(point.figure, Figure::Value { .. }));
    last.map_or_else(|| format!("{why}, never measured"), |point| format!("{why}; last figure of {}", day(&runs[point.run])))
}

/// The values over the runs: medians of as many runs as go into a character, from the lowest to the highest, but at least 5 % of the scale, so that
/// noise looks like noise. A stretch without a figure is a blank.
pub(super) fn sparkline(series: &Series) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let bins = series.points.len().min(WIDTH);
    let of_bin = |bin: usize| {
        let (from, to) = (bin * series.points.len() / bins, (bin + 1) * series.points.len() / bins);
        let values: Vec<f64> = series.points[from..to]
            .iter()
            .filter_map(|point| match point.figure {
                Figure::Value { at, .. } => Some(at),
                Figure::None(_) => None,
            })
            .collect();
        crate::stats::median(&values)
    };
    let values: Vec<Option<f64>> = (0..bins).map(of_bin).collect();
    let (low, high) = values.iter().flatten().fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(*value), high.max(*value)));
    let middle = f64::midpoint(low, high);
    let span = (high - low).max(0.05 * middle);
    let level = |value: &Option<f64>| {
        value.map_or(' ', |value| {
            let place = (value - (middle - span / 2.0)) / span * LEVELS.len() as f64;
            LEVELS[(place.max(0.0) as usize).min(LEVELS.len() - 1)]
        })
    };
    let text: String = values.iter().map(level).collect();
    format!("{text:<WIDTH$}")
}

/// A step: a title, and beneath it which cells, as they are called here, and what changed.
pub fn step_words(step: &StepNight, part: &Part, runs: &[Run], called: impl Fn(&Series) -> String) -> Vec<String> {
    let higher = part.metric.higher_is_better;
    let plain = |log: f64| if higher { (-log).exp() } else { log.exp() };
    let mut logs: Vec<f64> = step.lines.iter().map(|(_, log)| *log).collect();
    logs.sort_by(f64::total_cmp);
    let (low, high) = (logs.first().copied().unwrap_or(0.0), logs.last().copied().unwrap_or(0.0));
    let far = if step.lines.len() == 1 { signed(plain(low)) } else { format!("{} to {}", signed(plain(high)), signed(plain(low))) };
    let word = if low > 0.0 {
        "worse"
    } else if high < 0.0 {
        "better"
    } else {
        "some better, some worse"
    };
    let mut lines = vec![format!(
        "  step on {} at {}: {} {far}, {word}",
        day(&runs[step.at]),
        id_of(&runs[step.at].folder),
        count(step.lines.len(), "cell")
    )];
    let gap = match history::between(runs, step.before, step.at) {
        0 => String::new(),
        gap => format!(", and {} without a figure after it", count(gap, "run")),
    };
    lines.push(format!("      the run before: {}{gap}", id_of(&runs[step.before].folder)));
    if let Some(near) = history::near(step, &part.steps, runs) {
        let (date, cells) = (day(&runs[near.at]), count(near.lines.len(), "cell"));
        lines.push(format!("      {cells} stepped on {date}: this may be the same step, a single cell's date can be off by a run or two"));
    }
    let cells: Vec<String> = step.lines.iter().map(|(place, _)| called(&part.trends[*place].series)).collect();
    lines.push(format!("      cells: {}", some(&cells)));
    match &step.changed {
        Err(why) => lines.push(format!("      what changed can't be told: {why}")),
        Ok(changed) => {
            let (minor, plain): (Vec<_>, Vec<_>) = changed.iter().partition(|d| d.weight == Weight::Minor);
            match plain.as_slice() {
                [] => lines.push("      nothing known changed that night".to_owned()),
                all => lines.extend(all.iter().map(|d| format!("      changed that night: {}", difference(d, step.lines.len())))),
            }
            lines.extend(minor.iter().map(|d| format!("      for the record: {}", difference(d, step.lines.len()))));
        }
    }
    lines
}

fn difference(d: &Difference, cells: usize) -> String {
    let of = if d.cells.is_empty() || d.cells.len() == cells { String::new() } else { format!(" ({} of the cells)", d.cells.len()) };
    format!("{}: {} -> {}{of}", d.what, d.a, d.b)
}

/// What does not count, the same reasons together.
fn left_out(all: &[LeftOut]) -> Vec<String> {
    let mut by_why: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in all {
        by_why.entry(&one.why).or_default().push(&one.name);
    }
    let head =
        if all.is_empty() { Vec::new() } else { vec![String::new(), format!("left out: {} of the folder", count(all.len(), "entry"))] };
    head.into_iter().chain(by_why.into_iter().map(|(why, names)| format!("  {}: {why}", some(&names)))).collect()
}

fn some(names: &[impl Borrow<str>]) -> String {
    let more = names.len().saturating_sub(SHOWN);
    let shown = names[..names.len() - more].join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

fn or<'a>(text: &'a str, other: &'a str) -> &'a str {
    if text.is_empty() { other } else { text }
}

pub fn day(run: &Run) -> String {
    run.started.strftime("%Y-%m-%d").to_string()
}

/// A ratio as a change.
fn signed(ratio: f64) -> String {
    format!("{} %", words::signed(ratio - 1.0))
}
