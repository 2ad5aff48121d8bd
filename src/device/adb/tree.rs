//! Folders, there and back. Links are not followed: they could point anywhere.

use std::{
    collections::BTreeSet,
    fs,
    path::{Component, Path, PathBuf},
};

use super::{AdbError, pull::Over, push::Target, remote::Remote, shell::quote, stage::Told, sync::Files};

/// Folders in folders that are taken before a tree counts as endless.
const DEPTH: usize = 64;
/// Bytes of paths in one command.
const COMMAND: usize = 30_000;

/// What a pulled folder had.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pulled {
    /// Files that were taken.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Links, devices and sockets, which were not: their paths below the folder.
    pub skipped: Vec<String>,
}

impl Remote {
    /// Copies a folder of the device into a folder of the host, which is made. More than `limit` bytes in all are an error, and what was
    /// taken until then stays. No name on the device leads out of the host's folder.
    pub async fn pull_folder(&self, path: &str, host: &Path, limit: u64) -> Result<Pulled, AdbError> {
        let mut files = self.files().await?;
        if !files.stat(path, true).await?.is_some_and(|s| s.is_folder()) {
            return Err(AdbError::Remote { path: path.to_owned(), said: "not a folder".to_owned() });
        }
        let mut pulled = Pulled::default();
        let mut folders = vec![(String::new(), 0)];
        while let Some((folder, depth)) = folders.pop() {
            let here = host.join(&folder);
            fs::create_dir_all(&here).map_err(AdbError::host(&here))?;
            for (name, stat) in files.list(&join(path, &folder)).await? {
                let below = join(&folder, &name);
                if !is_plain(&name) {
                    let said = format!("{below:?} in it can't be a file's name on this computer");
                    return Err(AdbError::Remote { path: path.to_owned(), said });
                }
                if stat.is_folder() && depth < DEPTH {
                    folders.push((below, depth + 1));
                } else if stat.is_file() {
                    pulled.bytes += pull(&mut files, path, &below, host, limit - pulled.bytes).await?;
                    pulled.files += 1;
                } else {
                    pulled.skipped.push(below);
                }
            }
        }
        Ok(pulled)
    }

    /// Copies a folder of the host to the device, with its empty folders and the permissions of its files (0644 where the host has none). The
    /// paths of links are in the result; they are not copied. The bytes sent come first.
    pub async fn push_folder(&self, host: &Path, path: &str, told: Told<'_>) -> Result<(u64, Vec<PathBuf>), AdbError> {
        let tree = Tree::of(host)?;
        self.over("making folders", "mkdir -p --", tree.folders.iter().map(|f| join(path, f))).await?;
        let total = tree.files.iter().map(|(_, size, _)| size).sum();
        let mut sent = 0;
        for (below, _, mode) in &tree.files {
            let to = join(path, below);
            let told = |done, _: u64| told(below, sent + done, total);
            sent += self.send_file(&host.join(below), 0, Target { path: &to, mode: *mode }, &told).await?.1;
        }
        // The daemon gives group and others what the owner has.
        for mode in tree.files.iter().map(|(_, _, mode)| mode).collect::<BTreeSet<_>>() {
            let files = tree.files.iter().filter(|(_, _, m)| m == mode).map(|(below, _, _)| join(path, below));
            self.over("setting permissions", &format!("chmod {mode:o} --"), files).await?;
        }
        Ok((sent, tree.links))
    }

    /// Runs a command over many paths, some at a time.
    async fn over(&self, during: &str, command: &str, paths: impl Iterator<Item = String> + Send) -> Result<(), AdbError> {
        let mut line = command.to_owned();
        for path in paths {
            line = line + " " + &quote(&path);
            if line.len() > COMMAND {
                self.sh(during, &line).await?;
                command.clone_into(&mut line);
            }
        }
        if line.len() > command.len() {
            self.sh(during, &line).await?;
        }
        Ok(())
    }
}

async fn pull(files: &mut Files, path: &str, below: &str, host: &Path, limit: u64) -> Result<u64, AdbError> {
    files.pull(&join(path, below), &host.join(below), limit, Over::Fail, &|_, _| ()).await
}

fn join(folder: &str, name: &str) -> String {
    match (folder, name) {
        ("", _) => name.to_owned(),
        (_, "") => folder.to_owned(),
        _ => format!("{}/{name}", folder.trim_end_matches('/')),
    }
}

/// One name, on this computer too: Windows has more separators and names of disks.
fn is_plain(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(only)), None) if only == name)
}

/// A folder of the host: paths below it.
#[derive(Default)]
struct Tree {
    folders: Vec<String>,
    files: Vec<(String, u64, u32)>,
    links: Vec<PathBuf>,
}
impl Tree {
    fn of(root: &Path) -> Result<Self, AdbError> {
        let mut tree = Self { folders: vec![String::new()], ..Self::default() };
        let mut next = 0;
        while let Some(folder) = tree.folders.get(next).cloned() {
            next += 1;
            let here = root.join(&folder);
            let mut entries = fs::read_dir(&here).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(AdbError::host(&here))?;
            entries.sort_by_key(fs::DirEntry::file_name);
            for entry in entries {
                let at = entry.path();
                let not_text = || AdbError::host(&at)(std::io::Error::other("its name is not UTF-8"));
                let name = entry.file_name().into_string().map_err(|_| not_text())?;
                let meta = entry.metadata().map_err(AdbError::host(&at))?;
                if meta.is_dir() {
                    tree.folders.push(join(&folder, &name));
                } else if meta.is_file() {
                    tree.files.push((join(&folder, &name), meta.len(), permissions(&meta)));
                } else {
                    tree.links.push(at);
                }
            }
        }
        Ok(tree)
    }
}

#[cfg(unix)]
fn permissions(meta: &fs::Metadata) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o777
}
#[cfg(not(unix))]
fn permissions(_: &fs::Metadata) -> u32 {
    0o644
}
