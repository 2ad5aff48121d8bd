//! Whether the files that a work folder links to are still what they were. A tool that writes into its model writes into the user's own
//! file, since a copy of gigabytes for every launch is no choice. It can't be undone, but it is told, and no number is made of it.

use std::{
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

/// Size and time of the last change.
type Stamp = (u64, Option<SystemTime>);

/// The files of an artifact as they were before a launch.
pub struct Originals(Vec<(PathBuf, Option<Stamp>)>);

impl Originals {
    /// Looks at the files.
    pub fn of<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> Self {
        Self(paths.map(|path| (path.clone(), stamp(path))).collect())
    }

    /// The first file that is not what it was, in words.
    pub fn changed(&self) -> Option<String> {
        let (path, _) = self.0.iter().find(|(path, before)| stamp(path) != *before)?;
        Some(format!("{} changed while the program ran", path.display()))
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    fs::metadata(path).ok().map(|meta| (meta.len(), meta.modified().ok()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_write_through_a_link_is_seen_and_a_read_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let paths = ["model.bin", "gone.bin"].map(|name| dir.path().join(name));
        fs::write(&paths[0], b"weights").unwrap();
        fs::write(&paths[1], b"").unwrap();
        let old = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
        fs::File::options().write(true).open(&paths[0]).unwrap().set_modified(old).unwrap();
        let link = dir.path().join("link.bin");
        fs::hard_link(&paths[0], &link).unwrap();
        let before = Originals::of(paths.iter());
        fs::read(&link).unwrap();
        assert_eq!(before.changed(), None);
        fs::File::options().write(true).open(&link).unwrap().write_all(b"W").unwrap();
        assert_eq!(before.changed(), Some(format!("{} changed while the program ran", paths[0].display())));
        let before = Originals::of(paths.iter());
        fs::remove_file(&paths[1]).unwrap();
        assert!(before.changed().is_some_and(|words| words.contains("gone.bin")));
    }
}
