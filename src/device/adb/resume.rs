//! Big files, sent so that a lost cable costs only what was on its way.
//!
//! The daemon removes a file whose connection breaks, by the name under which it was opened (measured with adbd 34.0.5; only a daemon that
//! dies itself leaves it). So a file is given another name while it is being written: `NAME.new` becomes `NAME.part` as soon as it is
//! there. A rename, because Android's policy refuses hard links to the shell. The next attempt compares what is in `NAME.part` with the same bytes
//! of the host file and sends the rest as `NAME.rest`, which is then put behind it: the file service can't append.

use std::{io, path::Path};

use super::{
    AdbError,
    digests::sha256_of_first,
    push::Target,
    remote::Remote,
    shell::{Limits, quote},
    stage::digesting,
    sync::Progress,
};

/// Makes `NAME.part` hold a host file of `size` bytes, whatever an earlier attempt left there; `name` is the path without the ending. The
/// caller checks the digest of the whole. Bytes that were already there count as done.
pub(super) async fn push(remote: &Remote, host: &Path, size: u64, name: Target<'_>, progress: Progress<'_>) -> Result<(), AdbError> {
    let sent = attempt(remote, host, size, name, progress).await;
    if sent.as_ref().is_err_and(|e| !e.is_lost()) {
        // A full disk needs the room.
        let _ = remote.exec(&format!("{}; rm -f \"$n.new\" \"$n.part\" \"$n.rest\"", named(name)), Limits::default()).await;
    }
    sent
}

/// The name as a variable, since it stands in a script many times.
fn named(name: Target<'_>) -> String {
    format!("n={}", quote(name.path))
}

async fn attempt(remote: &Remote, host: &Path, size: u64, name: Target<'_>, progress: Progress<'_>) -> Result<(), AdbError> {
    let there = left(remote, host, size, name).await?;
    progress(there, size);
    if there == size {
        return Ok(());
    }
    let becomes = if there == 0 { "part" } else { "rest" };
    let keep = format!(
        "{}; i=0; while [ $i -lt 100 ]; do [ -e \"$n.new\" ] && mv \"$n.new\" \"$n.{becomes}\" && exit; sleep 0.1; i=$((i+1)); done",
        named(name)
    );
    let path = format!("{}.new", name.path);
    let told = |sent, _| progress(there + sent, size);
    let send = remote.send_file(host, there, Target { path: &path, mode: name.mode }, &told);
    tokio::pin!(send);
    tokio::select! {
        sent = &mut send => sent,
        _ = remote.exec(&keep, Limits::default()) => send.await,
    }?;
    // A file may be sent before it is renamed.
    let join = format!(
        "{}; [ ! -e \"$n.new\" ] || mv -f \"$n.new\" \"$n.{becomes}\" || exit 1\n\
         [ ! -e \"$n.rest\" ] || {{ cat \"$n.rest\" >> \"$n.part\" && rm -f \"$n.rest\"; }}",
        named(name)
    );
    remote.exec(&join, digesting(size)).await?.success("putting a pushed file together").map(|_| ())
}

/// How many bytes of the host file an earlier attempt has left; what is not of this file is removed.
async fn left(remote: &Remote, host: &Path, size: u64, name: Target<'_>) -> Result<u64, AdbError> {
    // After a cut the daemon may still write what it had received: its size has to stand still.
    let script = format!(
        "{}; rm -f \"$n.new\"; [ -e \"$n.part\" ] || {{ rm -f \"$n.rest\"; exit 0; }}\n\
         size() {{ stat -c %s \"$n.part\" \"$n.rest\" 2>/dev/null; }}\n\
         was=; now=$(size); while [ \"$was\" != \"$now\" ]; do sleep 0.3; was=$now; now=$(size); done\n\
         if [ -e \"$n.rest\" ]; then cat \"$n.rest\" >> \"$n.part\" && rm -f \"$n.rest\" || exit 1; fi\n\
         stat -c %s \"$n.part\" && sha256sum < \"$n.part\"",
        named(name)
    );
    let said = remote.exec(&script, digesting(size)).await?.success("looking for the beginning of a big file")?;
    let mut words = said.split_whitespace();
    let (Some(there), Some(digest)) = (words.next().and_then(|w| w.parse::<u64>().ok()), words.next()) else { return Ok(0) };
    if there <= size && digest == beginning(host, there).await? {
        return Ok(there);
    }
    remote.sh("removing a partial file", &format!("{}; rm -f \"$n.part\"", named(name))).await.map(|_| 0)
}

async fn beginning(host: &Path, bytes: u64) -> Result<String, AdbError> {
    let path = host.to_owned();
    let digest = tokio::task::spawn_blocking(move || sha256_of_first(&path, bytes)).await.map_err(io::Error::other);
    digest.and_then(|d| d).map_err(AdbError::host(host))
}
