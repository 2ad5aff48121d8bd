//! The page: render and write.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::Serialize;

use super::{ReportError, load, model, policy::policy, selection};
use crate::scenario::Preset;

const TEMPLATES: [(&str, &str); 15] = [
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
    ("device.html", include_str!("templates/device.html")),
    ("macros.html", include_str!("templates/macros.html")),
    ("style.css", concat!(include_str!("templates/theme.css"), include_str!("templates/layout.css"))),
];

/// Filters and sorting. The page says all that it says without it.
const SCRIPT: &str = include_str!("templates/page.js");

/// Renders the report of these run folders as one HTML page. `use_case`: what is selected is judged for that preset.
///
/// Several runs stand below each other and are not set against each other: that is a comparison's.
pub fn render(run_dirs: &[PathBuf], use_case: Option<&Preset>) -> Result<String, ReportError> {
    if run_dirs.is_empty() {
        return Err(ReportError::NothingToReport);
    }
    let runs = run_dirs.iter().map(|dir| load::load(dir)).collect::<Result<Vec<_>, _>>()?;
    let selected: Vec<_> = run_dirs.iter().map(|dir| selection::read(dir, use_case).map_err(|why| why.to_string())).collect();
    rendered("page.html", &model::page(&runs, &selected)?)
}

/// Renders a template, to which `page` is what it says.
pub(super) fn rendered(template: &str, page: &impl Serialize) -> Result<String, ReportError> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    // Escaped whatever a template is called; the style sheet holds nothing but our own palette.
    environment.set_auto_escape_callback(|name| if name == "style.css" { AutoEscape::None } else { AutoEscape::Html });
    for (name, source) in TEMPLATES {
        environment.add_template(name, source)?;
    }
    let page = minijinja::value::Serde(page);
    // The policy names style sheet and script by the hash of every byte between their tags.
    let style = environment.get_template("style.css")?.render(minijinja::context! { page })?;
    let policy = policy(&style, SCRIPT);
    Ok(environment.get_template(template)?.render(minijinja::context! { page, style, policy, script => SCRIPT })?)
}

/// Renders and writes `out/index.html`, whole or not at all; gives its path.
pub fn write(run_dirs: &[PathBuf], out: &Path, use_case: Option<&Preset>) -> Result<PathBuf, ReportError> {
    put(&render(run_dirs, use_case)?, out, "index.html")
}

/// Writes a page `name` into the folder `out`, whole or not at all; gives its path.
pub(super) fn put(html: &str, out: &Path, name: &str) -> Result<PathBuf, ReportError> {
    fs::create_dir_all(out).map_err(ReportError::io(out))?;
    let target = out.join(name);
    // In the same folder, since a rename does not cross file systems; the process id keeps two reports apart.
    let temporary = out.join(format!(".{name}.{}", std::process::id()));
    let written = fs::File::create(&temporary).and_then(|mut file| {
        file.write_all(html.as_bytes())?;
        file.sync_all()
    });
    if let Err(source) = written.and_then(|()| fs::rename(&temporary, &target)) {
        let _ = fs::remove_file(&temporary);
        return Err(ReportError::Io { path: target, source });
    }
    Ok(target)
}
