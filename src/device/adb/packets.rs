//! What is pushed, cut into packets of the file service: `DATA`, four bytes of length, at most 64 KiB of content. Compressed, the contents
//! of the packets are one LZ4 frame; where it is cut does not matter. All of this blocks (a disk, a processor), so it gets a thread.
//!
//! LZ4 of the three that a daemon may offer, because it costs least where a cable is fast, and `lz4_flex` because it is Rust without `unsafe`,
//! two crates in all, kept up since 2020; brotli and zstd would be a C library or slower than USB.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    time::{SystemTime, UNIX_EPOCH},
};

use lz4_flex::{
    block::compress,
    frame::{BlockSize, FrameEncoder, FrameInfo},
};

use super::sync::BLOCK;

/// Blocks that are read from the disk while the ones before them are on their way.
const BLOCKS: usize = 16;
/// Four letters and a length.
const HEAD: usize = 8;
/// How many blocks of a file, each from the middle of its part, are tried before it is compressed, and what has to be saved on them. Quantised weights save next to nothing.
const SAMPLES: u64 = 8;
const SAVED: f64 = 0.1;

/// Where pushed bytes come from.
pub(super) struct Source {
    from: Box<dyn Read + Send>,
    /// Bytes that are expected.
    pub size: u64,
    /// Time of last change, in seconds since 1970.
    pub mtime: u32,
}

impl Source {
    /// A file from a place in it on.
    pub fn file(mut file: File, start: u64) -> io::Result<Self> {
        let meta = file.metadata()?;
        file.seek(SeekFrom::Start(start))?;
        let mtime = seconds(meta.modified().unwrap_or_else(|_| SystemTime::now()));
        Ok(Self { from: Box::new(file), size: meta.len().saturating_sub(start), mtime })
    }

    /// Bytes in memory.
    pub fn bytes(bytes: Vec<u8>) -> Self {
        Self { size: bytes.len() as u64, from: Box::new(io::Cursor::new(bytes)), mtime: seconds(SystemTime::now()) }
    }

    /// Fills as much as there is.
    fn fill(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let mut n = 0;
        while n < room.len() {
            match self.from.read(&mut room[n..]) {
                Ok(0) => break,
                Ok(k) => n += k,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(n)
    }
}

fn seconds(time: SystemTime) -> u32 {
    time.duration_since(UNIX_EPOCH).ok().and_then(|d| u32::try_from(d.as_secs()).ok()).unwrap_or(0)
}

/// Whether samples from all over a file say that compressing it pays. Leaves the file at its start.
pub(super) fn compressible(file: &mut File) -> io::Result<bool> {
    let size = file.metadata()?.len();
    let mut block = vec![0; BLOCK];
    let (mut before, mut after) = (0, 0);
    for i in 0..SAMPLES {
        file.seek(SeekFrom::Start(size.saturating_sub(BLOCK as u64) / (2 * SAMPLES) * (2 * i + 1)))?;
        let n = file.read(&mut block)?;
        before += n;
        after += compress(&block[..n]).len();
    }
    file.rewind()?;
    Ok((after as f64) < (1.0 - SAVED) * before as f64)
}

/// The packets of a source, some at a time.
pub(super) struct Packets {
    /// Where they come from.
    pub source: Source,
    encoder: Option<Encoder>,
    ended: bool,
}

struct Encoder {
    frame: FrameEncoder<Vec<u8>>,
    plain: Vec<u8>,
}

/// Packets, ready to be sent.
#[derive(Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    length: usize,
    /// Bytes of the source that they hold.
    pub content: u64,
}
impl Batch {
    /// What goes over the wire.
    pub fn wire(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Packets {
    /// The packets of a source.
    pub fn new(source: Source, compressed: bool) -> Self {
        let frame = || FrameEncoder::with_frame_info(FrameInfo::new().block_size(BlockSize::Max256KB), Vec::new());
        let encoder = compressed.then(|| Encoder { frame: frame(), plain: vec![0; BLOCKS * BLOCK] });
        Self { source, encoder, ended: false }
    }

    /// Whether their contents are an LZ4 frame.
    pub fn is_compressed(&self) -> bool {
        self.encoder.is_some()
    }

    /// The next ones, in the memory of a batch that is no longer used; `None` after the end.
    pub fn next(mut self, mut batch: Batch) -> io::Result<(Self, Option<Batch>)> {
        if self.ended {
            return Ok((self, None));
        }
        (batch.length, batch.content) = (0, 0);
        if let Some(encoder) = &mut self.encoder {
            let n = self.source.fill(&mut encoder.plain)?;
            encoder.frame.write_all(&encoder.plain[..n])?;
            self.ended = n < encoder.plain.len();
            if self.ended {
                encoder.frame.try_finish()?;
            }
            batch.content = n as u64;
            let wire = encoder.frame.get_mut();
            batch.bytes.clear();
            for piece in wire.chunks(BLOCK) {
                batch.bytes.extend(head(piece.len()));
                batch.bytes.extend(piece);
            }
            batch.length = batch.bytes.len();
            wire.clear();
        } else {
            // Zeroed once: a fresh batch costs more than the reading.
            batch.bytes.resize(BLOCKS * (HEAD + BLOCK), 0);
            for piece in batch.bytes.chunks_exact_mut(HEAD + BLOCK) {
                let (front, room) = piece.split_at_mut(HEAD);
                let n = self.source.fill(room)?;
                self.ended = n < BLOCK;
                if n > 0 {
                    front.copy_from_slice(&head(n));
                    batch.length += HEAD + n;
                    batch.content += n as u64;
                }
                if self.ended {
                    break;
                }
            }
        }
        Ok((self, Some(batch)))
    }
}

fn head(length: usize) -> [u8; HEAD] {
    let mut head = *b"DATA\0\0\0\0";
    head[4..].copy_from_slice(&(length as u32).to_le_bytes());
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The contents of all packets, and how long each was.
    fn contents(bytes: &[u8], compressed: bool) -> (Vec<u8>, Vec<usize>) {
        let mut packets = Packets::new(Source::bytes(bytes.to_vec()), compressed);
        let (mut all, mut lengths, mut counted) = (Vec::new(), Vec::new(), 0);
        let mut spare = Batch::default();
        loop {
            let (rest, batch) = packets.next(spare).unwrap();
            let Some(batch) = batch else { break };
            let mut wire = batch.wire();
            while let [b'D', b'A', b'T', b'A', a, b, c, d, rest @ ..] = wire {
                let length = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
                lengths.push(length);
                all.extend(&rest[..length]);
                wire = &rest[length..];
            }
            assert!(wire.is_empty());
            counted += batch.content;
            (packets, spare) = (rest, batch);
        }
        assert_eq!(counted, bytes.len() as u64);
        (all, lengths)
    }

    #[test]
    fn plain_packets_are_full_and_hold_the_source() {
        for (size, lengths) in [(0, vec![]), (1, vec![1]), (65536, vec![65536]), (65537, vec![65536, 1])] {
            let bytes: Vec<u8> = (0..size).map(|i| (i % 253) as u8).collect();
            assert_eq!(contents(&bytes, false), (bytes, lengths));
        }
        let large = vec![3; 3 << 20];
        assert_eq!(contents(&large, false), (large, vec![65536; 48]));
    }

    #[test]
    fn compressed_packets_are_one_frame() {
        for size in [0, 1, 65536, (1 << 20) - 1, 1 << 20, (3 << 20) + 5] {
            let bytes: Vec<u8> = (0..size).map(|i| (i / 100 % 7) as u8).collect();
            let (frame, lengths) = contents(&bytes, true);
            assert_eq!(frame[..4], 0x184D_2204_u32.to_le_bytes(), "the magic number of an LZ4 frame");
            assert_eq!(frame[frame.len() - 4..], [0; 4], "and its end mark");
            assert!(lengths.iter().all(|n| (1..=65536).contains(n)) && frame.len() < 100 + size / 20, "{size}: {}", frame.len());
            let mut back = Vec::new();
            lz4_flex::frame::FrameDecoder::new(&frame[..]).read_to_end(&mut back).unwrap();
            assert!(back == bytes, "{size}");
        }
    }

    #[test]
    fn samples_tell_whether_compressing_pays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let noise = |n: usize| {
            let mut random = crate::random::SplitMix64::new(1);
            (0..n / 8).flat_map(|_| random.next().to_le_bytes()).collect::<Vec<u8>>()
        };
        let text = b"\"node\": { \"inputs\": [1, 2, 3] }, ".repeat(100_000);
        for (bytes, pays) in [
            (noise(4 << 20), false),
            (text.clone(), true),
            (Vec::new(), false),
            (vec![0; 5], false),
            // A header that compresses does not make a model that does.
            ([text[..100_000].to_vec(), noise(4 << 20)].concat(), false),
        ] {
            std::fs::write(&path, &bytes).unwrap();
            let mut file = File::open(&path).unwrap();
            assert_eq!(compressible(&mut file).unwrap(), pays, "{} bytes", bytes.len());
            assert_eq!(file.stream_position().unwrap(), 0);
        }
    }
}
