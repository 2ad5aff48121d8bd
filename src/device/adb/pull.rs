//! Content from the device: `RECV`. What is taken is checked against its size and has a temporary name until then.

use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
};

use tokio::io::AsyncReadExt;

use super::{
    AdbError,
    protocol::{limited, lost, odd},
    remote::Remote,
    sync::{BLOCK, Files, Progress, head, reason},
};

/// What to do with a file that is larger than the limit of a pull.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// An error; nothing is left on the host.
    Fail,
    /// Its head is taken.
    Cut,
}

impl Remote {
    /// Copies a file of the device to the host: to a temporary name first, checked against its size, then renamed.
    pub async fn pull(&self, path: &str, host: &Path, limit: u64, over: Over, progress: Progress<'_>) -> Result<u64, AdbError> {
        self.files().await?.pull(path, host, limit, over, progress).await
    }
}

impl Files {
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
        self.ask(b"RECV", path, &during).await?;
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
