//! Which kind of model a folder or file is.

use std::path::Path;

use super::{
    error::ImportError,
    files,
    found::Found,
    genai::{self, CONFIG as GENAI},
    genie, gguf, mnn,
    quantisation::quantisation,
};

/// Looks at a folder, or at a file of one.
///
/// # Errors
/// Nothing that is known, or files that are not what they seem.
pub fn look(source: &Path) -> Result<Found, ImportError> {
    let mut found = one_of_them(source)?;
    if let Some(native) = quantisation(&found.root, &found.files).native.filter(|name| found.facts.iter().all(|fact| fact.value != *name)) {
        found.fact("quantisation, in its own words", &native, "the files");
    }
    Ok(found)
}

fn one_of_them(source: &Path) -> Result<Found, ImportError> {
    let metadata = source.metadata().map_err(ImportError::io(source))?;
    if metadata.is_file() {
        let ends = |extension: &str| source.to_str().is_some_and(|name| files::ends(name, extension));
        return match source.parent() {
            _ if ends("gguf") => gguf::read(source),
            // The configuration stands for its folder.
            Some(folder) if ends("json") => one_of_them(if folder.as_os_str().is_empty() { Path::new(".") } else { folder }),
            _ => Err(ImportError::Unknown { path: source.to_owned() }),
        };
    }
    let names = files::names(source)?;
    if let Some(config) = genie::config_of(source, &names) {
        return genie::read(source, &names, &config);
    }
    if names.iter().any(|n| n == GENAI) {
        return genai::read(source, &names);
    }
    if mnn::is_one(&names) {
        return mnn::read(source, &names);
    }
    let models: Vec<&String> = names.iter().filter(|n| files::ends(n, "gguf")).collect();
    match models.as_slice() {
        [] => Err(ImportError::Unknown { path: source.to_owned() }),
        [one] => gguf::read(&source.join(one)),
        several => Err(ImportError::Several { path: source.to_owned(), files: several.iter().map(|n| (*n).clone()).collect() }),
    }
}
