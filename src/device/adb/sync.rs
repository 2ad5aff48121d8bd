//! Files: the service `sync:`. A request is four letters, four bytes of length (little endian) and a path. Source: SYNC.TXT and
//! file_sync_protocol.h of packages/modules/adb.

use std::{
    fs::File,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader, ReadHalf, WriteHalf},
    task::spawn_blocking,
};

use super::{
    AdbError,
    protocol::{limited, lost, odd},
    remote::{Patience, Remote},
    server::Stream,
    shell::quote,
};

/// The largest block of file content; a daemon refuses longer ones.
const BLOCK: usize = 64 << 10;
/// Blocks that are read from the disk while the ones before them are on their way.
const BLOCKS: usize = 16;
/// Four letters and a length.
const HEAD: usize = 8;
const ENOENT: u32 = 2;
const ENOTDIR: u32 = 20;

/// A file on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Kind and permissions as `st_mode`.
    pub mode: u32,
    /// Bytes. Modulo 2^32 if `narrow`.
    pub size: u64,
    /// Seconds since 1970.
    pub mtime: i64,
    /// The daemon knows only the old form of 32 bits: a size over 4 GiB is wrong.
    pub narrow: bool,
}
impl Stat {
    /// A regular file.
    pub fn is_file(&self) -> bool {
        self.mode & 0o170_000 == 0o100_000
    }

    fn is_size(&self, bytes: u64) -> bool {
        self.size == if self.narrow { bytes & u64::from(u32::MAX) } else { bytes }
    }
}

/// What to do with a file that is larger than the limit of a pull.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// An error; nothing is left on the host.
    Fail,
    /// Its head is taken.
    Cut,
}

/// Called with the bytes done and all bytes.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) + Send + Sync);

type Reader = BufReader<ReadHalf<Stream>>;

/// An open file service. Questions to it need no new connection and start no process on the device.
pub struct Files {
    reader: Reader,
    writer: WriteHalf<Stream>,
    serial: String,
    patience: Patience,
    wide: bool,
}

impl Remote {
    /// Opens the file service.
    pub async fn files(&self) -> Result<Files, AdbError> {
        let wide = self.has("stat_v2").await?;
        let stream = self.open("opening the file service", "sync:").await?;
        let (reader, writer) = tokio::io::split(stream);
        let reader = BufReader::with_capacity(4 * BLOCK, reader);
        Ok(Files { reader, writer, serial: self.serial().to_owned(), patience: self.patience, wide })
    }

    /// What stands at a path, links followed; `None` if nothing does.
    pub async fn stat(&self, path: &str) -> Result<Option<Stat>, AdbError> {
        self.files().await?.stat(path, true).await
    }

    /// Copies a host file to the device: to a temporary name first, checked, then renamed, so that a cut transfer leaves nothing that looks
    /// like the file. `mode` holds the permissions.
    pub async fn push(&self, host: &Path, path: &str, mode: u32, progress: Progress<'_>) -> Result<u64, AdbError> {
        let file = File::open(host).map_err(AdbError::host(host))?;
        let part = format!("{path}.part");
        let done = async {
            let mut files = self.files().await?;
            let sent = files.send(file, host, &part, mode, progress).await?;
            match files.stat(&part, true).await? {
                Some(stat) if stat.is_size(sent) => Ok(sent),
                other => Err(wrong_size(&part, sent, other.map(|s| s.size))),
            }
        }
        .await;
        match done {
            Ok(sent) => {
                // The daemon gives group and others what the owner has, so the permissions are set once more.
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
        self.files().await?.send(io::Cursor::new(bytes.to_vec()), Path::new(path), path, mode, &|_, _| ()).await.map(|_| ())
    }

    /// Copies a file of the device to the host: to a temporary name first, checked against its size, then renamed.
    pub async fn pull(&self, path: &str, host: &Path, limit: u64, over: Over, progress: Progress<'_>) -> Result<u64, AdbError> {
        self.files().await?.pull(path, host, limit, over, progress).await
    }
}

fn wrong_size(path: &str, expected: u64, is: Option<u64>) -> AdbError {
    let is = is.map_or("it is not there".to_owned(), |n| format!("{n} bytes are there"));
    AdbError::Remote { path: path.to_owned(), said: format!("{is} instead of {expected}") }
}

/// The four letters of an answer, and the four bytes behind them.
type Head = ([u8; 4], u32);

async fn head(reader: &mut Reader) -> io::Result<Head> {
    let mut bytes = [0; 8];
    reader.read_exact(&mut bytes).await?;
    let (name, number) = bytes.split_at(4);
    Ok((name.try_into().expect("four"), u32::from_le_bytes(number.try_into().expect("four"))))
}

/// The daemon's reason of a `FAIL`.
async fn reason(reader: &mut Reader, length: u32) -> io::Result<String> {
    let mut bytes = Vec::new();
    reader.take(u64::from(length).min(4096)).read_to_end(&mut bytes).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl Files {
    async fn ask(&mut self, name: &[u8; 4], path: &str, during: &str) -> Result<(), AdbError> {
        if path.contains('\0') {
            return Err(AdbError::Remote { path: path.to_owned(), said: "a NUL byte can't be in a path".to_owned() });
        }
        let mut request = name.to_vec();
        request.extend((path.len() as u32).to_le_bytes());
        request.extend(path.as_bytes());
        self.writer.write_all(&request).await.map_err(lost(&self.serial, during))
    }

    /// What stands at a path; `None` if nothing does. `follow` looks through a symbolic link (the old 32-bit form never does).
    pub async fn stat(&mut self, path: &str, follow: bool) -> Result<Option<Stat>, AdbError> {
        let during = "stat";
        let serial = self.serial.clone();
        limited(&serial, during, self.patience.answer, async {
            if !self.wide {
                self.ask(b"STAT", path, during).await?;
                let mut b = [0; 16];
                self.reader.read_exact(&mut b).await.map_err(lost(&serial, during))?;
                if &b[..4] != b"STAT" {
                    return Err(odd(during, String::from_utf8_lossy(&b[..4])));
                }
                let stat = Stat { mode: u32_at(&b, 4), size: u64::from(u32_at(&b, 8)), mtime: i64::from(u32_at(&b, 12)), narrow: true };
                return Ok((stat.mode != 0).then_some(stat));
            }
            let name = if follow { b"STA2" } else { b"LST2" };
            self.ask(name, path, during).await?;
            // name, error, dev 8, ino 8, mode, nlink, uid, gid, size 8, atime 8, mtime 8, ctime 8
            let mut b = [0; 72];
            self.reader.read_exact(&mut b).await.map_err(lost(&serial, during))?;
            if &b[..4] != name {
                return Err(odd(during, String::from_utf8_lossy(&b[..4])));
            }
            match u32_at(&b, 4) {
                0 => Ok(Some(Stat { mode: u32_at(&b, 24), size: u64_at(&b, 40), mtime: u64_at(&b, 56).cast_signed(), narrow: false })),
                ENOENT | ENOTDIR => Ok(None),
                errno => Err(AdbError::Remote { path: path.to_owned(), said: errno_text(errno) }),
            }
        })
        .await
    }

    /// The whole of a small file, of `/proc` too; `None` if it does not exist. After an error the daemon has closed the service.
    pub async fn read(&mut self, path: &str, limit: u64) -> Result<Option<Vec<u8>>, AdbError> {
        if self.stat(path, true).await?.is_none() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        match self.receive(path, &mut bytes, limit, &mut |_| ()).await {
            Ok(true) => Ok(Some(bytes)),
            Ok(false) => Err(AdbError::TooMuch { what: format!("{path} on the device"), limit }),
            Err(e) => Err(e),
        }
    }

    /// See [`Remote::pull`].
    pub async fn pull(&mut self, path: &str, host: &Path, limit: u64, over: Over, progress: Progress<'_>) -> Result<u64, AdbError> {
        let missing = || AdbError::Remote { path: path.to_owned(), said: "no such file".to_owned() };
        let stat = self.stat(path, true).await?.ok_or_else(missing)?;
        if !stat.is_file() && !stat.narrow {
            return Err(AdbError::Remote { path: path.to_owned(), said: "not a regular file".to_owned() });
        }
        if stat.size > limit && over == Over::Fail {
            return Err(AdbError::TooMuch { what: format!("{path} on the device"), limit });
        }
        let part = Part::create(host)?;
        let mut writer = Counted { file: &part.file, bytes: 0, host };
        let whole = self.receive(path, &mut writer, limit, &mut |n| progress(n, stat.size.min(limit))).await?;
        let bytes = writer.bytes;
        if !whole && over == Over::Fail {
            return Err(AdbError::TooMuch { what: format!("{path} on the device"), limit });
        }
        if whole && !stat.is_size(bytes) {
            let said = format!("{bytes} of {} bytes came: it was cut off or is being written", stat.size);
            return Err(AdbError::Remote { path: path.to_owned(), said });
        }
        part.finish()?;
        Ok(bytes)
    }

    /// Streams a file of the device into `to`. `false` when there was more than `limit`; the connection is of no use then.
    async fn receive(&mut self, path: &str, to: &mut impl Sink, limit: u64, done: &mut (dyn FnMut(u64) + Send)) -> Result<bool, AdbError> {
        let during = format!("pull of {path}");
        let serial = self.serial.clone();
        let mut block = vec![0; BLOCK];
        let mut total = 0;
        limited(&serial, &during, self.patience.answer, self.ask(b"RECV", path, &during)).await?;
        loop {
            let patience = if total == 0 { self.patience.answer.max(self.patience.stall) } else { self.patience.stall };
            let Files { reader, .. } = self;
            let length = limited(&serial, &during, patience, async {
                match head(reader).await.map_err(lost(&serial, &during))? {
                    (name, length) if &name == b"DATA" => {
                        let length = length as usize;
                        let room = block.get_mut(..length).ok_or_else(|| odd(&during, format_args!("a block of {length} bytes")))?;
                        reader.read_exact(room).await.map_err(lost(&serial, &during))?;
                        Ok(Some(length))
                    }
                    (name, _) if &name == b"DONE" => Ok(None),
                    (name, length) if &name == b"FAIL" => {
                        let said = reason(reader, length).await.map_err(lost(&serial, &during))?;
                        Err(AdbError::Remote { path: path.to_owned(), said })
                    }
                    (name, _) => Err(odd(&during, String::from_utf8_lossy(&name))),
                }
            })
            .await?;
            let Some(length) = length else { return Ok(true) };
            let fits = (length as u64).min(limit - total);
            to.put(&block[..fits as usize])?;
            total += fits;
            done(total);
            if fits < length as u64 {
                return Ok(false);
            }
        }
    }

    /// Streams something to a file of the device. The daemon makes missing folders. Nothing is checked but its own answer.
    async fn send(&mut self, mut from: impl Source, host: &Path, path: &str, mode: u32, progress: Progress<'_>) -> Result<u64, AdbError> {
        let during = format!("push of {path}");
        let serial = self.serial.clone();
        let Patience { answer, stall } = self.patience;
        let (size, mtime) = from.size_and_mtime();
        let request = format!("{path},{}", 0o100_000 | (mode & 0o7777));
        limited(&serial, &during, answer, self.ask(b"SEND", &request, &during)).await?;

        let Files { reader, writer, .. } = self;
        let (serial, during) = (serial.as_str(), during.as_str());
        // The daemon says why it gives up (a full disk) while we are still sending: always listen.
        let verdict = async {
            match head(reader).await.map_err(lost(serial, during))? {
                (name, _) if &name == b"OKAY" => Ok(()),
                (name, length) if &name == b"FAIL" => {
                    let said = reason(reader, length).await.map_err(lost(serial, during))?;
                    Err(AdbError::Remote { path: path.to_owned(), said })
                }
                (name, _) => Err(odd(during, String::from_utf8_lossy(&name))),
            }
        };
        tokio::pin!(verdict);
        let mut sent = 0;
        // Two batches take turns: one is read while the other is sent.
        let mut next = spawn_blocking(move || blocks(from, Vec::new()));
        let mut spare = Vec::new();
        loop {
            let read = next.await.map_err(|e| odd(during, e))?;
            let (rest, batch, filled) = read.map_err(AdbError::host(host))?;
            if filled.bytes == 0 {
                break;
            }
            next = spawn_blocking(move || blocks(rest, spare));
            let piece = &batch[..filled.length];
            let write = limited(serial, during, stall, async { writer.write_all(piece).await.map_err(lost(serial, during)) });
            tokio::select! {
                biased;
                early = &mut verdict => return Err(early.err().unwrap_or_else(|| odd(during, "it is finished before the end"))),
                written = write => if let Err(e) = written {
                    // The connection broke: the daemon's own reason, if it still arrived, says more.
                    let reason = tokio::time::timeout(Duration::from_millis(200), &mut verdict).await;
                    return Err(match reason { Ok(Err(said @ AdbError::Remote { .. })) => said, _ => e });
                },
            }
            spare = batch;
            sent += filled.bytes as u64;
            progress(sent, size.max(sent));
        }
        let mut done = b"DONE".to_vec();
        done.extend(mtime.to_le_bytes());
        limited(serial, during, stall, async { writer.write_all(&done).await.map_err(lost(serial, during)) }).await?;
        // What is still in buffers between here and the flash has to be written first.
        limited(serial, during, stall.max(answer) * 2, &mut verdict).await?;
        Ok(sent)
    }
}

/// What is in a batch: its length, and the bytes of content in it.
struct Filled {
    length: usize,
    bytes: usize,
}

/// Fills a batch with up to [`BLOCKS`] blocks and their headers; no bytes at the end of the file.
fn blocks<S: Read>(mut from: S, mut batch: Vec<u8>) -> io::Result<(S, Vec<u8>, Filled)> {
    // Zeroed once: a fresh batch costs more than the reading.
    batch.resize(BLOCKS * (HEAD + BLOCK), 0);
    let mut filled = Filled { length: 0, bytes: 0 };
    for piece in batch.chunks_exact_mut(HEAD + BLOCK) {
        let (head, room) = piece.split_at_mut(HEAD);
        let mut n = 0;
        while n < BLOCK {
            match from.read(&mut room[n..]) {
                Ok(0) => break,
                Ok(k) => n += k,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        if n == 0 {
            break;
        }
        head[..4].copy_from_slice(b"DATA");
        head[4..].copy_from_slice(&(n as u32).to_le_bytes());
        filled.length += HEAD + n;
        filled.bytes += n;
        if n < BLOCK {
            break;
        }
    }
    Ok((from, batch, filled))
}

/// Where pushed bytes come from.
trait Source: Read + Send + 'static {
    /// The expected size, and the time of last change in seconds since 1970.
    fn size_and_mtime(&mut self) -> (u64, u32);
}
fn seconds(time: SystemTime) -> u32 {
    time.duration_since(UNIX_EPOCH).ok().and_then(|d| u32::try_from(d.as_secs()).ok()).unwrap_or(0)
}
impl Source for File {
    fn size_and_mtime(&mut self) -> (u64, u32) {
        let meta = self.metadata();
        let mtime = meta.as_ref().ok().and_then(|m| m.modified().ok()).unwrap_or_else(SystemTime::now);
        (meta.map_or(0, |m| m.len()), seconds(mtime))
    }
}
impl Source for io::Cursor<Vec<u8>> {
    fn size_and_mtime(&mut self) -> (u64, u32) {
        (self.get_ref().len() as u64, seconds(SystemTime::now()))
    }
}

/// Where pulled bytes go.
trait Sink: Send {
    fn put(&mut self, bytes: &[u8]) -> Result<(), AdbError>;
}
impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), AdbError> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}
struct Counted<'a> {
    file: &'a File,
    bytes: u64,
    host: &'a Path,
}
impl Sink for Counted<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), AdbError> {
        self.file.write_all(bytes).map_err(AdbError::host(self.host))?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }
}

/// A host file under a temporary name, removed unless it is finished.
struct Part<'a> {
    file: File,
    path: PathBuf,
    host: &'a Path,
    finished: bool,
}
impl<'a> Part<'a> {
    fn create(host: &'a Path) -> Result<Self, AdbError> {
        let mut name = host.file_name().unwrap_or_default().to_owned();
        name.push(".part");
        let path = host.with_file_name(name);
        let file = File::create(&path).map_err(AdbError::host(&path))?;
        Ok(Self { file, path, host, finished: false })
    }

    fn finish(mut self) -> Result<(), AdbError> {
        std::fs::rename(&self.path, self.host).map_err(AdbError::host(self.host))?;
        self.finished = true;
        Ok(())
    }
}
impl Drop for Part<'_> {
    fn drop(&mut self) {
        if !self.finished {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn u32_at(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(b[at..at + 4].try_into().expect("four bytes"))
}
fn u64_at(b: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(b[at..at + 8].try_into().expect("eight bytes"))
}

/// The numbers that the daemon sends are Linux's on every host.
fn errno_text(errno: u32) -> String {
    let name = match errno {
        5 => "Input/output error",
        13 => "Permission denied",
        36 => "File name too long",
        40 => "Too many levels of symbolic links",
        _ => return format!("errno {errno}"),
    };
    name.to_owned()
}
