//! One pass over a file.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufReader},
    path::Path,
    str,
};

use csv::{ByteRecord, ReaderBuilder};
use thiserror::Error;

use crate::columns::{Columns, Numbers, Words};

/// Bytes that are read at once.
const BUFFER: usize = 1 << 18;

/// No measurement has as much, in whichever unit; and sums and products of what is less stay numbers.
pub const MOST: f64 = 1e100;

/// What is taken of a table.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted<'a> {
    /// Columns of text.
    pub words: &'a [&'a str],
    /// Columns of numbers.
    pub numbers: &'a [&'a str],
    /// Columns with the only text that they may have: all other rows are passed over.
    pub only: &'a [(&'a str, &'a str)],
}

/// Why a file can't be read as a table.
#[derive(Debug, Error)]
pub enum Problem {
    /// The system refused, or it is a pipe, a folder, a device.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is no CSV.
    #[error(transparent)]
    Csv(#[from] csv::Error),
    /// A line of another length than the header.
    #[error("line {line} has {found} values for {columns} columns")]
    Ragged {
        /// Counted from 1.
        line: u64,
        /// Values in it.
        found: usize,
        /// Columns of the header.
        columns: usize,
    },
    /// Nothing to choose the rows by.
    #[error("it has no column {0}")]
    Column(String),
    /// More rows than their places can count.
    #[error("it has over 4,294,967,295 rows")]
    Large,
}

/// Reads the wanted columns. Every line that bench writes has an end: a last one without is half a line, whose last number may be half a number,
/// and is not taken.
pub fn read(path: &Path, wanted: &Wanted<'_>) -> Result<Columns, Problem> {
    // Before it is opened: a pipe would be waited for.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("is no regular file").into());
    }
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut reader = ReaderBuilder::new().flexible(true).from_reader(BufReader::with_capacity(BUFFER, file));
    let header = reader.byte_headers()?.clone();
    let place = |name: &str| header.iter().position(|column| column == name.as_bytes());
    let mut words: Vec<_> = wanted.words.iter().map(|name| (place(name), Dictionary::new())).collect();
    let mut numbers: Vec<_> = wanted.numbers.iter().map(|name| (place(name), Numbers::default())).collect();
    let only = wanted.only.iter().map(|(name, text)| match place(name) {
        Some(place) => Ok((place, text.as_bytes())),
        None => Err(Problem::Column((*name).to_owned())),
    });
    let only = only.collect::<Result<Vec<_>, _>>()?;
    let ends = ends(path, length)?;
    let (mut cut, mut rows) = (false, 0_usize);
    let mut record = ByteRecord::new();
    while reader.read_byte_record(&mut record)? {
        if !ends && reader.position().byte() >= length {
            cut = true;
            break;
        }
        if record.len() != header.len() {
            let line = record.position().map_or(0, csv::Position::line);
            return Err(Problem::Ragged { line, found: record.len(), columns: header.len() });
        }
        let text = |place: Option<usize>| place.and_then(|place| record.get(place)).unwrap_or_default();
        if only.iter().any(|(place, wanted)| record.get(*place) != Some(*wanted)) {
            continue;
        }
        rows += 1;
        words.iter_mut().for_each(|(place, column)| column.push(text(*place)));
        numbers.iter_mut().for_each(|(place, column)| column.push(text(*place)));
    }
    u32::try_from(rows).map_err(|_| Problem::Large)?;
    let named = |name: &&str| (*name).to_owned();
    Ok(Columns {
        header: header.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect(),
        cut,
        rows,
        words: wanted.words.iter().map(named).zip(words.into_iter().map(|(_, column)| column.words)).collect(),
        numbers: wanted.numbers.iter().map(named).zip(numbers.into_iter().map(|(_, column)| column)).collect(),
    })
}

/// Whether a file ends with the end of a line.
fn ends(path: &Path, length: u64) -> io::Result<bool> {
    use io::{Read, Seek, SeekFrom};
    if length == 0 {
        return Ok(true);
    }
    let (mut file, mut last) = (File::open(path)?, [0]);
    file.seek(SeekFrom::Start(length - 1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// A column of text while it is read.
struct Dictionary {
    words: Words,
    places: HashMap<Vec<u8>, u32>,
    /// The words as they stand in the file.
    bytes: Vec<Vec<u8>>,
    /// Which word came after each one the last time: samplers go through their names in one order, so that it mostly comes again.
    next: Vec<u32>,
    last: u32,
}

impl Dictionary {
    fn new() -> Self {
        let words = Words { names: vec![String::new()], codes: Vec::new() };
        Self { words, places: HashMap::from([(Vec::new(), 0)]), bytes: vec![Vec::new()], next: vec![0], last: 0 }
    }

    fn push(&mut self, text: &[u8]) {
        let guess = self.next[self.last as usize];
        let code = if self.bytes[guess as usize] == text { guess } else { self.place(text) };
        self.next[self.last as usize] = code;
        self.last = code;
        self.words.codes.push(code);
    }

    fn place(&mut self, text: &[u8]) -> u32 {
        if let Some(known) = self.places.get(text) {
            return *known;
        }
        let code = self.bytes.len() as u32;
        self.places.insert(text.to_vec(), code);
        self.bytes.push(text.to_vec());
        self.next.push(code);
        self.words.names.push(String::from_utf8_lossy(text).into_owned());
        code
    }
}

impl Numbers {
    fn push(&mut self, text: &[u8]) {
        let number = str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok()).filter(|value: &f64| value.abs() < MOST);
        self.not_numbers += usize::from(number.is_none() && !text.is_empty());
        self.values.push(number.unwrap_or(f64::NAN));
    }
}
