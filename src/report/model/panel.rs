//! One class on one device.

use std::collections::{BTreeMap, BTreeSet};

use super::cells::{blocks, intervals, memory};
use super::charts::charts;
use super::details::details;
use super::failures::gone;
use super::figures::Notes;
use super::groups::{Colours, Group, cells_of, groups, listed, panels};
use super::layers::layers;
use super::matrix::matrix;
use super::pairs::{pairs, tables};
use super::roof::Best;
use super::soak::soak;
use super::timeline::timelines;
use super::view::{Panel, Set};
use super::why::why;
use crate::report::ReportError;
use crate::report::load::{Cell, Ran, Run, Sameness, sameness};

/// The class in a reader's words.
pub fn class_title(class: &str) -> String {
    match class {
        "phone" => "Phone".into(),
        "board" => "Development board".into(),
        "pc" => "PC processor".into(),
        "emulator" => "HTP emulator".into(),
        other => format!("Class “{other}”"),
    }
}

/// What the artifacts of a class are called.
pub fn artifact_word(class: &str) -> &'static str {
    if class == "emulator" { "context binaries" } else { "artifact" }
}

fn note(class: &str) -> &'static str {
    match class {
        "emulator" => "",
        "pc" => {
            "Measured on the PC's own processor. Figures of a PC are not figures of a phone, and nothing here is set against the emulator."
        }
        _ => "Measured on the device itself, by programs started from a shell unless a row says otherwise: apps often reach less.",
    }
}

/// What may be compared with what in a set (rules R7, R13 and R29).
fn comparability(cells: &[&Cell]) -> Option<String> {
    let ran: Vec<Ran> = cells.iter().map(|cell| cell.ran()).collect();
    let artifacts = match sameness(&ran) {
        Sameness::Source(words) => Some(format!(
            "{words}: rows of different quant classes or artifacts stand beside each other and are not ranked. What each artifact holds is told below the table."
        )),
        Sameness::Unknown(who) if cells.iter().any(|cell| (&cell.backend, &cell.quant) != (&cells[0].backend, &cells[0].quant)) => {
            Some(format!("{}: rows of different backends or quant classes stand beside each other and are not ranked.", unknown(&who)))
        }
        Sameness::Unknown(_) | Sameness::One => None,
    };
    let words: Vec<String> = artifacts.into_iter().chain(attention(cells)).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// That nobody knows what these ran.
pub fn unknown(who: &[&str]) -> String {
    format!("No artifact of {} is known, and nothing tells whether all ran the same model", who.join(", "))
}

/// Whose graphs attend over another context than others': with one prompt they then do not do the same work.
fn attention(cells: &[&Cell]) -> Option<String> {
    let mut contexts: BTreeMap<Option<i64>, BTreeSet<&str>> = BTreeMap::new();
    for cell in cells {
        let context = cell.number("compiled_context").map(|tokens| tokens as i64);
        contexts.entry(context).or_default().insert(&cell.backend);
    }
    let depth = |cell: &&Cell| cell.prompt + cell.generate;
    let (least, most) = cells.iter().map(depth).min().zip(cells.iter().map(depth).max()).filter(|_| contexts.len() > 1)?;
    let depths = if least == most { most.to_string() } else { format!("{least} to {most}") };
    let parts = contexts.into_iter().rev().map(|(context, backends)| {
        let backends = listed(&backends.into_iter().collect::<Vec<_>>());
        context.map_or_else(|| format!("of {backends} none is known"), |tokens| format!("{backends} over {tokens}"))
    });
    Some(format!(
        "Queries end at a depth of {depths} tokens, and static graphs attend over the context that they were compiled for, whatever the depth: {}. Who supports more context does more work for a token.",
        listed(&parts.collect::<Vec<_>>())
    ))
}

/// All panels of a run.
pub fn all(run: &Run, anchor: &str, colours: &Colours, best: &Best) -> Result<Vec<Panel>, ReportError> {
    let mut found = Vec::new();
    for (class, device) in panels(run) {
        let cells = cells_of(run, class, device);
        let anchor = format!("{anchor}-p{}", found.len());
        let groups = groups(&cells);
        let mut sets = Vec::new();
        for group in &groups {
            sets.push(set(run, group, format!("{anchor}-s{}", sets.len()), colours, best)?);
        }
        let pairings = tables(&pairs(run, &cells), artifact_word(class));
        let unpaired = (pairings.is_empty() && cells.iter().any(|cell| cell.counts()))
            .then(|| format!("No two frameworks were measured on the same {}, so no ratio is given.", artifact_word(class)));
        let (layers, unprofiled) = layers(run, &cells, colours)?;
        found.push(Panel {
            anchor,
            title: class_title(class),
            class: class.to_owned(),
            device: device.to_owned(),
            emulator: class == "emulator",
            note: note(class).to_owned(),
            pairs: pairings,
            unpaired,
            sets,
            why: why(run, &cells, &groups, colours)?,
            layers,
            unprofiled,
        });
    }
    Ok(found)
}

fn set(run: &Run, group: &Group, anchor: String, colours: &Colours, best: &Best) -> Result<Set, ReportError> {
    let mut notes = Notes::default();
    let timings = group.comparable();
    let mixed = timings.len() > 1;
    let (charts, undrawn) = charts(run, group, colours)?;
    Ok(Set {
        anchor,
        title: group.model.to_owned(),
        note: comparability(&group.counted()),
        matrix: matrix(group, colours, mixed, &mut notes),
        blocks: blocks(run, group, colours, mixed, &mut notes),
        gone: gone(&group.cells, colours),
        intervals: intervals(group),
        timing: timings.first().filter(|_| !mixed).map(|(timing, _)| timing.words()),
        memory: memory(group),
        notes: notes.into_notes(),
        charts,
        undrawn,
        timelines: timelines(run, group)?,
        soak: soak(run, group, colours)?,
        details: details(run, group).into_iter().chain(best.table(run, group)).collect(),
    })
}
