//! The page and what stands beside it: read once, render, write.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::Serialize;

use super::{ReportError, load, model, model::view::Page, pictures, summary};
use crate::safe;

/// The page's file in its folder.
pub(super) const INDEX: &str = "index.html";

const TEMPLATES: [(&str, &str); 11] = [
    ("head.html", include_str!("templates/head.html")),
    ("page.html", include_str!("templates/page.html")),
    ("comparison.html", include_str!("templates/comparison.html")),
    ("run.html", include_str!("templates/run.html")),
    ("panel.html", include_str!("templates/panel.html")),
    ("why.html", include_str!("templates/why.html")),
    ("method.html", include_str!("templates/method.html")),
    ("macros.html", include_str!("templates/macros.html")),
    ("summary.md", include_str!("templates/summary.md")),
    ("theme.css", include_str!("templates/theme.css")),
    ("layout.css", include_str!("templates/layout.css")),
];

/// What there is to tell of some runs, read once.
pub struct Report {
    runs: Vec<load::Run>,
    page: Page,
}

impl Report {
    /// Reads these run folders.
    ///
    /// Several runs stand below each other and are not set against each other: that is a comparison's.
    pub fn of(run_dirs: &[PathBuf]) -> Result<Self, ReportError> {
        if run_dirs.is_empty() {
            return Err(ReportError::NothingToReport);
        }
        let runs = run_dirs.iter().map(|dir| load::load(dir)).collect::<Result<Vec<_>, _>>()?;
        let page = model::page(&runs)?;
        Ok(Self { runs, page })
    }

    /// The HTML page.
    pub fn html(&self) -> Result<String, ReportError> {
        rendered("page.html", &self.page)
    }

    /// The summary for a pull request or a document.
    pub fn markdown(&self) -> Result<String, ReportError> {
        let text = rendered("summary.md", &self.page)?;
        // Of what a template leaves out, empty lines remain.
        let mut lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        lines.dedup_by(|line, before| line.is_empty() && before.is_empty());
        Ok(format!("{}\n", lines.join("\n").trim()))
    }

    /// The summary for a spreadsheet.
    pub fn table(&self) -> String {
        summary::table(&self.runs)
    }

    /// What the page says.
    #[cfg(test)]
    pub(super) fn page(&self) -> &Page {
        &self.page
    }

    /// Writes `out/index.html` and the summaries beside it, each whole or not at all; gives the page's path.
    pub fn write(&self, out: &Path) -> Result<PathBuf, ReportError> {
        put(self.markdown()?.as_bytes(), out, summary::MARKDOWN)?;
        put(self.table().as_bytes(), out, summary::TABLE)?;
        put(self.html()?.as_bytes(), out, INDEX)
    }

    /// Writes a file for each chart of the page into `folder`.
    pub fn pictures(&self, folder: &Path, kind: pictures::Kind, fonts: &pictures::Fonts) -> Result<pictures::Written, ReportError> {
        pictures::write(&self.page, folder, kind, fonts)
    }
}

/// Renders a template, to which `page` is what it says.
pub(super) fn rendered(template: &str, page: &impl Serialize) -> Result<String, ReportError> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    // Escaped whatever a template is called, in Markdown as Markdown; the style sheets hold nothing but our own palette.
    environment.set_auto_escape_callback(|name| match name {
        "theme.css" | "layout.css" => AutoEscape::None,
        "summary.md" => AutoEscape::Custom("markdown".into()),
        _ => AutoEscape::Html,
    });
    environment.set_formatter(|out, state, value| match state.auto_escape() {
        AutoEscape::Custom(_) if !value.is_safe() => Ok(out.write_str(&safe::markdown(&value.to_string()))?),
        AutoEscape::Custom(_) => Ok(write!(out, "{value}")?),
        _ => minijinja::escape_formatter(out, state, value),
    });
    for (name, source) in TEMPLATES {
        environment.add_template(name, source)?;
    }
    Ok(environment.get_template(template)?.render(minijinja::context! { page => minijinja::value::Serde(page) })?)
}

/// Renders the page of these run folders.
#[cfg(test)]
pub fn render(run_dirs: &[PathBuf]) -> Result<String, ReportError> {
    Report::of(run_dirs)?.html()
}

/// Writes a file into `out`, whole or not at all; gives its path.
pub(super) fn put(bytes: &[u8], out: &Path, name: &str) -> Result<PathBuf, ReportError> {
    fs::create_dir_all(out).map_err(ReportError::io(out))?;
    let target = out.join(name);
    // In the same folder, since a rename does not cross file systems; the process id keeps two reports apart.
    let temporary = out.join(format!(".{name}.{}", std::process::id()));
    let written = fs::File::create(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    if let Err(source) = written.and_then(|()| fs::rename(&temporary, &target)) {
        let _ = fs::remove_file(&temporary);
        return Err(ReportError::Io { path: target, source });
    }
    Ok(target)
}
