//! Content to the device: `SEND`, or `SND2` with a compressed stream.
//!
//! Whether the daemon takes `SND2` is asked of the daemon: the server only passes bytes on, but one of version 29 (Debian 12) leaves out of
//! its list of features all that it does not know itself.

use std::{fs::File, path::Path, time::Duration};

use tokio::{io::AsyncWriteExt, task::spawn_blocking};

use super::{
    AdbError,
    packets::{Batch, Packets, Source, compressible},
    protocol::{limited, lost, odd},
    remote::{Patience, Remote},
    shell::quote,
    sync::{Files, Progress, head, reason},
};

/// The flag for LZ4 in the requests of version 2 (`kSyncFlagLZ4`).
const LZ4: u32 = 2;
/// Smaller files are not worth a look.
const LARGE_ENOUGH_TO_COMPRESS: u64 = 256 << 10;

/// A file to be made on the device.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub path: &'a str,
    /// Permissions; the daemon gives group and others what the owner has.
    pub mode: u32,
}

impl Remote {
    /// Copies a host file to the device: to a temporary name first, checked, then renamed, so that a cut transfer leaves nothing that looks
    /// like the file. `mode` holds the permissions.
    pub async fn push(&self, host: &Path, path: &str, mode: u32, progress: Progress<'_>) -> Result<u64, AdbError> {
        let part = format!("{path}.part");
        let done = async {
            let (mut files, sent) = self.send_file(host, 0, Target { path: &part, mode }, progress).await?;
            match files.stat(&part, true).await? {
                Some(stat) if stat.is_size(sent) => Ok(sent),
                other => Err(wrong_size(&part, sent, other.map(|s| s.size))),
            }
        };
        match done.await {
            Ok(sent) => {
                let (from, to) = (quote(&part), quote(path));
                let script = format!("chmod {:o} -- {from} && mv -f -- {from} {to}", mode & 0o7777);
                self.sh("renaming a pushed file", &script).await.map(|_| sent)
            }
            Err(e) => {
                if !e.is_lost() {
                    let _ = self.sh("removing a partial file", &format!("rm -f -- {}", quote(&part))).await;
                }
                Err(e)
            }
        }
    }

    /// Writes bytes into a file of the device. Cut off, it is left incomplete under its own name: for folders that are made anew.
    pub async fn write(&self, path: &str, bytes: &[u8], mode: u32) -> Result<(), AdbError> {
        let packets = Packets::new(Source::bytes(bytes.to_vec()), false);
        self.files().await?.send(packets, Path::new(path), Target { path, mode }, &|_, _| ()).await.map(|_| ())
    }

    /// Sends a file from a place in it on, compressed where that pays; the bytes of it that were sent, and the file service for more questions.
    /// Whether they arrived is for the caller to check, and to clear up after an error.
    pub(super) async fn send_file(
        &self,
        host: &Path,
        start: u64,
        to: Target<'_>,
        progress: Progress<'_>,
    ) -> Result<(Files, u64), AdbError> {
        let mut file = File::open(host).map_err(AdbError::host(host))?;
        let worth_a_look = file.metadata().map_err(AdbError::host(host))?.len() >= LARGE_ENOUGH_TO_COMPRESS;
        let compressed = worth_a_look && self.decompresses().await? && compressible(&mut file).map_err(AdbError::host(host))?;
        let packets = Packets::new(Source::file(file, start).map_err(AdbError::host(host))?, compressed);
        let mut files = self.files().await?;
        let sent = files.send(packets, host, to, progress).await?;
        Ok((files, sent))
    }

    /// Whether the daemon takes compressed content. Asked once, by the other direction of the same protocol: an empty file.
    pub(super) async fn decompresses(&self) -> Result<bool, AdbError> {
        self.compression
            .get_or_try_init(async || {
                // `ls_v2` came before it (Android 11); older daemons are not bothered.
                if self.has("sendrecv_v2_lz4").await? || !self.has("ls_v2").await? {
                    return self.has("sendrecv_v2_lz4").await;
                }
                let during = "asking for compressed transfer";
                let mut files = self.files().await?;
                files.ask_with(b"RCV2", "/dev/null", &[*b"RCV2", LZ4.to_le_bytes()].concat(), during).await?;
                let Files { reader, serial, patience, .. } = &mut files;
                let (name, _) =
                    limited(serial, during, patience.answer, async { head(reader).await.map_err(lost(serial, during)) }).await?;
                Ok(&name == b"DATA" || &name == b"DONE")
            })
            .await
            .copied()
    }
}

impl Files {
    /// Streams packets into a file of the device, which makes missing folders. Nothing is checked but its own answer. The bytes of content sent.
    async fn send(&mut self, packets: Packets, host: &Path, to: Target<'_>, progress: Progress<'_>) -> Result<u64, AdbError> {
        let during = format!("push of {}", to.path);
        let (size, mtime) = (packets.source.size, packets.source.mtime);
        let mode = 0o100_000 | (to.mode & 0o7777);
        if packets.is_compressed() {
            let details = [*b"SND2", mode.to_le_bytes(), LZ4.to_le_bytes()].concat();
            self.ask_with(b"SND2", to.path, &details, &during).await?;
        } else {
            self.ask(b"SEND", &format!("{},{mode}", to.path), &during).await?;
        }
        let Files { reader, writer, serial, patience: Patience { answer, stall }, .. } = self;
        let (serial, during) = (serial.as_str(), during.as_str());
        // The daemon says why it gives up (a full disk) while we are still sending: always listen.
        let verdict = async {
            match head(reader).await.map_err(lost(serial, during))? {
                (name, _) if &name == b"OKAY" => Ok(()),
                (name, length) if &name == b"FAIL" => {
                    let said = reason(reader, length).await.map_err(lost(serial, during))?;
                    Err(AdbError::Remote { path: to.path.to_owned(), said })
                }
                (name, _) => Err(odd(during, String::from_utf8_lossy(&name))),
            }
        };
        tokio::pin!(verdict);
        let mut sent = 0;
        // Two batches take turns: one is made while the other is sent.
        let mut next = spawn_blocking(|| packets.next(Batch::default()));
        let mut spare = Batch::default();
        loop {
            let (rest, batch) = next.await.map_err(|e| odd(during, e))?.map_err(AdbError::host(host))?;
            let Some(batch) = batch else { break };
            next = spawn_blocking(move || rest.next(spare));
            let write = limited(serial, during, *stall, async { writer.write_all(batch.wire()).await.map_err(lost(serial, during)) });
            tokio::select! {
                biased;
                early = &mut verdict => return Err(early.err().unwrap_or_else(|| odd(during, "it is finished before the end"))),
                written = write => if let Err(e) = written {
                    // The connection broke: the daemon's own reason, if it still arrived, says more.
                    let reason = tokio::time::timeout(Duration::from_millis(200), &mut verdict).await;
                    return Err(match reason { Ok(Err(said @ AdbError::Remote { .. })) => said, _ => e });
                },
            }
            sent += batch.content;
            progress(sent, size.max(sent));
            spare = batch;
        }
        let done = [*b"DONE", mtime.to_le_bytes()].concat();
        limited(serial, during, *stall, async { writer.write_all(&done).await.map_err(lost(serial, during)) }).await?;
        // What is still in buffers between here and the flash has to be written first.
        limited(serial, during, (*stall).max(*answer) * 2, &mut verdict).await?;
        Ok(sent)
    }
}

fn wrong_size(path: &str, expected: u64, is: Option<u64>) -> AdbError {
    let is = is.map_or("it is not there".to_owned(), |n| format!("{n} bytes are there"));
    AdbError::Remote { path: path.to_owned(), said: format!("{is} instead of {expected}") }
}
