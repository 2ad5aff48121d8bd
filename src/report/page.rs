//! The page and what stands beside it: read once, render, write.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{
    ReportError, load, model,
    model::view::Page,
    origin::Origin,
    pictures,
    policy::policy,
    selection::{self, Joint},
    summary,
};
use crate::{
    lang::{self, Lang, Voice},
    safe,
    scenario::Preset,
};

/// The page's file in its folder.
pub(super) const INDEX: &str = "index.html";

const TEMPLATES: [(&str, &str); 16] = [
    ("head.html", include_str!("templates/head.html")),
    ("page.html", include_str!("templates/page.html")),
    ("comparison.html", include_str!("templates/comparison.html")),
    ("run.html", include_str!("templates/run.html")),
    ("filters.html", include_str!("templates/filters.html")),
    ("matrix.html", include_str!("templates/matrix.html")),
    ("decision.html", include_str!("templates/decision.html")),
    ("panel.html", include_str!("templates/panel.html")),
    ("why.html", include_str!("templates/why.html")),
    ("method.html", include_str!("templates/method.html")),
    ("site.html", include_str!("templates/site.html")),
    ("site_macros.html", include_str!("templates/site_macros.html")),
    ("trends.html", include_str!("templates/trends.html")),
    ("macros.html", include_str!("templates/macros.html")),
    ("summary.md", include_str!("templates/summary.md")),
    ("style.css", concat!(include_str!("templates/theme.css"), include_str!("templates/layout.css"))),
];

/// Filters and sorting. The page says all that it says without it.
const SCRIPT: &str = include_str!("templates/page.js");

/// Tells templates, style and script of this build from those of another.
pub(super) fn look() -> &'static str {
    static LOOK: OnceLock<String> = OnceLock::new();
    LOOK.get_or_init(|| {
        let texts = TEMPLATES.iter().flat_map(|(name, text)| [name, text]).chain([&SCRIPT]);
        let digest = texts.fold(Sha256::new(), |all, text| all.chain_update(text).chain_update([0]));
        crate::hex(&digest.finalize()[..8])
    })
}

/// What there is to tell of some runs, read once.
pub struct Report {
    runs: Vec<load::Run>,
    origin: Origin,
    selected: Vec<Joint>,
    page: Page,
}

impl Report {
    /// Reads these run folders. `use_case`: what is selected is judged for that preset.
    ///
    /// Several runs stand below each other and are not set against each other: that is a comparison's.
    pub fn of(run_dirs: &[PathBuf], use_case: Option<&Preset>) -> Result<Self, ReportError> {
        if run_dirs.is_empty() {
            return Err(ReportError::NothingToReport);
        }
        let runs = run_dirs.iter().map(|dir| load::load(dir)).collect::<Result<Vec<_>, _>>()?;
        let selected = selection::read(run_dirs, use_case);
        let origin = Origin::of(run_dirs, use_case);
        let page = Page { origin: origin.tag(), ..model::page(&runs, &selected)? };
        Ok(Self { runs, origin, selected, page })
    }

    /// What to ship, of each run or of several sessions together.
    pub fn selected(&self) -> &[Joint] {
        &self.selected
    }

    /// The HTML page.
    pub fn html(&self) -> Result<String, ReportError> {
        rendered("page.html", &self.page)
    }

    /// Who says what goes beside the page.
    fn voice(&self) -> Result<Voice, ReportError> {
        match lang::spoken() {
            Lang::En => Ok(Voice::new(Lang::En)),
            Lang::Zh => Ok(Voice::beside(Lang::Zh, &in_english("page.html", &self.page)?)),
        }
    }

    /// The summary for a pull request or a document.
    pub fn markdown(&self) -> Result<String, ReportError> {
        let text = in_english("summary.md", &self.page)?;
        // Of what a template leaves out, empty lines remain.
        let mut lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        lines.dedup_by(|line, before| line.is_empty() && before.is_empty());
        Ok(self.voice()?.markdown(&format!("{}\n", lines.join("\n").trim())))
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

    /// Writes `out/index.html` and the summaries beside it, each whole or not at all; gives the page's path. Those of another run
    /// stay, where both tell whose they are: a damaged manifest does not, nor does the page of an older bench.
    pub fn write(&self, out: &Path) -> Result<PathBuf, ReportError> {
        if let Some(other) = self.origin.another(&out.join(INDEX)) {
            return Err(ReportError::Another(out.join(INDEX), other));
        }
        put(self.markdown()?.as_bytes(), out, summary::MARKDOWN)?;
        put(self.table().as_bytes(), out, summary::TABLE)?;
        put(self.html()?.as_bytes(), out, INDEX)
    }

    /// Writes a file for each chart of the page into `folder`.
    pub fn pictures(&self, folder: &Path, kind: pictures::Kind, fonts: &pictures::Fonts) -> Result<pictures::Written, ReportError> {
        pictures::write(&self.page, folder, kind, fonts, &self.voice()?)
    }
}

/// Renders a page's template, to which `page` is what it says, in the language of this process.
pub(super) fn rendered(template: &str, page: &impl Serialize) -> Result<String, ReportError> {
    in_english(template, page).map(lang::say_page)
}

/// Renders a template.
fn in_english(template: &str, page: &impl Serialize) -> Result<String, ReportError> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    // Escaped whatever a template is called, in Markdown as Markdown; the style sheet holds nothing but our own palette.
    environment.set_auto_escape_callback(|name| match name {
        "style.css" => AutoEscape::None,
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
    let page = minijinja::value::Serde(page);
    // The policy names style sheet and script by the hash of every byte between their tags.
    let style = environment.get_template("style.css")?.render(minijinja::context! { page })?;
    let policy = policy(&style, SCRIPT);
    Ok(environment.get_template(template)?.render(minijinja::context! { page, style, policy, script => SCRIPT })?)
}

/// Renders the page of these run folders.
#[cfg(test)]
pub fn render(run_dirs: &[PathBuf], use_case: Option<&Preset>) -> Result<String, ReportError> {
    Report::of(run_dirs, use_case)?.html()
}

/// The documents of a report's pictures, as `voice` says them.
#[cfg(test)]
pub fn sheets(report: &Report, voice: &Voice) -> Vec<String> {
    pictures::sheets(&report.page, voice)
}

/// Writes a file into `out`, whole or not at all; gives its path.
pub(super) fn put(bytes: impl AsRef<[u8]>, out: &Path, name: &str) -> Result<PathBuf, ReportError> {
    if out.metadata().is_ok_and(|found| !found.is_dir()) {
        return Err(ReportError::InTheWay(out.to_owned(), "no folder"));
    }
    fs::create_dir_all(out).map_err(ReportError::io(out))?;
    let target = out.join(name);
    if target.metadata().is_ok_and(|found| !found.is_file()) {
        return Err(ReportError::InTheWay(target, "no regular file"));
    }
    sweep(out, name);
    // In the same folder, since a rename does not cross file systems; the process id keeps two reports apart.
    let temporary = out.join(format!(".{name}.{}", std::process::id()));
    let written = fs::File::create(&temporary).and_then(|mut file| {
        file.write_all(bytes.as_ref())?;
        file.sync_all()
    });
    if let Err(source) = written.and_then(|()| fs::rename(&temporary, &target)) {
        let _ = fs::remove_file(&temporary);
        return Err(ReportError::Io { path: target, source });
    }
    Ok(target)
}

/// Removes what a `bench` that was killed while it wrote this file has left of it. A process id is this computer's: of two computers that write
/// the same file of a shared folder in the same moment one may fail, and says so.
fn sweep(out: &Path, name: &str) {
    let Ok(entries) = fs::read_dir(out) else { return };
    for entry in entries.flatten() {
        let left = entry.file_name();
        let pid = left.to_str().and_then(|left| left.strip_prefix('.')?.strip_prefix(name)?.strip_prefix('.')?.parse().ok());
        if pid.is_some_and(is_gone) {
            // It costs its place, and no page.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether no process has this id any more.
fn is_gone(pid: i32) -> bool {
    #[cfg(unix)]
    return pid > 0 && nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None) == Err(nix::errno::Errno::ESRCH);
    #[cfg(not(unix))]
    return pid < 0;
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn what_a_killed_bench_left_goes_and_that_of_a_living_one_stays() {
        let dir = tempfile::tempdir().unwrap();
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let gone = child.id();
        let (own, parent) = (std::process::id(), std::os::unix::process::parent_id());
        let left = |name: &str| fs::write(dir.path().join(name), "half").unwrap();
        let stay =
            [format!(".index.html.{parent}"), format!(".other.html.{gone}"), ".index.html.x".to_owned(), format!("index.html.{gone}")];
        for name in &stay {
            left(name);
        }
        left(&format!(".index.html.{gone}"));
        left(&format!(".index.html.{own}"));
        put("whole", dir.path(), INDEX).unwrap();
        let mut names: Vec<String> =
            fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        let mut wanted: Vec<String> = stay.into_iter().chain([INDEX.to_owned()]).collect();
        wanted.sort();
        assert_eq!(names, wanted);
        assert_eq!(fs::read_to_string(dir.path().join(INDEX)).unwrap(), "whole");
    }
}
