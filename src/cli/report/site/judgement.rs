//! What `bench gate --site` leaves beside the page of a run.

use std::{fs, path::Path};

use crate::{
    cli::note,
    gate::nightly::output::Record,
    report::{ReportError, site},
    safe::printable,
};

/// A judgement has a line for each regression; so many bytes are read of one.
const MOST: u64 = 16 << 20;

/// What was left of a run; the error says why that does not count.
pub fn standing(id: &str, run: &Path, folder: &Path) -> Option<Result<Record, String>> {
    let time = |path: &Path| path.metadata().and_then(|found| found.modified()).ok();
    let older = time(&folder.join(site::GATE)).zip(time(&run.join("cells.csv"))).is_some_and(|(judged, measured)| judged < measured);
    let counts = |record: Record| match () {
        () if record.run != id => Err(format!("{} is of another run; `bench gate --site` makes it anew", site::GATE)),
        () if older => Err("judged before its tables changed; `bench gate --site` judges them again".to_owned()),
        () => Ok(record),
    };
    Some(read(folder)?.and_then(counts))
}

/// The judgement that a folder has.
fn read(folder: &Path) -> Option<Result<Record, String>> {
    let path = folder.join(site::GATE);
    // Before it is opened: a pipe would be waited for.
    let text = match path.metadata() {
        Ok(found) if !found.is_file() => Err("it is no regular file".to_owned()),
        Ok(found) if found.len() > MOST => Err(format!("it has {} MB, and more than {} MB are not read", found.len() >> 20, MOST >> 20)),
        Ok(_) => fs::read(&path).map_err(|e| e.to_string()),
        Err(_) => return None,
    };
    let read = text.and_then(|text| serde_json::from_slice(&text).map_err(|e| e.to_string()));
    Some(read.map_err(|why| format!("{} can't be read: {why}; `bench gate --site` makes it anew", site::GATE)))
}

/// Leaves a judgement: never over that of another run. One that is held against no night replaces one that was (or may have been, by an older
/// bench) only with what is worse.
pub fn keep(run: &Path, out: &Path, record: &Record) -> anyhow::Result<()> {
    let folder = out.join(super::super::name(run));
    let path = folder.join(site::GATE);
    if let Some(Ok(other)) = read(&folder)
        && other.run != record.run
    {
        return Err(super::super::failed(&ReportError::Another(path, other.run)));
    }
    let alone = record.held == Some(false) && record.verdict != "regressed";
    match standing(&record.run, run, &folder) {
        Some(Ok(there)) if alone && there.held != Some(false) => {
            note(&printable(&format!(
                "{} stays: it says {}, and this judgement is held against no other night, as it has to be to replace that",
                path.display(),
                there.verdict
            )));
            Ok(())
        }
        _ => {
            let text = serde_json::to_string_pretty(record)? + "\n";
            site::keep(&text, &folder).map_err(|e| super::super::failed(&e))
        }
    }
}
