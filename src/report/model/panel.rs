//! One class on one device.

use super::cells::row;
use super::details::details;
use super::distributions::charts;
use super::figures::Notes;
use super::groups::{Colours, groups, panels};
use super::layers::layers;
use super::pairs::{pairs, tables};
use super::view::{Panel, Set};
use crate::report::ReportError;
use crate::report::load::{Cell, Run};

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

/// Cells of a panel.
pub fn cells_of<'a>(run: &'a Run, class: &str, device: &str) -> Vec<&'a Cell> {
    let mut cells: Vec<&Cell> = run.cells.iter().filter(|cell| cell.class == class && cell.key.device == device).collect();
    cells.sort_by_key(|cell| (&cell.quant, cell.prompt, cell.generate, &cell.backend));
    cells
}

/// All panels of a run that hold a cell which was at least tried.
pub fn all(run: &Run, anchor: &str, colours: &Colours) -> Result<Vec<Panel>, ReportError> {
    let mut found = Vec::new();
    for (class, device) in panels(run) {
        let cells = cells_of(run, class, device);
        let anchor = format!("{anchor}-p{}", found.len());
        let mut sets = Vec::new();
        for group in groups(run, class, device) {
            let mut notes = Notes::default();
            let timings = group.comparable();
            let mixed = timings.len() > 1;
            sets.push(Set {
                anchor: format!("{anchor}-s{}", sets.len()),
                title: format!("{} · {}", group.model, group.quant),
                rows: group.cells.iter().map(|cell| row(run, &group, cell, colours, mixed, &mut notes)).collect(),
                measured: !timings.is_empty(),
                timing: timings.first().filter(|_| !mixed).map(|(timing, _)| timing.words()),
                notes: notes.into_notes(),
                charts: charts(run, &group, colours)?,
                details: details(&group),
            });
        }
        let pairings = tables(&pairs(run, &cells), artifact_word(class));
        let unpaired = (pairings.is_empty() && cells.iter().any(|cell| cell.counts()))
            .then(|| format!("No two frameworks were measured on the same {}, so no ratio is given.", artifact_word(class)));
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
            layers: layers(run, &cells, colours)?,
        });
    }
    Ok(found)
}
