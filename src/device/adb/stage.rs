//! Files by content: what a device already has is not sent again. `store/<sha256>` holds the content (`<sha256>.x` if it is a program),
//! read-only, because a tool that wrote into its model through a link would spoil it for every later run. Beside it `<name>.ok` holds size and
//! time of last change at the moment when its digest was right; only when they differ is the digest computed again.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Mutex,
    time::SystemTime,
};

use sha2::{Digest, Sha256};

use super::{
    AdbError,
    remote::Remote,
    shell::{Limits, quote},
    sync::Progress,
};

/// Left free on the device: results and the system need some too.
const RESERVE: u64 = 64 << 20;

/// The content store of one device.
#[derive(Debug)]
pub(super) struct Store {
    folder: String,
    /// Names that this process has seen in good order.
    good: Mutex<HashSet<String>>,
    digests: Mutex<HashMap<PathBuf, (Identity, String)>>,
}

/// What a digest was made of.
type Identity = (u64, Option<SystemTime>, u64);

impl Store {
    pub(super) fn new(root: &str) -> Self {
        Self { folder: format!("{root}/store"), good: Mutex::default(), digests: Mutex::default() }
    }

    /// Makes sure that the content of a host file is on the device; its path there.
    pub(super) async fn put(&self, remote: &Remote, host: &Path, progress: Progress<'_>) -> Result<String, AdbError> {
        let (digest, size, program) = self.digest(host).await?;
        let name = if program { format!("{digest}.x") } else { digest.clone() };
        let path = format!("{}/{name}", self.folder);
        if self.good.lock().expect("not poisoned").contains(&name) {
            return Ok(path);
        }
        if !self.has(remote, &name, &digest, size).await? {
            remote.push(host, &format!("{path}.new"), if program { 0o555 } else { 0o444 }, progress).await?;
            self.admit(remote, &name, &digest).await?;
        }
        self.good.lock().expect("not poisoned").insert(name);
        Ok(path)
    }

    /// Whether the device has it; makes room if not.
    async fn has(&self, remote: &Remote, name: &str, digest: &str, size: u64) -> Result<bool, AdbError> {
        // Names are digests: no quoting is needed for them, and the folder is quoted.
        let script = format!(
            "mkdir -p -- {folder} && cd {folder} || exit 1\n\
             now=$(stat -c '%s %Y' {name} 2>/dev/null)\n\
             if [ -n \"$now\" ] && [ \"${{now%% *}}\" = {size} ]; then\n\
               [ \"$now\" = \"$(cat {name}.ok 2>/dev/null)\" ] && echo have && exit\n\
               [ \"$(sha256sum {name})\" = \"{digest}  {name}\" ] && echo \"$now\" > {name}.ok && echo have && exit\n\
             fi\n\
             rm -f {name} {name}.ok {name}.new.part; echo \"free $(stat -f -c '%a %S' .)\"",
            folder = quote(&self.folder)
        );
        let said = remote.exec(&script, digesting(size)).await?.success("looking for a staged file")?;
        if said.trim() == "have" {
            return Ok(true);
        }
        let numbers: Vec<u64> = said.split_whitespace().skip(1).filter_map(|w| w.parse().ok()).collect();
        if let [blocks, block] = numbers[..] {
            let free = blocks.saturating_mul(block);
            if free < size.saturating_add(RESERVE) {
                let mb = |b: u64| b / 1_000_000;
                return Err(AdbError::Remote {
                    path: self.folder.clone(),
                    said: format!(
                        "No space left on device: {} MB are free, {} MB are needed and {} MB stay free",
                        mb(free),
                        mb(size),
                        mb(RESERVE)
                    ),
                });
            }
        }
        Ok(false)
    }

    /// Takes a pushed file into the store if its content is right.
    async fn admit(&self, remote: &Remote, name: &str, digest: &str) -> Result<(), AdbError> {
        let script = format!(
            "cd {} || exit 1\n\
             sum=$(sha256sum {name}.new) || exit 1\n\
             if [ \"${{sum%% *}}\" != {digest} ]; then rm -f {name}.new; echo \"sha256 ${{sum%% *}} instead of {digest}\" >&2; exit 1; fi\n\
             mv -f {name}.new {name} && stat -c '%s %Y' {name} > {name}.ok",
            quote(&self.folder)
        );
        remote.exec(&script, digesting(u64::MAX)).await?.success("checking a pushed file").map(|_| ())
    }

    async fn digest(&self, host: &Path) -> Result<(String, u64, bool), AdbError> {
        let meta = std::fs::metadata(host).map_err(AdbError::host(host))?;
        let identity = (meta.len(), meta.modified().ok(), inode(&meta));
        let program = is_program(&meta);
        if let Some((known, digest)) = self.digests.lock().expect("not poisoned").get(host)
            && *known == identity
        {
            return Ok((digest.clone(), meta.len(), program));
        }
        let path = host.to_owned();
        let digest = tokio::task::spawn_blocking(move || sha256(&path)).await.map_err(|e| AdbError::host(host)(io::Error::other(e)))?;
        let digest = digest.map_err(AdbError::host(host))?;
        self.digests.lock().expect("not poisoned").insert(host.to_owned(), (identity, digest.clone()));
        Ok((digest, meta.len(), program))
    }
}

/// A slow device reads and digests 50 MB a second.
fn digesting(size: u64) -> Limits {
    let seconds = (size / 50_000_000).min(600);
    Limits { time: Limits::default().time + std::time::Duration::from_secs(seconds), ..Limits::default() }
}

fn sha256(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut block = vec![0; 1 << 20];
    loop {
        let n = file.read(&mut block)?;
        if n == 0 {
            break;
        }
        hash.update(&block[..n]);
    }
    Ok(hash.finalize().iter().fold(String::new(), |hex, b| hex + &format!("{b:02x}")))
}

#[cfg(unix)]
fn inode(meta: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(meta)
}
#[cfg(not(unix))]
fn inode(_: &std::fs::Metadata) -> u64 {
    0
}
#[cfg(unix)]
fn is_program(meta: &std::fs::Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o111 != 0
}
/// Windows knows no such permission: everything may be run.
#[cfg(not(unix))]
fn is_program(_: &std::fs::Metadata) -> bool {
    true
}
