//! Cells that share a launch: which can, and where what is kept of it lies.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use bench_backend_api::{Expected, Launch, Pass};

use super::Session;
use crate::{
    device::Device,
    results::{
        folder::FolderError,
        launches::{self, Record},
    },
    run::{artifacts::ReadyCell, exact::same_beginning, idle},
};

impl<D: Device> Session<'_, D> {
    /// The contract's view of a launch.
    pub(super) fn contract<'a>(
        &'a self,
        place: usize,
        ready: &'a ReadyCell,
        pass: Pass,
        (prompts, texts): (&'a [Vec<u32>], &'a [String]),
    ) -> Launch<'a> {
        Launch {
            cell: &self.setup.plan.cells[place].cell,
            pass,
            prompts,
            texts,
            artifact: &ready.artifact,
            installed: self.setup.installed,
            device: self.setup.device.facts(),
        }
    }

    /// What a launch of a cell should produce.
    pub(super) fn expected(&self, place: usize, ready: &ReadyCell) -> Expected {
        let plan = self.setup.plan;
        let workload = plan.cells[place].cell.workload;
        Expected {
            prompt_tokens: workload.prompt_tokens(),
            gen_tokens: workload.gen_tokens(),
            queries: ready.prompts.ids.len() as u32,
            bos: ready.prompts.bos,
            reference: ready.prompts.reference.clone(),
            min_agreement: plan.verify.min_agreement,
        }
    }

    /// Whether the planned sharing is possible with what is here: the program has a job, the model is one and the same, and no prompt of one cell begins like
    /// one of another, which a runtime could answer from its cache (rule R3).
    pub(super) fn mixes(&self, cells: &[(usize, &ReadyCell)]) -> bool {
        let Some(((place, ready), others)) = cells.split_first() else { return false };
        let launch = self.contract(*place, ready, Pass::Measure, (&ready.prompts.ids, &ready.prompts.texts));
        let backend = self.backend(&launch.cell.backend);
        let fresh = differ(&cells.iter().map(|(_, ready)| ready.prompts.ids.as_slice()).collect::<Vec<_>>());
        fresh
            && others.iter().all(|(_, other)| other.key == ready.key)
            && backend.is_some_and(|b| b.stage(&launch).is_ok_and(|files| idle::has_job(&files)))
    }
}

/// Whether no prompt of one cell begins like one of another, beyond what all of them begin with (BOS, the head of a chat template).
fn differ(cells: &[&[Vec<u32>]]) -> bool {
    let all = || cells.iter().copied().flatten();
    let Some(first) = all().next() else { return true };
    let common = all().map(|ids| ids.iter().zip(first).take_while(|(a, b)| a == b).count()).min().unwrap_or(0);
    let alike = |a: &Vec<u32>, b: &Vec<u32>| same_beginning(&a[common..], &b[common..]);
    cells.iter().enumerate().all(|(n, one)| cells[n + 1..].iter().all(|other| !one.iter().any(|a| other.iter().any(|b| alike(a, b)))))
}

/// The folder of a launch. The record of one that is tried again stands until there is a new one.
pub(super) struct Home {
    dir: PathBuf,
    /// Where it is put together.
    pub(super) fresh: PathBuf,
}

impl Home {
    pub(super) fn of(dir: PathBuf) -> Self {
        let fresh = if dir.join(launches::FILE).is_file() { launches::again(&dir) } else { dir.clone() };
        Self { dir, fresh }
    }

    /// Keeps the record of a cell whose evidence is that of another, with links to it: every folder is whole, and nothing is there twice.
    pub(super) fn keep(&self, evidence: &Path, record: &Record) -> Result<(), FolderError> {
        let error = FolderError::io(&self.fresh);
        if self.fresh.exists() {
            fs::remove_dir_all(&self.fresh).map_err(FolderError::io(&self.fresh))?;
        }
        linked(evidence, &self.fresh).map_err(error)?;
        record.save(&self.fresh)
    }

    /// What is whole takes its place.
    pub(super) fn replace(&self) -> Result<(), FolderError> {
        if self.fresh != self.dir {
            fs::remove_dir_all(&self.dir).map_err(FolderError::io(&self.dir))?;
            fs::rename(&self.fresh, &self.dir).map_err(FolderError::io(&self.dir))?;
        }
        Ok(())
    }
}

/// A folder with the files of another but its record: links where the file system has them, else copies.
fn linked(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let (entry, target) = entry.map(|e| (e.path(), to.join(e.file_name())))?;
        if entry.is_dir() {
            linked(&entry, &target)?;
        } else if !entry.ends_with(launches::FILE) && fs::hard_link(&entry, &target).is_err() {
            fs::copy(&entry, &target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::differ;

    #[test]
    fn no_prompt_of_one_cell_begins_like_one_of_another() {
        // Ten tokens that a template puts before every prompt, then prompts of 4 and 12 tokens.
        let prompt = |start: u32, tokens: u32| (900..910).chain(start..start + tokens).collect::<Vec<u32>>();
        let short = [prompt(10, 4), prompt(20, 4)];
        assert!(differ(&[&short, &[prompt(30, 12), prompt(40, 12)]]));
        assert!(!differ(&[&short, &[prompt(30, 12), prompt(20, 4)]]), "one is asked twice");
        assert!(!differ(&[&[prompt(10, 12), prompt(20, 12)], &[prompt(30, 20), prompt(10, 20)]]), "one is the other's beginning");
        assert!(differ(&[&short]));
    }
}
