//! SHA-256 of host files, remembered between runs: ten gigabytes of models are read once, not before every run.
//!
//! A digest belongs to a file's path, size, time of last change in nanoseconds, and inode. The cache is a file of JSON lines, each added by one
//! write, so that several processes can share it. It is only a cache: a line that can't be read is passed over, and so is a file that can't be
//! written.

use std::{
    collections::HashMap,
    fs::{File, Metadata, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::{Mutex, OnceLock},
    time::UNIX_EPOCH,
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::AdbError;

/// Version of a line. Lines of another one are passed over.
const FORMAT: u32 = 1;
/// The cache is written anew without the lines that no longer count when it has grown this long and most of it is of no use.
const LONG: usize = 1000;

/// What a digest was made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    size: u64,
    mtime_ns: u64,
    inode: u64,
}
impl Identity {
    fn of(meta: &Metadata) -> Self {
        let since = meta.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok());
        Self { size: meta.len(), mtime_ns: since.unwrap_or_default().as_nanos() as u64, inode: inode(meta) }
    }
}

/// A line of the cache.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Line {
    v: u32,
    path: PathBuf,
    #[serde(flatten)]
    identity: Identity,
    sha256: String,
}
impl Line {
    fn is_sound(&self) -> bool {
        self.v == FORMAT && self.sha256.len() == 64 && self.sha256.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    }
}

/// The digests of host files.
#[derive(Debug)]
pub(super) struct Digests {
    file: Option<PathBuf>,
    known: OnceLock<Mutex<HashMap<PathBuf, Line>>>,
}

impl Digests {
    /// Remembered in a file, or for the life of this process only.
    pub fn new(file: Option<PathBuf>) -> Self {
        Self { file, known: OnceLock::new() }
    }

    /// The SHA-256 of a file, as 64 hexadecimal digits, and its size.
    pub async fn of(&self, host: &Path) -> Result<(String, u64), AdbError> {
        let path = std::path::absolute(host).map_err(AdbError::host(host))?;
        let identity = Identity::of(&std::fs::metadata(&path).map_err(AdbError::host(host))?);
        let known = self.known.get_or_init(|| Mutex::new(self.file.as_deref().map(read).unwrap_or_default()));
        if let Some(line) = known.lock().expect("not poisoned").get(&path).filter(|l| l.identity == identity) {
            return Ok((line.sha256.clone(), identity.size));
        }
        let file = path.clone();
        let read = tokio::task::spawn_blocking(move || sha256(&file)).await.map_err(|e| AdbError::host(host)(io::Error::other(e)))?;
        let line = Line { v: FORMAT, path: path.clone(), identity, sha256: read.map_err(AdbError::host(host))? };
        let digest = line.sha256.clone();
        // A file that changes while it is read has no digest that could be remembered.
        if Identity::of(&std::fs::metadata(&path).map_err(AdbError::host(host))?) == identity {
            self.file.as_deref().map(|f| append(f, &line));
            known.lock().expect("not poisoned").insert(path, line);
        }
        Ok((digest, identity.size))
    }
}

/// What a cache knows: the last line of each path counts.
fn read(file: &Path) -> HashMap<PathBuf, Line> {
    let bytes = std::fs::read(file).unwrap_or_default();
    let lines: Vec<_> =
        bytes.split(|b| *b == b'\n').filter_map(|l| serde_json::from_slice::<Line>(l).ok()).filter(Line::is_sound).collect();
    let length = lines.len();
    let known: HashMap<_, _> = lines.into_iter().map(|l| (l.path.clone(), l)).collect();
    if length > LONG && length > 2 * known.len() {
        // What another process adds at this moment is lost, and costs a digest.
        let _ = rewrite(file, &known);
    }
    known
}

fn rewrite(file: &Path, known: &HashMap<PathBuf, Line>) -> io::Result<()> {
    let new = file.with_extension(format!("{}.new", std::process::id()));
    let text: String = known.values().filter_map(|l| serde_json::to_string(l).ok()).map(|l| l + "\n").collect();
    std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, file)).inspect_err(|_| drop(std::fs::remove_file(&new)))
}

/// Adds a line. A line break before it too: the last writer may have been killed in the middle of its own.
fn append(file: &Path, line: &Line) -> Option<()> {
    let text = format!("\n{}\n", serde_json::to_string(line).ok()?);
    std::fs::create_dir_all(file.parent()?).ok()?;
    OpenOptions::new().create(true).append(true).open(file).ok()?.write_all(text.as_bytes()).ok()
}

fn sha256(path: &Path) -> io::Result<String> {
    sha256_of_first(path, u64::MAX)
}

/// The SHA-256 of a file's first bytes.
pub(super) fn sha256_of_first(path: &Path, bytes: u64) -> io::Result<String> {
    let mut file = File::open(path)?.take(bytes);
    let mut hash = Sha256::new();
    let mut block = vec![0; 1 << 20];
    loop {
        match file.read(&mut block) {
            Ok(0) => return Ok(crate::hex(&hash.finalize())),
            Ok(n) => hash.update(&block[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

#[cfg(unix)]
fn inode(meta: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(meta)
}
#[cfg(not(unix))]
fn inode(_: &Metadata) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SHA-256 of `abc` and of nothing: FIPS 180-2, appendix B.1, and NIST's test vectors.
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    const NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    async fn of(cache: &Path, host: &Path) -> (String, u64) {
        Digests::new(Some(cache.to_owned())).of(host).await.unwrap()
    }

    #[tokio::test]
    async fn digests_are_remembered_until_the_file_changes() {
        let folder = tempfile::tempdir().unwrap();
        let (cache, host) = (folder.path().join("new/cache.jsonl"), folder.path().join("a 'b'\n模"));
        std::fs::write(&host, "abc").unwrap();
        assert_eq!(of(&cache, &host).await, (ABC.to_owned(), 3));
        // Another process takes it from the cache: what stands there is what comes.
        let text = std::fs::read_to_string(&cache).unwrap();
        assert_eq!(text.lines().filter(|l| !l.is_empty()).count(), 1);
        std::fs::write(&cache, text.replace(ABC, NOTHING)).unwrap();
        assert_eq!(of(&cache, &host).await, (NOTHING.to_owned(), 3));
        // Changed, with its old size: a time of change of its own.
        std::thread::sleep(std::time::Duration::from_millis(20));
        std::fs::write(&host, "abc").unwrap();
        assert_eq!(of(&cache, &host).await, (ABC.to_owned(), 3));
        std::fs::write(&host, "").unwrap();
        assert_eq!(of(&cache, &host).await, (NOTHING.to_owned(), 0));
        assert!(Digests::new(None).of(&folder.path().join("none")).await.is_err());
    }

    #[tokio::test]
    async fn a_spoilt_cache_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let (cache, host) = (folder.path().join("cache.jsonl"), folder.path().join("file"));
        std::fs::write(&host, "abc").unwrap();
        of(&cache, &host).await;
        let good = std::fs::read_to_string(&cache).unwrap();
        for bad in [
            good.replace("\"v\":1", "\"v\":2").replace(ABC, NOTHING),
            good.replace(ABC, "no digest; $(reboot)"),
            good.replace(ABC, &NOTHING[1..]),
            good.replace(ABC, &NOTHING.to_uppercase()),
            good.trim_end().replace(ABC, NOTHING)[..good.len() - 10].to_owned(),
            "\0\u{fffd}garbage\n{}\n[1]\n".to_owned(),
        ] {
            std::fs::write(&cache, bad).unwrap();
            assert_eq!(of(&cache, &host).await.0, ABC);
            assert!(std::fs::read_to_string(&cache).unwrap().ends_with(good.trim_start()), "added behind the spoilt line");
        }
        // A folder in its place: no cache, no error.
        assert_eq!(of(folder.path(), &host).await.0, ABC);
    }

    #[tokio::test]
    async fn a_long_cache_is_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        let (cache, host) = (folder.path().join("cache.jsonl"), folder.path().join("file"));
        std::fs::write(&host, "abc").unwrap();
        of(&cache, &host).await;
        let line = std::fs::read_to_string(&cache).unwrap();
        std::fs::write(&cache, line.replace(ABC, NOTHING).repeat(LONG) + &line).unwrap();
        assert_eq!(of(&cache, &host).await.0, ABC, "the last line counts");
        assert_eq!(std::fs::read_to_string(&cache).unwrap(), line.trim_start());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn only_the_first_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let host = folder.path().join("file");
        std::fs::write(&host, "abcdef").unwrap();
        assert_eq!(sha256_of_first(&host, 3).unwrap(), ABC);
        assert_eq!(sha256_of_first(&host, 0).unwrap(), NOTHING);
    }
}
