//! Files by content: what a device already has is not sent again. `store/<sha256>` holds the content (`<sha256>.x` if it is a program),
//! read-only, because a tool that wrote into its model through a link would spoil it for every later run. Beside it `<name>.ok` holds size and
//! time of last change at the moment when its digest was right; only when they differ is the digest computed again.

use std::{collections::HashSet, path::PathBuf, sync::Mutex, time::Duration};

use super::{
    AdbError,
    answer::{Room, read_answer},
    digests::Digests,
    push::Target,
    remote::Remote,
    resume,
    shell::{Limits, quote},
};

/// From this size on a file that was cut off is continued and not begun again.
const BIG: u64 = 64 << 20;
/// Names in one question: a command may have 64 KiB.
const NAMES: usize = 500;

/// A host file that a device should have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreFile {
    /// Where it is.
    pub host: PathBuf,
    /// Whether it is run there. The host's own permission does not count: an archive may have lost it.
    pub executable: bool,
}

/// Called with the name of the file that is being sent, and over all files that have to be sent the bytes done and all bytes. What an
/// attempt that was cut off has left on the device counts as done.
pub type Told<'a> = &'a (dyn Fn(&str, u64, u64) + Send + Sync);

/// What [`Store::clean`] took away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Contents, partial ones included.
    pub files: u64,
    /// Bytes on the device's storage. A content that a work folder still links to is given back when that goes.
    pub bytes: u64,
}

/// The content store of one device.
#[derive(Debug)]
pub struct Store {
    folder: String,
    /// Names that this process has seen in good order.
    good: Mutex<HashSet<String>>,
    digests: Digests,
}

/// A content that should be there.
struct Wanted<'a> {
    file: &'a StoreFile,
    name: String,
    size: u64,
}

impl Store {
    /// The store below a device's work root. `digests` is the host's file in which the digests of host files are kept between runs.
    pub fn new(root: &str, digests: Option<PathBuf>) -> Self {
        Self { folder: format!("{root}/store"), good: Mutex::default(), digests: Digests::new(digests) }
    }

    /// Makes sure that the content of a host file is on the device; its path there.
    pub async fn put(&self, remote: &Remote, file: &StoreFile, told: Told<'_>) -> Result<String, AdbError> {
        Ok(self.put_all(remote, std::slice::from_ref(file), told).await?.remove(0))
    }

    /// Makes sure that the contents of host files are on the device; their paths there, in this order. One question covers all of them. Room
    /// is checked for all that has to be sent before any of it is.
    pub async fn put_all(&self, remote: &Remote, files: &[StoreFile], told: Told<'_>) -> Result<Vec<String>, AdbError> {
        let (mut paths, mut wanted, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
        for file in files {
            let (digest, size) = self.digests.of(&file.host).await?;
            let name = if file.executable { digest + ".x" } else { digest };
            paths.push(self.path(&name));
            if !self.good().contains(&name) && seen.insert(name.clone()) {
                wanted.push(Wanted { file, name, size });
            }
        }
        let (missing, room) = self.missing(remote, &wanted).await?;
        room.check(&self.folder)?;
        let total = missing.iter().map(|w| w.size).sum();
        let mut before = 0;
        for content in missing {
            let label = content.file.host.file_name().unwrap_or_default().to_string_lossy();
            self.send(remote, content, &|done, _| told(&label, before + done, total)).await?;
            before += content.size;
        }
        self.good().extend(wanted.into_iter().map(|w| w.name));
        Ok(paths)
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }

    fn good(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.good.lock().expect("not poisoned")
    }

    /// What the device does not have, and the room for it. What is there but can't be vouched for is digested there, and removed if wrong.
    async fn missing<'a>(&self, remote: &Remote, wanted: &'a [Wanted<'a>]) -> Result<(Vec<&'a Wanted<'a>>, Room), AdbError> {
        let (mut missing, mut room) = (Vec::new(), Room::default());
        for some in wanted.chunks(NAMES) {
            let names = some.iter().map(|w| w.name.as_str()).collect::<Vec<_>>().join(" ");
            // Names are digests: no quoting is needed for them.
            let script = format!(
                "mkdir -p -- {folder} && cd {folder} || exit 1\nset -- {names}\nstat -c 'is %n %s %Y' \"$@\" 2>/dev/null\n\
                 for n; do [ -e $n.ok ] && read -r ok < $n.ok && echo \"ok $n $ok\"; [ -e $n.part ] && stat -c 'part %n %s x' $n.part; done\n\
                 echo \"free x $(stat -f -c '%a %S' .)\"",
                folder = quote(&self.folder)
            );
            let said = remote.sh("looking for staged files", &script).await?;
            let known = read_answer(&said);
            let doubtful: Vec<_> = some.iter().filter(|w| known.there(&w.name) && !known.vouched(&w.name, w.size)).collect();
            let good = self.digested(remote, &doubtful).await?;
            room.free = known.free.or(room.free);
            for content in some.iter().filter(|w| !known.vouched(&w.name, w.size) && !good.contains(&w.name)) {
                room.wants(content.size, known.parts.get(&content.name).copied().unwrap_or(0));
                missing.push(content);
            }
        }
        Ok((missing, room))
    }

    /// The names whose content on the device has the digest that they say.
    async fn digested(&self, remote: &Remote, doubtful: &[&Wanted<'_>]) -> Result<HashSet<String>, AdbError> {
        if doubtful.is_empty() {
            return Ok(HashSet::new());
        }
        let names = doubtful.iter().map(|w| w.name.as_str()).collect::<Vec<_>>().join(" ");
        let script = format!(
            "cd {} || exit 1\nfor n in {names}; do now=$(stat -c '%s %Y' $n); sum=$(sha256sum < $n)\n\
             if [ \"${{sum%% *}}\" = ${{n%.x}} ]; then echo \"$now\" > $n.ok && echo $n; else rm -f $n $n.ok; fi; done; true",
            quote(&self.folder)
        );
        let limits = digesting(doubtful.iter().map(|w| w.size).sum());
        let said = remote.exec(&script, limits).await?.success("checking staged files")?;
        Ok(said.lines().map(str::to_owned).collect())
    }

    /// Sends a content, and takes it into the store if it arrived as it should.
    async fn send(&self, remote: &Remote, content: &Wanted<'_>, progress: super::sync::Progress<'_>) -> Result<(), AdbError> {
        let Wanted { file, name, size } = content;
        let mode = if file.executable { 0o555 } else { 0o444 };
        let path = self.path(name);
        let came = if *size >= BIG {
            resume::push(remote, &file.host, *size, Target { path: &path, mode: 0o644 }, progress).await?;
            format!("{name}.part")
        } else {
            let came = format!("{name}.new");
            remote.send_file(&file.host, 0, Target { path: &self.path(&came), mode }, progress).await?;
            came
        };
        let digest = name.trim_end_matches(".x");
        // On the flash before anybody vouches for it, and before a load is called cold.
        let script = format!(
            "cd {} || exit 1\nsum=$(sha256sum < {came}) || exit 1\n\
             if [ \"${{sum%% *}}\" != {digest} ]; then rm -f {came}; echo \"sha256 ${{sum%% *}} arrived instead of {digest}\" >&2; exit 1; fi\n\
             fsync {came} 2>/dev/null; chmod {mode:o} {came} && mv -f {came} {name} && stat -c '%s %Y' {name} > {name}.ok",
            quote(&self.folder)
        );
        remote.exec(&script, digesting(*size)).await?.success("checking a pushed file").map(|_| ())
    }

    /// Removes what is in the store, all but `keep`: paths or names as [`Store::put_all`] gives them. Only for whoever holds the lock of the
    /// device.
    pub async fn clean(&self, remote: &Remote, keep: &[String]) -> Result<Cleaned, AdbError> {
        let keep: HashSet<_> = keep.iter().map(|k| k.rsplit('/').next().unwrap_or(k)).collect();
        let during = "cleaning the store";
        let folder = quote(&self.folder);
        let said = remote.sh(during, &format!("cd {folder} 2>/dev/null || exit 0; stat -c '%n %b %B' * 2>/dev/null; true")).await?;
        let mut cleaned = Cleaned::default();
        let mut names = Vec::new();
        for line in said.lines() {
            let mut words = line.rsplitn(3, ' ');
            let mut number = || words.next().and_then(|w| w.parse::<u64>().ok());
            let (Some(block), Some(blocks), Some(name)) = (number(), number(), words.next()) else { continue };
            let content = name.trim_end_matches(".ok");
            if keep.contains(content) {
                continue;
            }
            // A record is no content.
            cleaned.files += u64::from(content == name);
            cleaned.bytes += blocks.saturating_mul(block);
            names.push(quote(name));
        }
        self.good().clear();
        for some in names.chunks(NAMES) {
            remote.sh(during, &format!("cd {folder} && rm -f -- {}", some.join(" "))).await?;
        }
        Ok(cleaned)
    }
}

/// The slowest devices digest 10 MB a second and say nothing meanwhile.
pub(super) fn digesting(size: u64) -> Limits {
    let seconds = (size / 10_000_000).min(3600);
    Limits { time: Limits::default().time + Duration::from_secs(seconds), ..Limits::default() }
}
