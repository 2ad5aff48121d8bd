//! What a plan writes onto a device.

use std::{collections::BTreeMap, fs, path::Path};

use crate::scenario::{ArtifactSource, Parameters, Plan, bits};

/// Bytes of the models that are staged, each content once; a run that finds them on the device sends nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flash {
    /// Files of the scenario.
    pub files: u64,
    /// What is made first: parameters times bits of the class, an estimate.
    pub made: u64,
}

/// Adds up the models of the cells that plans measure.
pub fn flash(plans: &[Plan]) -> Flash {
    // By path or recipe: cells that differ in lengths alone share both.
    let (mut files, mut made) = (BTreeMap::new(), BTreeMap::new());
    for planned in plans.iter().flat_map(|plan| plan.cells.iter()).filter(|planned| planned.skipped.is_none()) {
        match &planned.source {
            Some(ArtifactSource::Files { root, files: names, .. }) => {
                for name in names {
                    let path = Path::new(root).join(name);
                    let bytes = fs::metadata(&path).map_or(0, |meta| meta.len());
                    files.insert(path, bytes);
                }
            }
            Some(ArtifactSource::Recipe(recipe)) => {
                let known = planned.cell.model.geometry.as_ref().and_then(|g| Parameters::of(g).ok());
                let bytes = known.map_or(0.0, |p| p.total() * bits(planned.cell.quant) / 8.0);
                made.insert((recipe.kind.clone(), format!("{:?}", recipe.args)), bytes as u64);
            }
            None => {}
        }
    }
    Flash { files: files.values().sum(), made: made.values().sum() }
}
