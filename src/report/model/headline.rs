//! What was found for each class, in a few figures and sentences: the first screen.

use std::collections::{BTreeMap, BTreeSet};

use super::charts::largest;
use super::figures::{Notes, intervals_note, value};
use super::groups::{Colours, Group, cells_of, groups, listed, panels, readable, workload};
use super::pairs::{Compared, Pair, pairs};
use super::panel::{artifact_word, class_title, unknown};
use super::places::alarms;
use super::view::{HeadRow, Headline};
use crate::report::charts::swatch_svg;
use crate::report::load::{Cell, Ran, Run, Sameness, Status, sameness};
use crate::words::count;

/// Metrics of a headline, in the order of the template's columns.
const METRICS: [&str; 3] = ["ttft_ms", "decode_tok_s", "peak_mem_mb"];
/// Rows of a headline.
const ROWS: usize = 9;

/// One for each class in which something was measured.
pub fn headlines(run: &Run, anchor: &str, colours: &Colours) -> Vec<Headline> {
    let mut found = Vec::new();
    for (index, (class, device)) in panels(run).into_iter().enumerate() {
        let cells = cells_of(run, class, device);
        let counted: Vec<&Cell> = cells.iter().copied().filter(|cell| cell.counts() && !cell.is_composed()).collect();
        let Some((most, of_largest)) = largest(&counted) else { continue };
        let sets = groups(&of_largest);
        let (shown, cut) = readable(&of_largest, ROWS, |cell| &cell.backend, "rows");
        let mut sentences = told(&pairs(run, &cells), artifact_word(class));
        if sentences.is_empty() {
            sentences.extend(apart(&counted));
        }
        sentences.extend(alarms(&groups(&cells)).into_iter().map(|alarm| format!("Not on the processor asked for: {alarm}")));
        sentences.extend(missing(&cells));
        sentences.extend(composed(&cells));
        if !cut.is_empty() {
            sentences.push("More rows are in the table below.".into());
        }
        found.push(Headline {
            anchor: format!("{anchor}-p{index}"),
            title: class_title(class),
            device: device.to_owned(),
            emulator: class == "emulator",
            workload: workload(most),
            model: if let [set] = sets.as_slice() { set.model.to_owned() } else { String::new() },
            intervals: intervals_note(&ns(&of_largest)),
            rows: shown.into_iter().map(|cell| row(cell, &sets, colours)).collect(),
            sentences,
        });
    }
    found
}

/// What can be said of frameworks that did not run the same artifact: each model by itself, once.
fn apart(cells: &[&Cell]) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    for set in groups(cells) {
        let cells = set.counted();
        if cells.iter().all(|cell| cell.backend == cells[0].backend) {
            continue;
        }
        let ran: Vec<Ran> = cells.iter().map(|cell| cell.ran()).collect();
        let sentence = match sameness(&ran) {
            Sameness::One => continue,
            Sameness::Source(words) => format!("{words}: none of the frameworks is ranked."),
            Sameness::Unknown(who) => format!("{}: none of the frameworks is ranked.", unknown(&who)),
        };
        if !sentences.contains(&sentence) {
            sentences.push(sentence);
        }
    }
    sentences
}

fn row(cell: &Cell, sets: &[Group], colours: &Colours) -> HeadRow {
    let model = if sets.len() > 1 { format!("{} ", cell.model) } else { String::new() };
    let axes = sets.iter().find(|set| set.model == cell.model).map_or_else(String::new, |set| set.axes(cell));
    let comma = if axes.is_empty() { "" } else { ", " };
    // A dash's reason is its title here; the footnotes are in the table.
    let mut notes = Notes::default();
    let figure = |metric: &&str| super::view::Value { mark: None, ..value(cell, metric, &mut notes) };
    HeadRow {
        key: swatch_svg(colours.get(&cell.backend)),
        backend: cell.backend.clone(),
        quant: format!("{model}{}{comma}{axes}", cell.quant),
        values: METRICS.iter().map(figure).collect(),
    }
}

/// Numbers of launches behind the figures of the rows.
fn ns(cells: &[&Cell]) -> BTreeSet<usize> {
    cells.iter().flat_map(|cell| METRICS.iter().filter_map(|metric| cell.metrics.get(metric)?.n)).collect()
}

/// Which backends have cells that do not count.
fn missing(cells: &[&Cell]) -> Option<String> {
    let mut found: BTreeMap<(Status, &str), usize> = BTreeMap::new();
    for cell in cells.iter().filter(|cell| !cell.counts()) {
        *found.entry((cell.status, &cell.backend)).or_default() += 1;
    }
    let words: Vec<String> = found.into_iter().map(|((status, backend), n)| format!("{n} of {backend} {}", status.word())).collect();
    (!words.is_empty()).then(|| format!("Not in the figures: {}.", listed(&words)))
}

/// Which backends have figures that nobody measured.
fn composed(cells: &[&Cell]) -> Option<String> {
    let names: BTreeSet<&str> = cells.iter().filter(|cell| cell.counts() && cell.is_composed()).map(|cell| cell.backend.as_str()).collect();
    let names: Vec<&str> = names.into_iter().collect();
    (!names.is_empty()).then(|| {
        format!("Not shown here: {}, whose figures are composed from graph times, a bound that no engine reaches.", listed(&names))
    })
}

/// One sentence for each two backends. No sentence names a winner across artifacts, and none across classes.
fn told(matched: &[Pair], what: &str) -> Vec<String> {
    let mut tables: BTreeMap<(&str, &str), Vec<&Pair>> = BTreeMap::new();
    for pair in matched {
        tables.entry((&pair.above.backend, &pair.below.backend)).or_default().push(pair);
    }
    let sentence = |((above, below), pairs): ((&str, &str), Vec<&Pair>)| {
        let cells = count(pairs.len(), "cell");
        let ttft = summed(pairs.iter().map(|pair| &pair.ttft), "TTFT", ("shorter", "longer"));
        let decode = summed(pairs.iter().map(|pair| &pair.decode), "decode rate", ("lower", "higher"));
        let few = pairs.iter().flat_map(|pair| [&pair.ttft, &pair.decode]).flatten().any(|ratio| !ratio.has_interval());
        let few = if few { " Too few launches for a 95 % interval, so neither is called ahead." } else { "" };
        format!("{above} against {below} on the same {what}, in {cells} each: {ttft}; {decode}.{few}")
    };
    tables.into_iter().map(sentence).collect()
}

/// Between what bounds the ratios lie, and how often they are told to be under 1 (the first word) or over (the second).
fn summed<'a>(ratios: impl Iterator<Item = &'a Result<Compared, String>>, metric: &str, (under, over): (&str, &str)) -> String {
    let (mut all, mut unders, mut overs, mut open, mut withheld) = (Vec::new(), 0, 0, 0, 0);
    for compared in ratios {
        let Ok(compared) = compared else {
            withheld += 1;
            continue;
        };
        all.push(compared.ratio());
        match compared.ratio() {
            _ if !compared.has_interval() => {}
            _ if !compared.is_apart() => open += 1,
            ratio if ratio < 1.0 => unders += 1,
            _ => overs += 1,
        }
    }
    let (least, most) = all.iter().fold((f64::INFINITY, 0.0_f64), |(lo, hi), ratio| (lo.min(*ratio), hi.max(*ratio)));
    let between = match all.len() {
        0 => String::new(),
        1 => format!(" {least:.2} times"),
        _ => format!(" {least:.2} to {most:.2} times"),
    };
    let counted = [(unders, under), (overs, over), (open, "not told apart"), (withheld, "not comparable")];
    let parts: Vec<String> = counted.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{word} in {n}")).collect();
    if parts.is_empty() { format!("{metric}{between}") } else { format!("{metric}{between} ({})", parts.join(", ")) }
}
