//! `bench report RUN...`.

use std::path::{Path, PathBuf};

use anyhow::Context;

use super::exit::{Code, Failed};
use crate::{
    report,
    results::{folder, manifest::Manifest, tables},
    scenario::Plan,
};

/// Makes the page of one or more runs
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Run folders
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// Folder for the page; it becomes OUT/<run>/index.html
    #[arg(long, default_value = "reports")]
    out: PathBuf,
}

pub fn main(args: &Args) -> anyhow::Result<Code> {
    for run in &args.runs {
        if !run.join("manifest.json").is_file() {
            let message = format!("{}: not a run folder (it has no manifest.json)", run.display());
            return Err(Failed { code: Code::Usage, message }.into());
        }
        if !run.join("cells.csv").is_file() {
            derive(run)?;
        }
    }
    let page = page(&args.runs, &args.out)?;
    super::print(&format!("{}\n", page.display()))?;
    Ok(Code::Done)
}

/// Makes the page and says where it is.
pub fn page(runs: &[PathBuf], out: &Path) -> anyhow::Result<PathBuf> {
    let id = folder::id_of(&runs[0].canonicalize().unwrap_or_else(|_| runs[0].clone()));
    report::write(runs, &out.join(id)).map_err(|e| Failed { code: Code::Unavailable, message: e.to_string() }.into())
}

/// Makes the tables of a run that was killed before it could.
fn derive(run: &Path) -> anyhow::Result<()> {
    let path = run.join("plan.toml");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let plan = Plan::from_toml(&text).with_context(|| path.display().to_string())?;
    tables::write(run, &plan, &Manifest::read(run)?)?;
    Ok(())
}
