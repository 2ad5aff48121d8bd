//! One static graph with its inputs, and the KV cache that is carried between runs.

use std::borrow::Cow;

use bench_runner_protocol::{Failure, Model, monotonic_ns};
use ort::{
    session::{Session, SessionInputValue, SessionOutputs},
    value::{DynTensor, DynValue, Tensor, TensorElementType},
};

use super::tensor::{Port, TensorElement, elements, elements_mut, failed, with_element};
use crate::{
    encoding::{Element, Encoding, Encodings, Meta},
    layout::{KvShape, append_key, append_value, argmax, rope, write_mask},
};

/// What blocks a column of attention, where `meta.json` names nothing else: exp(-100) is 0 even in float32, and float16 and the
/// encodings of quantised masks can hold it.
const BLOCKED: f64 = -100.0;

/// A loaded graph and the inputs that are written for each run. What does not depend on the token is made at load time, so
/// that little is done outside Run.
pub struct Graph {
    session: Session,
    /// Tokens of one run.
    pub ar: usize,
    /// Old tokens that its KV inputs can hold.
    pub capacity: usize,
    context: usize,
    vocab: usize,
    logits: TensorElementType,
    ids: Tensor<i32>,
    mask: DynTensor,
    mask_encoding: Option<Encoding>,
    blocked: f64,
    /// The current rows of the tables below.
    rope: [DynTensor; 2],
    /// Cosine and sine of every position, `[context, head_dim / 2]`, encoded.
    tables: [DynTensor; 2],
    layers: Vec<Layer>,
    kv: KvShape,
}

/// The KV ports of a layer.
struct Layer {
    key_in: Port,
    value_in: Port,
    key_out: String,
    value_out: String,
    zeros: [Option<Encoding>; 2],
}

impl Graph {
    /// Checks the session's ports against the job's model and makes the inputs. `ar` comes from the graph itself.
    pub fn new(session: Session, name: &str, model: &Model, meta: &Meta) -> Result<Self, Failure> {
        Self::build(session, model, meta, &meta.encodings(name))
            .map_err(|e| Failure { message: format!("graph {name}: {}", e.message), ..e })
    }

    fn build(session: Session, model: &Model, meta: &Meta, encodings: &Encodings) -> Result<Self, Failure> {
        let (Some(depth), Some(heads), Some(head_dim), Some(theta)) = (model.layers, model.kv_heads, model.head_dim, model.rope_theta)
        else {
            let needed = "layers, kv_heads, head_dim and rope_theta";
            return Err(Failure::usage(format!("the job does not tell all of the model's {needed}: add them to the geometry")));
        };
        let [context, vocab, heads, head_dim] = [model.context, model.vocab, heads, head_dim].map(|n| n as usize);
        let ids = Port::input(&session, "input_ids")?;
        let ar = ids.shape.iter().product::<usize>();
        if ids.element != TensorElementType::Int32 || ar == 0 || ar >= context {
            return Err(Failure::model(format!(
                "input_ids: {ar} elements of type {}; int32 and fewer than the context expected",
                ids.element
            )));
        }
        let ids = Tensor::<i32>::new(&ort::memory::Allocator::default(), ids.shape).map_err(|e| failed(&e))?;
        let capacity = context - ar;
        let mask = Port::input(&session, "attention_mask")?.expect(&[1, 1, ar, context])?;
        let logits = Port::output(&session, "logits")?;
        if logits.shape.iter().product::<usize>() != ar * vocab {
            return Err(Failure::model(format!("logits have the shape {:?}, the vocabulary {vocab}", logits.shape)));
        }
        let encoding = |port: &Port| {
            encodings
                .of(&port.name, !matches!(port.element, TensorElementType::Float32 | TensorElementType::Float16))
                .map_err(Failure::model)
        };

        let real = rope(context, head_dim, theta);
        let mut rope = Vec::new();
        let mut tables = Vec::new();
        for (name, real) in [("position_ids_cos", real.0), ("position_ids_sin", real.1)] {
            let port = Port::input(&session, name)?.expect(&[1, 1, ar, head_dim / 2])?;
            let mut table = Port { shape: vec![context, head_dim / 2], ..port.clone() }.tensor()?;
            let encoding = encoding(&port)?;
            with_element!(port.element, T => encode_all::<T>(&mut table, &real, encoding))?;
            rope.push(port.tensor()?);
            tables.push(table);
        }

        let mut layers = Vec::new();
        for layer in 0..depth {
            let key_in = Port::input(&session, &format!("past_key_{layer}_in"))?.expect(&[heads, 1, head_dim, capacity])?;
            let value_in = Port::input(&session, &format!("past_value_{layer}_in"))?.expect(&[heads, 1, capacity, head_dim])?;
            let key_out = Port::output(&session, &format!("past_key_{layer}_out"))?.expect(&[heads, 1, head_dim, ar])?;
            let value_out = Port::output(&session, &format!("past_value_{layer}_out"))?.expect(&[heads, 1, ar, head_dim])?;
            for (old, new) in [(&key_in, &key_out), (&value_in, &value_out)] {
                // KV goes from output to input as raw elements.
                if old.element != new.element || encoding(old)? != encoding(new)? {
                    return Err(Failure::model(format!("{} and {} differ in type or encoding", old.name, new.name)));
                }
            }
            let zeros = [encoding(&key_in)?, encoding(&value_in)?];
            layers.push(Layer { key_in, value_in, key_out: key_out.name, value_out: value_out.name, zeros });
        }
        let extra = session.inputs().len().saturating_sub(4 + 2 * layers.len());
        if extra > 0 {
            return Err(Failure::model(format!("{extra} inputs too many: not the {depth} layers of the job")));
        }
        Ok(Self {
            ar,
            capacity,
            context,
            vocab,
            logits: logits.element,
            ids,
            mask_encoding: encoding(&mask)?,
            mask: mask.tensor()?,
            blocked: meta.mask_blocked.unwrap_or(BLOCKED),
            rope: both(rope),
            tables: both(tables),
            layers,
            kv: KvShape { heads, head_dim, columns: capacity },
            session,
        })
    }

    /// An empty cache with the capacity of this graph.
    pub fn cache(&self) -> Result<Cache, Failure> {
        let mut tensors = Vec::new();
        for layer in &self.layers {
            for (port, zero) in [(&layer.key_in, layer.zeros[0]), (&layer.value_in, layer.zeros[1])] {
                tensors.push(CacheTensor { tensor: port.tensor()?, element: port.element, zero });
            }
        }
        let mut cache = Cache { tensors, shape: self.kv };
        cache.clear()?;
        Ok(cache)
    }

    /// Whether the other graph's KV can be copied into a cache of this one.
    pub fn check_kv_of(&self, other: &Graph) -> Result<(), Failure> {
        for (a, b) in self.layers.iter().zip(&other.layers) {
            if a.key_in.element != b.key_in.element || a.value_in.element != b.value_in.element || a.zeros != b.zeros {
                return Err(Failure::model(format!("{} has another type or encoding in the two graphs", a.key_in.name)));
            }
        }
        Ok(())
    }

    /// Writes the inputs for `tokens` at the positions from `past`; `pad` fills what is left of the AR.
    pub fn feed(&mut self, tokens: &[u32], past: usize, pad: u32) -> Result<(), Failure> {
        let mut padded = tokens.iter().copied().chain(std::iter::repeat(pad));
        for (slot, token) in self.ids.extract_tensor_mut().1.iter_mut().zip(&mut padded) {
            *slot = token.cast_signed();
        }
        let (context, encoding) = (self.context, self.mask_encoding);
        let (open, blocked) = (0.0, self.blocked);
        with_element!(*self.mask.data_type(), T => {
            write_mask(elements_mut::<T>(&mut self.mask)?, context, past, T::encode(open, encoding), T::encode(blocked, encoding));
            Ok(())
        })?;
        for (rows, table) in self.rope.iter_mut().zip(&self.tables) {
            with_element!(*rows.data_type(), T => copy_rows::<T>(rows, table, past, context))?;
        }
        Ok(())
    }

    /// Runs the graph on what was fed and on the cache.
    pub fn run(&mut self, cache: &Cache) -> Result<Output<'_>, Failure> {
        let Self { session, ids, mask, rope, layers, .. } = self;
        let mut inputs: Vec<(Cow<str>, SessionInputValue)> = Vec::with_capacity(4 + cache.tensors.len());
        inputs.push(("input_ids".into(), (&*ids).into()));
        inputs.push(("attention_mask".into(), (&*mask).into()));
        inputs.push(("position_ids_cos".into(), (&rope[0]).into()));
        inputs.push(("position_ids_sin".into(), (&rope[1]).into()));
        for (layer, kv) in layers.iter().zip(cache.tensors.chunks_exact(2)) {
            inputs.push((layer.key_in.name.as_str().into(), (&kv[0].tensor).into()));
            inputs.push((layer.value_in.name.as_str().into(), (&kv[1].tensor).into()));
        }
        let begin = monotonic_ns();
        let outputs = session.run(inputs).map_err(|e| failed(&e))?;
        let ran_ns = (begin, monotonic_ns());
        Ok(Output { outputs, layers, logits: self.logits, ar: self.ar, vocab: self.vocab, ran_ns })
    }
}

/// What one run gave.
pub struct Output<'a> {
    outputs: SessionOutputs<'a>,
    layers: &'a [Layer],
    logits: TensorElementType,
    ar: usize,
    vocab: usize,
    /// Begin and end of Run.
    pub ran_ns: (u64, u64),
}

impl Output<'_> {
    /// The greedy choice behind the token of this row.
    pub fn argmax(&self, row: usize) -> Result<u32, Failure> {
        let logits = self.tensor("logits")?;
        let range = row * self.vocab..(row + 1) * self.vocab;
        with_element!(self.logits, T => {
            let best = elements::<T>(logits)?.get(range).and_then(argmax);
            best.map(|id| id as u32).ok_or_else(|| Failure::runtime("the logits are no numbers"))
        })
    }

    /// Copies the KV of the first `n` tokens into the cache, from column `at`.
    pub fn append_to(&self, cache: &mut Cache, at: usize, n: usize) -> Result<(), Failure> {
        let (shape, ar) = (cache.shape, self.ar);
        for (layer, kv) in self.layers.iter().zip(cache.tensors.chunks_exact_mut(2)) {
            let [key, value] = kv else { unreachable!("chunks of two") };
            let new = self.tensor(&layer.key_out)?;
            with_element!(key.element, T => {
                append_key(elements_mut::<T>(&mut key.tensor)?, shape, elements::<T>(new)?, ar, at, n);
                Ok(())
            })?;
            let new = self.tensor(&layer.value_out)?;
            with_element!(value.element, T => {
                append_value(elements_mut::<T>(&mut value.tensor)?, shape, elements::<T>(new)?, ar, at, n);
                Ok(())
            })?;
        }
        Ok(())
    }

    fn tensor(&self, name: &str) -> Result<&DynValue, Failure> {
        self.outputs.get(name).ok_or_else(|| Failure::runtime(format!("no output {name}")))
    }
}

/// Keys and values of the tokens so far, as one graph takes them: key and value of layer 0, of layer 1, ...
pub struct Cache {
    tensors: Vec<CacheTensor>,
    shape: KvShape,
}

struct CacheTensor {
    tensor: DynTensor,
    element: TensorElementType,
    zero: Option<Encoding>,
}

impl Cache {
    /// Fills it with zeros: no query sees anything of the one before.
    pub fn clear(&mut self) -> Result<(), Failure> {
        for CacheTensor { tensor, element, zero } in &mut self.tensors {
            with_element!(*element, T => {
                elements_mut::<T>(tensor)?.fill(T::encode(0.0, *zero));
                Ok(())
            })?;
        }
        Ok(())
    }
}

fn encode_all<T: TensorElement>(tensor: &mut DynTensor, real: &[f64], encoding: Option<Encoding>) -> Result<(), Failure> {
    for (to, from) in elements_mut::<T>(tensor)?.iter_mut().zip(real) {
        *to = T::encode(*from, encoding);
    }
    Ok(())
}

/// The rows from `first` on, as many as there are; positions of padding behind the context repeat nothing and stay as they were.
fn copy_rows<T: TensorElement>(rows: &mut DynTensor, table: &DynTensor, first: usize, context: usize) -> Result<(), Failure> {
    let table = elements::<T>(table)?;
    let from = &table[first * (table.len() / context)..];
    let rows = elements_mut::<T>(rows)?;
    let n = rows.len().min(from.len());
    rows[..n].copy_from_slice(&from[..n]);
    Ok(())
}

fn both(tensors: Vec<DynTensor>) -> [DynTensor; 2] {
    tensors.try_into().unwrap_or_else(|_| unreachable!("cosine and sine"))
}
