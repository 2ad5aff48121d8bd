//! The site's files: index and pages of trends, whole or as they were.

use std::{
    collections::BTreeSet,
    fmt::Write,
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use serde::Serialize;
use serde_json::Value;

use super::view::{Link, Site, TrendPage, Trends};
use crate::{
    report::{
        ReportError,
        charts::{Swatch, VERDICTS, spark},
        origin::{self, Origin},
        page::{put, rendered},
    },
    safe::visible,
};

/// The file that the site begins with, and that each run's page is.
pub const INDEX: &str = "index.html";
/// The judgement that `bench gate --site` leaves beside a run's page.
pub const GATE: &str = "gate.json";

#[derive(Serialize)]
struct Index<'a> {
    palette: Vec<Swatch>,
    site: &'a Site,
}

#[derive(Serialize)]
struct Trended<'a> {
    palette: Vec<Swatch>,
    tool: &'a str,
    view: &'a TrendPage,
    drawings: Vec<Vec<String>>,
}

/// What a page of trends has in its head: others that are called so are none of ours.
const MARK: &str = "<meta name=\"generator\" content=\"bench trends\">";

/// Writes the index and the pages of trends that say something else than before, and removes pages of trends that the site has no more; gives the index' path. Pages of runs
/// are not touched.
pub fn write(site: &Site, out: &Path) -> Result<PathBuf, ReportError> {
    let palette = || VERDICTS.iter().map(|(_, swatch)| *swatch).collect();
    // Before the others are written: where case makes no difference, the old name may be the new one's.
    clear(site, out)?;
    for view in &site.pages {
        let drawings = view.trends.iter().map(drawings).collect::<Result<Vec<_>, _>>()?;
        let page = rendered("trends.html", &shown(&Trended { palette: palette(), tool: &site.tool, view, drawings }))?;
        renewed(&page, out, &view.file)?;
    }
    renewed(&rendered("site.html", &shown(&Index { palette: palette(), site }))?, out, INDEX)
}

/// Writes a page, unless it says the same already.
fn renewed(page: &str, out: &Path, name: &str) -> Result<PathBuf, ReportError> {
    let target = out.join(name);
    // A pipe would be waited for.
    let is_file = target.metadata().is_ok_and(|found| found.is_file() && found.len() == page.len() as u64);
    if is_file && fs::read(&target).is_ok_and(|there| there == page.as_bytes()) { Ok(target) } else { put(page, out, name) }
}

/// Removes pages of trends that are none of the site's.
fn clear(site: &Site, out: &Path) -> Result<(), ReportError> {
    let kept: BTreeSet<&str> = site.pages.iter().map(|page| page.file.as_str()).collect();
    let begins = |name: &str| name.starts_with("device-") || name.starts_with("model-");
    let is_one = |name: &String| name.strip_suffix(".html").is_some_and(begins);
    // No folder yet is one without pages.
    for name in names(out).unwrap_or_default().iter().filter(|name| is_one(name) && !kept.contains(name.as_str())) {
        let path = out.join(name);
        match origin::says(&path, MARK).then(|| fs::remove_file(&path)) {
            // Another bench may have been here.
            Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => return Err(ReportError::io(path)(error)),
            _ => {}
        }
    }
    Ok(())
}

/// What a page says with every text of it made visible: names of folders, manifests and judgements come from anywhere.
fn shown(page: &impl Serialize) -> Value {
    fn within(value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(visible(&text)),
            Value::Array(all) => Value::Array(all.into_iter().map(within).collect()),
            Value::Object(all) => Value::Object(all.into_iter().map(|(name, value)| (name, within(value))).collect()),
            other => other,
        }
    }
    within(serde_json::json!(page))
}

fn drawings(trends: &Trends) -> Result<Vec<String>, ReportError> {
    let name = |cell: &str| format!("{} of {cell} over the runs; its verdict and last figure stand beside it", trends.metric);
    trends.rows.iter().map(|row| spark(&row.values, &row.steps, row.verdict, &name(&row.cell))).collect()
}

fn names(folder: &Path) -> Result<Vec<String>, ReportError> {
    let entries = fs::read_dir(folder).map_err(ReportError::io(folder))?;
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect())
}

/// Leaves a judgement in the folder of a run's page, whole or not at all.
pub fn keep(judgement: &str, folder: &Path) -> Result<(), ReportError> {
    put(judgement.as_bytes(), folder, GATE).map(drop)
}

/// Pages in the site's folder that are none of these: of runs that are gone, of comparisons.
pub fn others(out: &Path, known: &BTreeSet<String>) -> Vec<Link> {
    // No folder yet is one without pages.
    let mut found = names(out).unwrap_or_default();
    found.retain(|name| !known.contains(name) && out.join(name).join(INDEX).is_file());
    found.sort();
    found.into_iter().map(|name| Link { href: Some(format!("{}/{INDEX}", href(&name))), text: name }).collect()
}

/// Whether a run's page is there, is made of it alone by this program and in this language, and is not older than its tables. Nor than the program:
/// another build of the same version says other sentences.
pub fn is_fresh(run: &Path, page: &Path) -> bool {
    if Origin::read(page) != Some(Origin::of(&[run.to_owned()], None)) {
        return false;
    }
    let changed = |path: &Path| fs::metadata(path).and_then(|found| found.modified()).ok();
    let made_of = |path: &Path| {
        path.extension().is_some_and(|end| end == "csv")
            || path.file_name().is_some_and(|name| ["manifest.json", "plan.toml", "journal.jsonl"].iter().any(|own| name == *own))
    };
    let Ok(entries) = fs::read_dir(run) else { return false };
    let newest: Option<SystemTime> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| made_of(path)).filter_map(|path| changed(&path)).max();
    let program = std::env::current_exe().ok().and_then(|program| changed(&program));
    changed(page).zip(newest).is_some_and(|(page, tables)| page >= tables && program.is_none_or(|program| page >= program))
}

/// A name of a file as a part of an address: all but letters, digits and `-._~` of ASCII in percent (RFC 3986), so that no name is a scheme, a folder
/// above, or the end of an attribute.
pub fn href(name: &str) -> String {
    name.bytes().fold(String::new(), |mut out, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte.into()),
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
        out
    })
}
