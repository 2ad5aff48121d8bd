//! An ONNX file, as far as its quantisation needs it: operators by name, shapes of initializers.
//!
//! Source: `onnx.proto` of the ONNX project for the numbers of the fields. Lengths are held against the bytes that are left before anything is read.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufReader, Read, Seek, SeekFrom},
    path::Path,
};

use crate::import::error::ImportError;

/// A node with more is one that carries a constant.
const NODE: u64 = 1 << 13;

/// An operator with those of its attributes that are whole numbers.
#[derive(Debug, Default, PartialEq)]
pub struct Node {
    /// Its own name.
    pub name: String,
    /// What it does.
    pub op_type: String,
    /// Names of what it reads.
    pub inputs: Vec<String>,
    /// Attributes.
    pub numbers: BTreeMap<String, u64>,
}

/// An initializer.
#[derive(Debug, Default)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// Number of its type.
    pub kind: u64,
    /// Its shape.
    pub dims: Vec<u64>,
}

impl Tensor {
    /// How many numbers it holds; `None` of more than there can be.
    pub fn elements(&self) -> Option<u64> {
        self.dims.iter().try_fold(1_u64, |all, n| all.checked_mul(*n))
    }
}

/// What counts of a model.
#[derive(Debug, Default)]
pub struct Graph {
    /// The operators that were asked for.
    pub nodes: Vec<Node>,
    /// Initializers that can be weights: those of two dimensions or more.
    pub tensors: BTreeMap<String, Tensor>,
}

/// Fields of `ModelProto`, `GraphProto`, `NodeProto`, `AttributeProto` and `TensorProto`.
const MODEL_GRAPH: u64 = 7;
const GRAPH_NODE: u64 = 1;
const GRAPH_INITIALIZER: u64 = 5;
const NODE_INPUT: u64 = 1;
const NODE_NAME: u64 = 3;
const NODE_OP_TYPE: u64 = 4;
const NODE_ATTRIBUTE: u64 = 5;
const ATTRIBUTE_NAME: u64 = 1;
const ATTRIBUTE_I: u64 = 3;
const TENSOR_DIMS: u64 = 1;
const TENSOR_TYPE: u64 = 2;
const TENSOR_NAME: u64 = 8;

/// A name or a shape with more bytes is none that counts.
const SHORT: u64 = 1 << 12;

/// The operators that count, and the initializers.
///
/// # Errors
/// A file that is no ONNX model, or damaged.
pub fn read(path: &Path, counts: impl Fn(&Node) -> bool) -> Result<Graph, ImportError> {
    let file = File::open(path).map_err(ImportError::io(path))?;
    let left = file.metadata().map_err(ImportError::io(path))?.len();
    let mut reader = Reader { path, file: BufReader::new(file), left };
    let mut found = Graph::default();
    while reader.left > 0 {
        match reader.field()? {
            (MODEL_GRAPH, Value::Length(length)) => graph(&mut reader, length, &counts, &mut found)?,
            (_, value) => reader.pass(&value)?,
        }
    }
    Ok(found)
}

fn graph(reader: &mut Reader<'_>, length: u64, counts: &impl Fn(&Node) -> bool, into: &mut Graph) -> Result<(), ImportError> {
    let after = reader.left.checked_sub(length).ok_or_else(|| reader.cut())?;
    while reader.left > after {
        match reader.field()? {
            (GRAPH_NODE, Value::Length(length)) if length <= NODE => {
                into.nodes.extend(Some(node(&reader.bytes(length)?)).filter(counts));
            }
            (GRAPH_INITIALIZER, Value::Length(length)) => {
                let tensor = tensor(reader, length)?;
                if tensor.dims.len() >= 2 {
                    into.tensors.insert(tensor.name.clone(), tensor);
                }
            }
            (_, value) => reader.pass(&value)?,
        }
    }
    Ok(())
}

/// An initializer without its values.
fn tensor(reader: &mut Reader<'_>, length: u64) -> Result<Tensor, ImportError> {
    let after = reader.left.checked_sub(length).ok_or_else(|| reader.cut())?;
    let mut tensor = Tensor::default();
    while reader.left > after {
        match reader.field()? {
            (TENSOR_DIMS, Value::Number(n)) => tensor.dims.push(n),
            (TENSOR_DIMS, Value::Length(length)) if length <= SHORT => {
                let bytes = reader.bytes(length)?;
                let mut rest = &bytes[..];
                while let Some((n, left)) = varint(rest) {
                    tensor.dims.push(n);
                    rest = left;
                }
            }
            (TENSOR_TYPE, Value::Number(kind)) => tensor.kind = kind,
            (TENSOR_NAME, Value::Length(length)) if length <= SHORT => {
                tensor.name = String::from_utf8_lossy(&reader.bytes(length)?).into_owned();
            }
            (_, value) => reader.pass(&value)?,
        }
    }
    Ok(tensor)
}

fn node(bytes: &[u8]) -> Node {
    let mut node = Node::default();
    for (field, value) in fields(bytes) {
        match (field, value) {
            (NODE_INPUT, Field::Bytes(text)) => node.inputs.push(String::from_utf8_lossy(text).into_owned()),
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

    /// The next field with its number; the content of one that has a length is still to come.
    fn field(&mut self) -> Result<(u64, Value), ImportError> {
        let key = self.varint()?;
        // There is no field 0: a file of zeros is one whose download was only begun.
        if key >> 3 == 0 {
            return Err(self.cut());
        }
        let value = match key & 7 {
            0 => Value::Number(self.varint()?),
            1 => Value::Length(8),
            2 => Value::Length(self.varint()?),
            5 => Value::Length(4),
            _ => return Err(self.cut()),
        };
        Ok((key >> 3, value))
    }

    fn pass(&mut self, value: &Value) -> Result<(), ImportError> {
        match value {
            Value::Number(_) => Ok(()),
            Value::Length(length) => self.skip(*length),
        }
    }
}

/// A field of a file.
enum Value {
    Number(u64),
    Length(u64),
}
