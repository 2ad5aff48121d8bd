//! Reading small files of somebody else's.

use std::{
    fs::{self, File},
    io::Read,
    path::Path,
};

use serde_json::Value;

use super::error::ImportError;

/// No configuration is larger.
const MAX_BYTES: u64 = 16 << 20;

/// The text of a small file.
pub fn text(path: &Path) -> Result<String, ImportError> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(ImportError::io(path))?;
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(ImportError::io(path))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(ImportError::bad(path, format!("larger than {} MB, which no configuration is", MAX_BYTES >> 20)));
    }
    String::from_utf8(bytes).map_err(|_| ImportError::bad(path, "not UTF-8 text"))
}

/// A JSON object of a folder, or `None` where there is no such file.
pub fn json(folder: &Path, name: &str) -> Result<Option<Value>, ImportError> {
    let path = folder.join(name);
    if !path.is_file() {
        return Ok(None);
    }
    let value: Value = serde_json::from_str(&text(&path)?).map_err(|e| ImportError::bad(&path, format!("not JSON: {e}")))?;
    if value.is_object() { Ok(Some(value)) } else { Err(ImportError::bad(&path, "not a JSON object")) }
}

/// Names of the files of a folder, sorted; folders in it are left alone.
pub fn names(folder: &Path) -> Result<Vec<String>, ImportError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(ImportError::io(folder))? {
        let entry = entry.map_err(ImportError::io(folder))?;
        if entry.path().is_file()
            && let Ok(name) = entry.file_name().into_string()
        {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Whether a file's name ends in `.<extension>`, in capitals or not.
pub fn ends(name: &str, extension: &str) -> bool {
    Path::new(name).extension().is_some_and(|e| e.eq_ignore_ascii_case(extension))
}

/// A count at a JSON pointer; of a list the first. Negative numbers and 2^32 and above are none.
pub fn count(value: &Value, pointer: &str) -> Option<u32> {
    let found = value.pointer(pointer)?;
    let one = found.as_array().map_or(Some(found), |list| list.first())?;
    u32::try_from(one.as_u64()?).ok()
}

/// A number above zero at a JSON pointer.
pub fn positive(value: &Value, pointer: &str) -> Option<u32> {
    count(value, pointer).filter(|n| *n > 0)
}

/// A text at a JSON pointer.
pub fn word<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer).and_then(Value::as_str)
}
