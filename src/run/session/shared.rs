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
        let fresh = cells.iter().enumerate().all(|(n, (_, one))| {
            let later = || cells[n + 1..].iter().flat_map(|(_, other)| &other.prompts.ids);
            one.prompts.ids.iter().all(|ids| !later().any(|other| same_beginning(ids, other)))
        });
        fresh
            && others.iter().all(|(_, other)| other.key == ready.key)
            && backend.is_some_and(|b| b.stage(&launch).is_ok_and(|files| idle::has_job(&files)))
    }
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
