//! The page: render and write.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::Serialize;

use super::{ReportError, load, model};
use crate::lang;

const TEMPLATES: [(&str, &str); 10] = [
    ("head.html", include_str!("templates/head.html")),
    ("page.html", include_str!("templates/page.html")),
    ("comparison.html", include_str!("templates/comparison.html")),
    ("run.html", include_str!("templates/run.html")),
    ("panel.html", include_str!("templates/panel.html")),
    ("why.html", include_str!("templates/why.html")),
    ("method.html", include_str!("templates/method.html")),
    ("macros.html", include_str!("templates/macros.html")),
    ("theme.css", include_str!("templates/theme.css")),
    ("layout.css", include_str!("templates/layout.css")),
];

/// Renders the report of these run folders as one HTML page.
///
/// Several runs stand below each other and are not set against each other: that is a comparison's.
pub fn render(run_dirs: &[PathBuf]) -> Result<String, ReportError> {
    if run_dirs.is_empty() {
        return Err(ReportError::NothingToReport);
    }
    let runs = run_dirs.iter().map(|dir| load::load(dir)).collect::<Result<Vec<_>, _>>()?;
    rendered("page.html", &model::page(&runs)?)
}

/// Renders a template, to which `page` is what it says.
pub(super) fn rendered(template: &str, page: &impl Serialize) -> Result<String, ReportError> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    // Escaped whatever a template is called; the style sheets hold nothing but our own palette.
    environment
        .set_auto_escape_callback(|name| if matches!(name, "theme.css" | "layout.css") { AutoEscape::None } else { AutoEscape::Html });
    for (name, source) in TEMPLATES {
        environment.add_template(name, source)?;
    }
    let html = environment.get_template(template)?.render(minijinja::context! { page => minijinja::value::Serde(page) })?;
    Ok(lang::say_page(html))
}

/// Renders and writes `out/index.html`, whole or not at all; gives its path.
pub fn write(run_dirs: &[PathBuf], out: &Path) -> Result<PathBuf, ReportError> {
    put(&render(run_dirs)?, out)
}

/// Writes `out/index.html`, whole or not at all; gives its path.
pub(super) fn put(html: &str, out: &Path) -> Result<PathBuf, ReportError> {
    fs::create_dir_all(out).map_err(ReportError::io(out))?;
    let target = out.join("index.html");
    // In the same folder, since a rename does not cross file systems; the process id keeps two reports apart.
    let temporary = out.join(format!(".index.html.{}", std::process::id()));
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
