//! One pass over a file, over the parts of a large one at once.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
    iter,
    path::Path,
    str,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
};

use csv::{ByteRecord, ReaderBuilder};
use thiserror::Error;

use crate::columns::{Columns, Numbers, Words};

/// Bytes that are read at once.
const BUFFER: usize = 1 << 18;

/// Bytes of a part: enough to be worth its own lists of words, and so few that what is made of it is made in the processor's cache.
const PART: u64 = 4 << 20;
/// More parts at once help little: the disk and the memory are shared.
const AT_ONCE: usize = 4;

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
    /// Not a byte.
    #[error("it is empty")]
    Empty,
    /// The file ends within its first line, so that nobody knows its columns.
    #[error("it is cut off in its first line")]
    Header,
    /// A line of other bytes than text: bench writes UTF-8.
    #[error("line {line} is no text")]
    NoText {
        /// Counted from 1.
        line: u64,
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
    joined(parts(path, wanted, |part| part)?)
}

/// Reads like [`read`], and gives what is made of each part of the table, in the order of the parts. They are made at once, and a part's columns go
/// as soon as something is made of them. A table whose parts can't be told (a value of several lines lies across a cut) is one part, made after
/// others were made for nothing: making has no effects.
pub fn parts<T: Send>(path: &Path, wanted: &Wanted<'_>, made: impl Fn(Columns) -> T + Sync) -> Result<Vec<T>, Problem> {
    // Before it is opened: a pipe would be waited for.
    let facts = path.metadata()?;
    if !facts.is_file() {
        return Err(io::Error::other("is no regular file").into());
    }
    parts_of(path, wanted, PART, made)
}

/// Sees that a file is a table from its first line to its last: text, and as many values in each line as there are columns. Gives the byte at which a
/// last line without an end begins: it is half a line, and may be anything.
pub fn check(path: &Path) -> Result<Option<u64>, Problem> {
    let length = path.metadata()?.len();
    if length == 0 {
        return Err(Problem::Empty);
    }
    let ends = ends(path, length)?;
    let mut reader = ReaderBuilder::new().flexible(true).has_headers(false).buffer_capacity(BUFFER).from_reader(File::open(path)?);
    let (mut record, mut columns) = (ByteRecord::new(), None);
    loop {
        let begin = reader.position().byte();
        if !reader.read_byte_record(&mut record)? {
            break;
        }
        if !ends && reader.position().byte() >= length {
            return if columns.is_none() { Err(Problem::Header) } else { Ok(Some(begin)) };
        }
        // Where the row ends: the position of a record lies before the empty lines that are passed over.
        let line = reader.position().line() - 1;
        if str::from_utf8(record.as_slice()).is_err() {
            return Err(Problem::NoText { line });
        }
        let (found, columns) = (record.len(), *columns.get_or_insert(record.len()));
        if found != columns {
            return Err(Problem::Ragged { line, found, columns });
        }
    }
    if columns.is_none() { Err(Problem::Empty) } else { Ok(None) }
}

/// [`parts`] of so many bytes. A part begins after the end of a line. That this is no end of a line within quotes is known afterwards, by the number
/// of quotes in the parts; if it is one, or if anything is wrong, the file is read in one.
pub(crate) fn parts_of<T: Send>(
    path: &Path,
    wanted: &Wanted<'_>,
    size: u64,
    made: impl Fn(Columns) -> T + Sync,
) -> Result<Vec<T>, Problem> {
    let length = path.metadata()?.len();
    let mut reader = ReaderBuilder::new().flexible(true).from_reader(BufReader::new(File::open(path)?));
    let header = reader.byte_headers()?.clone();
    if length == 0 {
        return Err(Problem::Empty);
    }
    let ends = ends(path, length)?;
    if !ends && reader.position().byte() >= length {
        return Err(Problem::Header);
    }
    let table = Table { path, header: &header, wanted, places: Places::of(&header, wanted)?, ends, length };
    let mut cuts = vec![reader.position().byte()];
    while cuts[cuts.len() - 1] + size < length {
        cuts.push(line_after(path, cuts[cuts.len() - 1] + size)?);
    }
    if cuts[cuts.len() - 1] < length || cuts.len() == 1 {
        cuts.push(length);
    }
    let part = |from: u64, to: u64| {
        let part = table.part(from, to)?;
        Ok::<_, Problem>((made(counted(part.columns)?), part.within_quotes))
    };
    let count = cuts.len() - 1;
    // Whoever is done takes the next one: the parts of one file cost more than those of another.
    let next = AtomicUsize::new(0);
    let work = || {
        iter::from_fn(|| Some(next.fetch_add(1, Relaxed)).filter(|at| *at < count))
            .map(|at| (at, part(cuts[at], cuts[at + 1])))
            .collect::<Vec<_>>()
    };
    let mut found = thread::scope(|scope| {
        let others: Vec<_> = (1..count.min(available_parallelism()).min(AT_ONCE)).map(|_| scope.spawn(work)).collect();
        let mut found = work();
        found.extend(others.into_iter().flat_map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))));
        found
    });
    if count > 1 && found.iter().any(|(_, part)| part.as_ref().map_or(true, |(_, within_quotes)| *within_quotes)) {
        return Ok(vec![part(cuts[0], length)?.0]);
    }
    found.sort_unstable_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, part)| Ok(part?.0)).collect()
}

/// The parts of a table as one.
pub(crate) fn joined(parts: Vec<Columns>) -> Result<Columns, Problem> {
    let mut parts = parts.into_iter();
    let mut whole = parts.next().unwrap_or_default();
    parts.for_each(|part| whole.append(part));
    counted(whole)
}

/// Rows are told by places of 32 bits.
fn counted(columns: Columns) -> Result<Columns, Problem> {
    u32::try_from(columns.rows).map(|_| columns).map_err(|_| Problem::Large)
}

fn available_parallelism() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// A table that is being read.
struct Table<'a> {
    path: &'a Path,
    header: &'a ByteRecord,
    wanted: &'a Wanted<'a>,
    places: Places<'a>,
    ends: bool,
    length: u64,
}

/// Where the wanted columns are.
struct Places<'a> {
    words: Vec<Option<usize>>,
    numbers: Vec<Option<usize>>,
    only: Vec<(usize, &'a [u8])>,
}

/// A part of a table.
struct Part {
    columns: Columns,
    /// It begins or ends within quotes, if it is not the last.
    within_quotes: bool,
}

impl<'a> Places<'a> {
    fn of(header: &ByteRecord, wanted: &Wanted<'a>) -> Result<Self, Problem> {
        let place = |name: &str| header.iter().position(|column| column == name.as_bytes());
        let only = wanted.only.iter().map(|(name, text)| match place(name) {
            Some(place) => Ok((place, text.as_bytes())),
            None => Err(Problem::Column((*name).to_owned())),
        });
        Ok(Self {
            words: wanted.words.iter().map(|name| place(name)).collect(),
            numbers: wanted.numbers.iter().map(|name| place(name)).collect(),
            only: only.collect::<Result<_, _>>()?,
        })
    }
}

impl Table<'_> {
    /// The rows from one byte to another.
    fn part(&self, from: u64, to: u64) -> Result<Part, Problem> {
        match self.plain(from, to)? {
            Some(part) => Ok(part),
            None => self.quoted(from, to),
        }
    }

    fn open(&self, from: u64, to: u64) -> io::Result<io::Take<File>> {
        let mut file = File::open(self.path)?;
        file.seek(SeekFrom::Start(from))?;
        Ok(file.take(to - from))
    }

    /// Where neither a quote nor a carriage return stands, which is nearly every table of bench, a comma ends a value and a line feed a row. `None` where
    /// one stands.
    fn plain(&self, from: u64, to: u64) -> Result<Option<Part>, Problem> {
        let mut bytes = self.open(from, to)?;
        let mut taken = Taken::of(self);
        let mut buffer = vec![0; BUFFER];
        // Bytes of the buffer that are of the file, and lines that have passed.
        let (mut filled, mut line, mut reserved) = (0, 0_u64, false);
        // Where the values of the row end.
        let mut ends: Vec<usize> = Vec::with_capacity(self.header.len());
        loop {
            if filled == buffer.len() {
                buffer.resize(2 * filled, 0);
            }
            let read = bytes.read(&mut buffer[filled..])?;
            if read == 0 {
                break;
            }
            filled += read;
            let whole = buffer[..filled].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            let mut row = 0;
            // The buffer's length is a multiple of eight too; what lies behind the last whole line is none of it yet.
            for (eight, from) in buffer[..whole.next_multiple_of(8)].as_chunks().0.iter().zip((0..).step_by(8)) {
                let mut low = low(*eight);
                while low != 0 {
                    let at = from + low.trailing_zeros() as usize / 8;
                    low &= low - 1;
                    match buffer[at] {
                        _ if at >= whole => break,
                        b',' => ends.push(at),
                        b'\n' => {
                            line += 1;
                            ends.push(at);
                            // An empty line is none.
                            if at > row {
                                let begin = |place: usize| place.checked_sub(1).map_or(row, |before| ends[before] + 1);
                                taken.row(ends.len(), line, |place| ends.get(place).map(|end| &buffer[begin(place)..*end]))?;
                            }
                            ends.clear();
                            row = at + 1;
                        }
                        b'"' | b'\r' => return Ok(None),
                        _ => {}
                    }
                }
            }
            if taken.rows > 0 && !reserved {
                // As many rows as there will be, if they go on as they began.
                taken.reserve(((to - from) / whole as u64 + 1) as usize * taken.rows);
                reserved = true;
            }
            buffer.copy_within(whole..filled, 0);
            filled -= whole;
        }
        // Of a last line without an end nothing is taken, whatever stands in it.
        Ok(Some(Part { columns: taken.columns(filled > 0), within_quotes: false }))
    }

    /// Any CSV.
    fn quoted(&self, from: u64, to: u64) -> Result<Part, Problem> {
        let source = Quotes { bytes: self.open(from, to)?, odd: false };
        let mut reader = ReaderBuilder::new().flexible(true).has_headers(false).buffer_capacity(BUFFER).from_reader(source);
        let mut taken = Taken::of(self);
        let mut cut = false;
        let mut record = ByteRecord::new();
        while reader.read_byte_record(&mut record)? {
            if !self.ends && from + reader.position().byte() >= self.length {
                cut = true;
                break;
            }
            taken.row(record.len(), reader.position().line() - 1, |place| record.get(place))?;
        }
        Ok(Part { columns: taken.columns(cut), within_quotes: reader.into_inner().odd })
    }
}

/// What is taken of the rows of a part.
struct Taken<'a> {
    table: &'a Table<'a>,
    rows: usize,
    words: Vec<(Option<usize>, Dictionary)>,
    numbers: Vec<(Option<usize>, Numbers)>,
}

impl<'a> Taken<'a> {
    fn of(table: &'a Table<'a>) -> Self {
        let words = table.places.words.iter().map(|place| (*place, Dictionary::new())).collect();
        let numbers = table.places.numbers.iter().map(|place| (*place, Numbers::default())).collect();
        Self { table, rows: 0, words, numbers }
    }

    /// A row of so many values, the header's line not counted.
    fn row<'b>(&mut self, found: usize, line: u64, value: impl Fn(usize) -> Option<&'b [u8]>) -> Result<(), Problem> {
        let columns = self.table.header.len();
        if found != columns {
            return Err(Problem::Ragged { line: line + 1, found, columns });
        }
        if self.table.places.only.iter().any(|(place, wanted)| value(*place) != Some(*wanted)) {
            return Ok(());
        }
        let text = |place: Option<usize>| place.and_then(&value).unwrap_or_default();
        self.rows += 1;
        for (place, column) in &mut self.words {
            column.push(text(*place));
        }
        for (place, column) in &mut self.numbers {
            column.push(text(*place));
        }
        Ok(())
    }

    fn reserve(&mut self, rows: usize) {
        self.words.iter_mut().for_each(|(_, column)| column.words.codes.reserve(rows));
        self.numbers.iter_mut().for_each(|(_, column)| column.values.reserve(rows));
    }

    fn columns(self, cut: bool) -> Columns {
        let named = |name: &&str| (*name).to_owned();
        let wanted = self.table.wanted;
        Columns {
            header: self.table.header.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect(),
            cut,
            rows: self.rows,
            words: wanted.words.iter().map(named).zip(self.words.into_iter().map(|(_, column)| column.words)).collect(),
            numbers: wanted.numbers.iter().map(named).zip(self.numbers.into_iter().map(|(_, column)| column)).collect(),
        }
    }
}

/// The highest bit of each of eight bytes that comes before the hyphen: the comma, the quote, the ends of lines, and in our tables little else. With
/// its highest bit set no byte borrows from the next, and loses the bit if the rest of it is less.
fn low(bytes: [u8; 8]) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let (bytes, high) = (u64::from_le_bytes(bytes), 0x80 * EACH);
    !((bytes | high) - u64::from(b'-') * EACH) & !bytes & high
}

/// Bytes, and whether the quotes that have passed are an odd number.
struct Quotes<R> {
    bytes: R,
    odd: bool,
}
impl<R: Read> Read for Quotes<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.bytes.read(into)?;
        let quotes = into[..n].iter().fold(0_u8, |odd, byte| odd ^ u8::from(*byte == b'"'));
        self.odd ^= quotes == 1;
        Ok(n)
    }
}

/// Where the next line begins after this byte.
fn line_after(path: &Path, byte: u64) -> io::Result<u64> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(byte))?;
    let mut line = Vec::new();
    let read = BufReader::new(file).read_until(b'\n', &mut line)?;
    Ok(byte + read as u64)
}

/// Whether a file ends with the end of a line.
fn ends(path: &Path, length: u64) -> io::Result<bool> {
    if length == 0 {
        return Ok(true);
    }
    let (mut file, mut last) = (File::open(path)?, [0]);
    file.seek(SeekFrom::Start(length - 1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// So many words are compared one by one.
const FEW: usize = 8;

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
        // Units and sources are few, and looked through sooner than hashed.
        let known = self.bytes.iter().take(FEW).position(|known| known == text).map(|place| place as u32);
        if let Some(known) = known.or_else(|| self.places.get(text).copied()) {
            return known;
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
        let any = || str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok());
        let number = decimal(text).or_else(any).filter(|value: &f64| value.abs() < MOST);
        self.not_numbers += usize::from(number.is_none() && !text.is_empty());
        self.values.push(number.unwrap_or(f64::NAN));
    }
}

/// Digits that are exact in any arrangement: less than 2^53.
const DIGITS: usize = 15;
const POWERS: [f64; DIGITS + 1] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// A number as nearly all of ours are written: digits, with a point or without. All digits and the power of ten are exact, so that their ratio is
/// the nearest number (Clinger 1990, "How to read floating point numbers accurately"). `None` is for the standard library.
pub(crate) fn decimal(text: &[u8]) -> Option<f64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let (mut whole, mut point) = (0_u64, None);
    for (at, byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' => whole = whole.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?,
            b'.' if point.is_none() => point = Some(at),
            _ => return None,
        }
    }
    let count = digits.len() - usize::from(point.is_some());
    let behind = point.map_or(0, |at| digits.len() - at - 1);
    let value = Some(whole as f64 / POWERS.get(behind)?).filter(|_| (1..=DIGITS).contains(&count))?;
    Some(if negative { -value } else { value })
}
