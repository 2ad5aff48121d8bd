//! The page as a whole, and what each run's head says in words.

use std::collections::BTreeMap;

use super::failures::{counts, failures};
use super::groups::{Colours, panels};
use super::machine::{at, environment, facts, runtimes, text, tool, warnings};
use super::pairs::{Compared, Pair, pairs};
use super::panel::{all, artifact_word, cells_of};
use super::view::{Fact, Page, RunView};
use crate::report::ReportError;
use crate::report::charts::PALETTE;
use crate::report::load::Run;
use crate::results::schema::METRICS;

/// The page of these runs.
pub fn page(runs: &[Run]) -> Result<Page, ReportError> {
    let colours = Colours::of(runs);
    let views = runs.iter().enumerate().map(|(index, run)| view(run, index, &colours)).collect::<Result<Vec<_>, _>>()?;
    let title = match views.as_slice() {
        [one] => one.scenario.clone(),
        many => format!("{} runs", many.len()),
    };
    let tool = runs.iter().find_map(|run| tool(&run.manifest)).unwrap_or_else(|| "bench".into());
    let definitions = METRICS.iter().map(|metric| Fact { name: metric.name.into(), value: metric.meaning.into() }).collect();
    Ok(Page { title, tool, palette: PALETTE, definitions, runs: views })
}

fn view(run: &Run, index: usize, colours: &Colours) -> Result<RunView, ReportError> {
    let anchor = format!("r{index}");
    let id = text(at(&run.manifest, &["run"])).unwrap_or_else(|| run.folder.clone());
    Ok(RunView {
        scenario: text(at(&run.manifest, &["scenario", "name"])).unwrap_or_else(|| id.clone()),
        facts: facts(&run.manifest, &id),
        runtimes: runtimes(&run.manifest, colours),
        counts: counts(run),
        sentences: sentences(run),
        panels: all(run, &anchor, colours)?,
        failures: failures(run),
        environment: environment(&run.manifest),
        warnings: warnings(&run.manifest),
        problems: run.problems.clone(),
        id,
        anchor,
    })
}

/// What was measured, and what it says where only the framework differs. No sentence names a winner across artifacts, and none across classes.
fn sentences(run: &Run) -> Vec<String> {
    if run.cells.is_empty() {
        return vec!["The run has no cells.".into()];
    }
    let measured = run.cells.iter().filter(|cell| cell.counts()).count();
    let mut found = vec![match (measured, run.cells.len()) {
        (0, all) => format!("None of the {all} cells could be measured; the reasons are below."),
        (some, all) if some == all => format!("All {all} cells were measured, and no check contradicts a figure."),
        (some, all) => {
            format!("{some} of {all} cells were measured and count; the others stand with their reasons under “Not in the figures”.")
        }
    }];
    for (class, device) in panels(run) {
        let cells = cells_of(run, class, device);
        let of = |counted: bool| {
            let mut names: Vec<&str> = cells.iter().filter(|cell| cell.counts() == counted).map(|cell| cell.backend.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            names
        };
        let names = of(true);
        if names.is_empty() {
            continue;
        }
        let place = match class {
            "emulator" => "In the HTP emulator".to_owned(),
            "pc" => "On the PC's processor".to_owned(),
            _ => format!("On {device}"),
        };
        let matched = pairs(run, &cells);
        let alone = if matched.is_empty() { " They ran different artifacts, so each stands for itself." } else { "" };
        found.push(format!("{place}: figures of {}.{alone}", listed(&names)));
        found.extend(told(&matched, artifact_word(class), class == "emulator"));
    }
    found
}

/// One sentence for each two backends.
fn told(matched: &[Pair], what: &str, emulated: bool) -> Vec<String> {
    let mut tables: BTreeMap<(&str, &str), Vec<&Pair>> = BTreeMap::new();
    for pair in matched {
        tables.entry((&pair.above.backend, &pair.below.backend)).or_default().push(pair);
    }
    let sentence = |((above, below), pairs): ((&str, &str), Vec<&Pair>)| {
        let workloads = if pairs.len() == 1 { "1 workload".to_owned() } else { format!("{} workloads", pairs.len()) };
        let ttft = summed(above, pairs.iter().map(|pair| &pair.ttft), "time to first token is", ("shorter", "longer"));
        let decode = summed(above, pairs.iter().map(|pair| &pair.decode), "decode rate is", ("lower", "higher"));
        let caution = if emulated { " This is the frameworks' cost around an emulated NPU and says nothing about a phone." } else { "" };
        format!("On the same {what}, {above} against {below} in {workloads}: {ttft}; {decode}.{caution}")
    };
    tables.into_iter().map(sentence).collect()
}

/// How often a ratio is told to be under 1 (the first word) or over (the second), and between what bounds.
fn summed<'a>(
    above: &str,
    ratios: impl Iterator<Item = &'a Result<Compared, String>>,
    metric: &str,
    (under, over): (&str, &str),
) -> String {
    let (mut unders, mut overs, mut open, mut withheld) = (Vec::new(), Vec::new(), 0, 0);
    for compared in ratios {
        match compared {
            Err(_) => withheld += 1,
            Ok(compared) if !compared.is_apart() => open += 1,
            Ok(compared) if compared.ratio() < 1.0 => unders.push(compared.ratio()),
            Ok(compared) => overs.push(compared.ratio()),
        }
    }
    let mut parts = Vec::new();
    for (word, ratios) in [(under, unders), (over, overs)] {
        let (least, most) = ratios.iter().fold((f64::INFINITY, 0.0_f64), |(lo, hi), ratio| (lo.min(*ratio), hi.max(*ratio)));
        match ratios.len() {
            0 => {}
            1 => parts.push(format!("{word} in 1 ({least:.2} times)")),
            n => parts.push(format!("{word} in {n} ({least:.2} to {most:.2} times)")),
        }
    }
    if open > 0 {
        parts.push(format!("not told apart in {open}"));
    }
    if withheld > 0 {
        parts.push(format!("not comparable in {withheld}"));
    }
    format!("{above}'s {metric} {}", parts.join(", "))
}

/// `a, b and c`.
fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}
