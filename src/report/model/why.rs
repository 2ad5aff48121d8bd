//! Where the time goes on one class and device: what explains the speeds above it.

use super::groups::{Colours, Group, listed};
use super::parts::parts;
use super::places::{alarms, fallbacks, placement, support};
use super::roof::roof;
use super::stages::stages;
use super::view::Why;
use crate::report::ReportError;
use crate::report::load::{Cell, Run};

/// The section; `None` where a run has none of its tables, as those of an older bench have.
pub fn why(run: &Run, cells: &[&Cell], groups: &[Group], colours: &Colours) -> Result<Option<Why>, ReportError> {
    let (roof, no_roof) = roof(groups, colours)?;
    let found = Why {
        alarms: alarms(groups),
        parts: parts(run, groups)?,
        stages: stages(run, groups, "measure")?,
        profiled: stages(run, groups, "profile")?,
        tables: [placement(run, groups), fallbacks(run, groups), support(run, cells)].into_iter().flatten().collect(),
        roof,
        no_roof,
    };
    let empty = [found.parts.is_empty(), found.stages.is_empty(), found.profiled.is_empty(), found.tables.is_empty()];
    let nothing = empty.into_iter().all(|empty| empty) && found.alarms.is_empty() && found.roof.is_none() && found.no_roof.is_none();
    Ok((!nothing).then_some(found))
}

/// Of each backend, quantisation and set of axes the largest workload: the others run the same operations, and fewer times.
pub fn chosen<'a>(group: &Group<'a>) -> Vec<&'a Cell> {
    let counted = group.counted();
    let largest = |cell: &&Cell| {
        let alike = counted.iter().filter(|other| group.label(other) == group.label(cell));
        alike.map(|other| (other.prompt, other.generate)).max() == Some((cell.prompt, cell.generate))
    };
    counted.iter().copied().filter(largest).collect()
}

/// What a cell is called in a panel: with its model where there are several.
pub fn label(groups: &[Group], group: &Group, cell: &Cell) -> String {
    if groups.len() > 1 { format!("{} · {}", group.model, group.label(cell)) } else { group.label(cell) }
}

/// Sentences that several cells share, each once, with the cells' names in front.
pub fn told(sentences: Vec<(String, String)>) -> Vec<String> {
    let mut found: Vec<(Vec<String>, String)> = Vec::new();
    for (name, sentence) in sentences {
        match found.iter_mut().find(|(_, known)| *known == sentence) {
            Some((names, _)) if names.contains(&name) => {}
            Some((names, _)) => names.push(name),
            None => found.push((vec![name], sentence)),
        }
    }
    found.into_iter().map(|(names, sentence)| format!("{}: {sentence}", listed(&names))).collect()
}
