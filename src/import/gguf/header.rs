//! The header of a GGUF file: magic, version, metadata, names and types of the tensors. The tensors themselves are not touched.
//!
//! Source: the GGUF specification of the ggml project. Every length that the file claims is held against the bytes that are left in it
//! before anything is read or kept, so that a hostile file costs no more memory than a small one.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufReader, Read, Seek, SeekFrom},
    path::Path,
};

use super::super::error::ImportError;

/// Longest text that is kept: keys and the values that matter are far shorter; chat templates and token lists are passed over.
const KEPT: u64 = 4096;
/// Arrays in arrays deeper than this are not in any file.
const DEEPEST: u32 = 4;
/// More keys or tensors than any model has.
const MOST: u64 = 1 << 20;

/// A value, as far as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A whole number that is not negative.
    Whole(u64),
    /// A number with a point.
    Float(f64),
    /// A text of usual length.
    Text(String),
    /// A list: its length, and its first number.
    List(u64, Option<u64>),
    /// Anything else.
    Other,
}
impl Value {
    /// A number as one with a point.
    pub fn float(&self) -> Option<f64> {
        match self {
            Self::Float(f) if f.is_finite() => Some(*f),
            Self::Whole(n) => Some(*n as f64),
            _ => None,
        }
    }

    /// Entries of a list.
    pub fn length(&self) -> Option<u64> {
        if let Self::List(n, _) = self { Some(*n) } else { None }
    }
}

/// What the header holds.
#[derive(Debug, Default, PartialEq)]
pub struct Header {
    /// Version of the format.
    pub version: u32,
    /// Metadata by key.
    pub values: BTreeMap<String, Value>,
    /// The tensors by name.
    pub tensors: BTreeMap<String, Tensor>,
}

/// What the header says of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tensor {
    /// Its type, as a number of `ggml_type`.
    pub kind: u32,
    /// Its weights; `None` where the sizes of its dimensions can't be true.
    pub weights: Option<u64>,
}

impl Header {
    /// Reads it.
    pub fn read(path: &Path) -> Result<Self, ImportError> {
        let file = File::open(path).map_err(ImportError::io(path))?;
        let left = file.metadata().map_err(ImportError::io(path))?.len();
        let mut reader = Reader { path, file: BufReader::new(file), left };
        let mut magic = [0; 4];
        reader.fill(&mut magic)?;
        if &magic != b"GGUF" {
            return Err(reader.bad("not a GGUF file: it does not begin with the four letters GGUF"));
        }
        let version = reader.u32()?;
        if !(2..=3).contains(&version) {
            return Err(reader.bad(&format!("version {version} of GGUF: this version reads 2 and 3 (little-endian)")));
        }
        let (tensors, keys) = (reader.u64()?, reader.u64()?);
        if tensors > MOST || keys > MOST {
            return Err(reader.bad(&format!("claims {tensors} tensors and {keys} keys, more than any model has")));
        }
        let mut header = Self { version, ..Self::default() };
        for _ in 0..keys {
            let key = reader.text()?;
            let kind = reader.u32()?;
            let value = reader.value(kind, 0)?;
            if let Some(key) = key {
                header.values.insert(key, value);
            }
        }
        for _ in 0..tensors {
            let name = reader.text()?;
            let dimensions = reader.u32()?;
            let mut weights = Some(1_u64);
            for _ in 0..dimensions {
                let size = reader.u64()?;
                weights = weights.and_then(|n| n.checked_mul(size));
            }
            let kind = reader.u32()?;
            reader.skip(8)?;
            if let Some(name) = name {
                header.tensors.insert(name, Tensor { kind, weights });
            }
        }
        Ok(header)
    }

    /// A value.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(key)
    }

    /// A count; of a list (one entry a layer) the first.
    pub fn count(&self, key: &str) -> Option<u32> {
        match self.get(key)? {
            Value::Whole(n) | Value::List(_, Some(n)) => u32::try_from(*n).ok(),
            _ => None,
        }
    }

    /// A text.
    pub fn text(&self, key: &str) -> Option<&str> {
        if let Value::Text(text) = self.get(key)? { Some(text) } else { None }
    }
}

struct Reader<'a> {
    path: &'a Path,
    file: BufReader<File>,
    /// Bytes that are left in the file.
    left: u64,
}

impl Reader<'_> {
    fn bad(&self, why: &str) -> ImportError {
        ImportError::bad(self.path, why)
    }

    fn take(&mut self, bytes: u64) -> Result<(), ImportError> {
        self.left = self
            .left
            .checked_sub(bytes)
            .ok_or_else(|| self.bad(&format!("ends {} bytes too early: it is cut off or damaged", bytes - self.left)))?;
        Ok(())
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), ImportError> {
        self.take(bytes.len() as u64)?;
        self.file.read_exact(bytes).map_err(ImportError::io(self.path))
    }

    fn skip(&mut self, bytes: u64) -> Result<(), ImportError> {
        self.take(bytes)?;
        // Within what is left of a file, whose length is no more than i64 can hold.
        let step = i64::try_from(bytes).map_err(|_| self.bad("claims a length that no file has"))?;
        if step < 4096 { self.file.seek_relative(step) } else { self.file.seek(SeekFrom::Current(step)).map(drop) }
            .map_err(ImportError::io(self.path))
    }

    fn u32(&mut self) -> Result<u32, ImportError> {
        let mut bytes = [0; 4];
        self.fill(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn u64(&mut self) -> Result<u64, ImportError> {
        let mut bytes = [0; 8];
        self.fill(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// A text, or `None` for one that is too long to matter or not UTF-8.
    fn text(&mut self) -> Result<Option<String>, ImportError> {
        let length = self.u64()?;
        if length > KEPT {
            self.skip(length)?;
            return Ok(None);
        }
        let mut bytes = vec![0; length as usize];
        self.fill(&mut bytes)?;
        Ok(String::from_utf8(bytes).ok())
    }

    /// Bytes of the types of fixed size.
    const fn size(kind: u32) -> Option<u64> {
        match kind {
            0 | 1 | 7 => Some(1),
            2 | 3 => Some(2),
            4..=6 => Some(4),
            10..=12 => Some(8),
            _ => None,
        }
    }

    fn value(&mut self, kind: u32, depth: u32) -> Result<Value, ImportError> {
        match kind {
            8 => Ok(self.text()?.map_or(Value::Other, Value::Text)),
            9 if depth < DEEPEST => self.list(depth),
            9 => Err(self.bad("lists in lists, deeper than any model has")),
            _ => {
                let size = Self::size(kind).ok_or_else(|| self.bad(&format!("a value of the unknown type {kind}")))?;
                let mut bytes = [0; 8];
                self.fill(&mut bytes[..size as usize])?;
                let whole = u64::from_le_bytes(bytes);
                Ok(match kind {
                    6 => Value::Float(f64::from(f32::from_bits(whole as u32))),
                    12 => Value::Float(f64::from_bits(whole)),
                    // Of signed numbers only those that are not negative are counts.
                    1 | 3 | 5 | 11 if whole >> (size * 8 - 1) != 0 => Value::Other,
                    7 => Value::Other,
                    _ => Value::Whole(whole),
                })
            }
        }
    }

    fn list(&mut self, depth: u32) -> Result<Value, ImportError> {
        let (kind, length) = (self.u32()?, self.u64()?);
        if let Some(size) = Self::size(kind) {
            let bytes = length.checked_mul(size).ok_or_else(|| self.bad("claims a list that no file can hold"))?;
            if length == 0 {
                return Ok(Value::List(0, None));
            }
            let first = self.value(kind, depth)?;
            self.skip(bytes - size)?;
            return Ok(Value::List(length, if let Value::Whole(n) = first { Some(n) } else { None }));
        }
        // Each entry has a length of its own, so that at least that has to be there.
        if length > self.left / 8 {
            return Err(self.bad(&format!("claims a list of {length} entries, and has only {} bytes left", self.left)));
        }
        for _ in 0..length {
            self.value(kind, depth + 1)?;
        }
        Ok(Value::List(length, None))
    }
}
