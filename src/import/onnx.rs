//! The quantised operators of an ONNX model: their names and attributes, and nothing of the weights, which are passed over.
//!
//! Sources: `onnx.proto` of the ONNX project for the numbers of the fields; the contrib operators of ONNX Runtime (`MatMulNBits`,
//! `GatherBlockQuantized`) for the attributes. Lengths are held against the bytes that are left before anything is read.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufReader, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use super::{error::ImportError, quantisation::Quantisation};

/// A node with more is one that carries a constant.
const NODE: u64 = 1 << 13;

/// Operators whose weights are integers with a scale a block: a product, and the look-up of the embedding.
const QUANTISED: [&str; 2] = [PRODUCT, TABLE];
const PRODUCT: &str = "MatMulNBits";
const TABLE: &str = "GatherBlockQuantized";

/// An operator with those of its attributes that are whole numbers.
#[derive(Debug, Default, PartialEq)]
struct Node {
    name: String,
    op_type: String,
    numbers: BTreeMap<String, u64>,
}

/// What models of one artifact tell together.
///
/// # Errors
/// A file that is no ONNX model, or damaged.
pub fn quantisation(models: &[PathBuf]) -> Result<Quantisation, ImportError> {
    let mut nodes = Vec::new();
    for model in models {
        nodes.extend(read(model)?);
    }
    let number = |node: &Node, key: &str| node.numbers.get(key).copied();
    let products = || nodes.iter().filter(|node| node.op_type == PRODUCT);
    let bits = |node: &Node| number(node, "bits").unwrap_or(4);
    let mut kinds: BTreeMap<(u64, Option<u64>, Option<u64>), usize> = BTreeMap::new();
    for node in products() {
        *kinds.entry((bits(node), number(node, "block_size"), number(node, "accuracy_level"))).or_default() += 1;
    }
    // The kind of most products first, of equals the narrowest.
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let Some(((main, block, _), _)) = kinds.first().copied() else { return Ok(Quantisation::default()) };
    let words = |((bits, block, level), n): &((u64, Option<u64>, Option<u64>), usize)| {
        let block = block.map(|block| format!(" block {block}")).unwrap_or_default();
        let level = level.filter(|level| *level > 0).map(|level| format!(", accuracy level {level}")).unwrap_or_default();
        let n = if kinds.len() > 1 { format!(" x {n}") } else { String::new() };
        format!("int{bits}{block}{level}{n}")
    };
    let named = kinds.iter().map(words).collect::<Vec<_>>().join("; ");
    let mut told = Quantisation { native: Some(format!("{PRODUCT} {named}")), ..Quantisation::default() };
    told.put("weight_bits", Some(main as f64)).put("group", block.map(|block| block as f64));
    told.put("lm_head_bits", products().find(|node| node.name.contains("lm_head")).map(|node| bits(node) as f64));
    let table = nodes.iter().find(|node| node.op_type == TABLE);
    told.put("embedding_bits", table.map(|node| bits(node) as f64));
    Ok(told)
}

/// Fields of `ModelProto`, `GraphProto`, `NodeProto` and `AttributeProto`.
const MODEL_GRAPH: u64 = 7;
const GRAPH_NODE: u64 = 1;
const NODE_NAME: u64 = 3;
const NODE_OP_TYPE: u64 = 4;
const NODE_ATTRIBUTE: u64 = 5;
const ATTRIBUTE_NAME: u64 = 1;
const ATTRIBUTE_I: u64 = 3;

/// The quantised operators of a model's graph.
fn read(path: &Path) -> Result<Vec<Node>, ImportError> {
    let file = File::open(path).map_err(ImportError::io(path))?;
    let left = file.metadata().map_err(ImportError::io(path))?.len();
    let mut reader = Reader { path, file: BufReader::new(file), left };
    let mut nodes = Vec::new();
    while reader.left > 0 {
        match reader.field()? {
            Some((MODEL_GRAPH, length)) => graph(&mut reader, length, &mut nodes)?,
            Some((_, length)) => reader.skip(length)?,
            None => {}
        }
    }
    Ok(nodes)
}

fn graph(reader: &mut Reader<'_>, length: u64, nodes: &mut Vec<Node>) -> Result<(), ImportError> {
    let after = reader.left.checked_sub(length).ok_or_else(|| reader.cut())?;
    while reader.left > after {
        match reader.field()? {
            Some((GRAPH_NODE, length)) if length <= NODE => {
                nodes.extend(Some(node(&reader.bytes(length)?)).filter(|node| QUANTISED.contains(&node.op_type.as_str())));
            }
            Some((_, length)) => reader.skip(length)?,
            None => {}
        }
    }
    Ok(())
}

fn node(bytes: &[u8]) -> Node {
    let mut node = Node::default();
    for (field, value) in fields(bytes) {
        match (field, value) {
            (NODE_NAME, Field::Bytes(text)) => node.name = String::from_utf8_lossy(text).into_owned(),
            (NODE_OP_TYPE, Field::Bytes(text)) => node.op_type = String::from_utf8_lossy(text).into_owned(),
            (NODE_ATTRIBUTE, Field::Bytes(attribute)) => {
                let (mut name, mut number) = (String::new(), None);
                for (field, value) in fields(attribute) {
                    match (field, value) {
                        (ATTRIBUTE_NAME, Field::Bytes(text)) => name = String::from_utf8_lossy(text).into_owned(),
                        (ATTRIBUTE_I, Field::Number(value)) => number = Some(value),
                        _ => {}
                    }
                }
                node.numbers.extend(number.map(|number| (name, number)));
            }
            _ => {}
        }
    }
    node
}

enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Other,
}

/// The fields of a message in memory, as far as it is whole.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut found = Vec::new();
    while let Some((key, rest)) = varint(bytes) {
        let (field, rest) = match key & 7 {
            0 => match varint(rest) {
                Some((value, rest)) => (Field::Number(value), rest),
                None => break,
            },
            2 => {
                let Some((length, rest)) = varint(rest) else { break };
                let Some((own, rest)) = usize::try_from(length).ok().and_then(|length| rest.split_at_checked(length)) else { break };
                (Field::Bytes(own), rest)
            }
            1 | 5 => match rest.split_at_checked(if key & 7 == 1 { 8 } else { 4 }) {
                Some((_, rest)) => (Field::Other, rest),
                None => break,
            },
            _ => break,
        };
        found.push((key >> 3, field));
        bytes = rest;
    }
    found
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0_u64;
    for (place, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f).checked_shl(7 * place as u32)?;
        if byte & 0x80 == 0 {
            return Some((value, &bytes[place + 1..]));
        }
    }
    None
}

struct Reader<'a> {
    path: &'a Path,
    file: BufReader<File>,
    /// Bytes that are left in the file.
    left: u64,
}

impl Reader<'_> {
    fn cut(&self) -> ImportError {
        ImportError::bad(self.path, "no ONNX model, or cut off")
    }

    fn bytes(&mut self, length: u64) -> Result<Vec<u8>, ImportError> {
        self.left = self.left.checked_sub(length).ok_or_else(|| self.cut())?;
        let mut bytes = vec![0; length as usize];
        self.file.read_exact(&mut bytes).map_err(ImportError::io(self.path))?;
        Ok(bytes)
    }

    fn skip(&mut self, length: u64) -> Result<(), ImportError> {
        self.left = self.left.checked_sub(length).ok_or_else(|| self.cut())?;
        let step = i64::try_from(length).map_err(|_| self.cut())?;
        if step < 4096 { self.file.seek_relative(step) } else { self.file.seek(SeekFrom::Current(step)).map(drop) }
            .map_err(ImportError::io(self.path))
    }

    fn varint(&mut self) -> Result<u64, ImportError> {
        let mut value = 0_u64;
        for place in 0..10 {
            let mut byte = [0];
            self.left = self.left.checked_sub(1).ok_or_else(|| self.cut())?;
            self.file.read_exact(&mut byte).map_err(ImportError::io(self.path))?;
            let [byte] = byte;
            value |= u64::from(byte & 0x7f).checked_shl(7 * place).ok_or_else(|| self.cut())?;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.cut())
    }

    /// The next field that has a length, with its number, its content still to come; `None` for one of another kind, which is passed over.
    fn field(&mut self) -> Result<Option<(u64, u64)>, ImportError> {
        let key = self.varint()?;
        // There is no field 0: a file of zeros is one whose download was only begun.
        if key >> 3 == 0 {
            return Err(self.cut());
        }
        match key & 7 {
            0 => self.varint().map(|_| None),
            1 => self.skip(8).map(|()| None),
            2 => Ok(Some((key >> 3, self.varint()?))),
            5 => self.skip(4).map(|()| None),
            _ => Err(self.cut()),
        }
    }
}
