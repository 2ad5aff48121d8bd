//! The little of the FlatBuffers format that an ETDump needs: tables, vectors and strings behind relative offsets
//! (flatbuffers.dev/internals). Every place is checked, so that a damaged file gives `None` and never a panic.

/// No name of an operation is longer.
const MAX_TEXT: usize = 512;

/// A table of a buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// A vector of offsets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Vector<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Its elements.
    pub(super) len: usize,
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// Where the unsigned offset at a place leads.
fn follow(bytes: &[u8], at: usize) -> Option<usize> {
    let offset = u32::from_le_bytes(number(bytes, at)?) as usize;
    at.checked_add(offset).filter(|to| offset > 0 && *to < bytes.len())
}

impl<'a> Table<'a> {
    /// The root of a buffer.
    pub(super) fn root(bytes: &'a [u8]) -> Option<Self> {
        Some(Self { bytes, at: follow(bytes, 0)? })
    }

    /// The place of a field, by its number in the schema; `None` where the writer left it out.
    fn field(self, number_of_field: usize) -> Option<usize> {
        let back = i32::from_le_bytes(number(self.bytes, self.at)?);
        let layout = usize::try_from(i64::try_from(self.at).ok()? - i64::from(back)).ok()?;
        let size = u16::from_le_bytes(number(self.bytes, layout)?) as usize;
        let entry = 4 + 2 * number_of_field;
        if entry + 2 > size {
            return None;
        }
        let offset = u16::from_le_bytes(number(self.bytes, layout.checked_add(entry)?)?) as usize;
        (offset > 0).then(|| self.at + offset)
    }

    pub(super) fn table(self, field: usize) -> Option<Self> {
        Some(Self { bytes: self.bytes, at: follow(self.bytes, self.field(field)?)? })
    }

    pub(super) fn vector(self, field: usize) -> Option<Vector<'a>> {
        let at = follow(self.bytes, self.field(field)?)?;
        let len = u32::from_le_bytes(number(self.bytes, at)?) as usize;
        // An element has four bytes.
        (len <= self.bytes.len() / 4).then_some(Vector { bytes: self.bytes, at: at + 4, len })
    }

    /// A string, its first [`MAX_TEXT`] bytes; those that are not UTF-8 are replaced.
    pub(super) fn text(self, field: usize) -> Option<String> {
        let at = follow(self.bytes, self.field(field)?)?;
        let len = u32::from_le_bytes(number(self.bytes, at)?) as usize;
        let bytes = self.bytes.get(at + 4..at.checked_add(4)?.checked_add(len.min(MAX_TEXT))?)?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    pub(super) fn i32(self, field: usize) -> Option<i32> {
        Some(i32::from_le_bytes(number(self.bytes, self.field(field)?)?))
    }

    pub(super) fn u64(self, field: usize) -> Option<u64> {
        Some(u64::from_le_bytes(number(self.bytes, self.field(field)?)?))
    }
}

impl<'a> Vector<'a> {
    /// Its tables, as far as they can be reached.
    pub(super) fn tables(self) -> impl Iterator<Item = Option<Table<'a>>> {
        (0..self.len).map(move |n| Some(Table { bytes: self.bytes, at: follow(self.bytes, self.at.checked_add(4 * n)?)? }))
    }
}
