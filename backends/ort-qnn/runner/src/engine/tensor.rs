//! Tensors whose element type is the model's choice.

use bench_runner_protocol::Failure;
use ort::{
    memory::Allocator,
    session::Session,
    value::{DynTensor, Outlet, PrimitiveTensorElementType, TensorElementType, TensorValueTypeMarker, Value},
};

use crate::encoding::Element;

/// An element of real numbers that ONNX Runtime knows too.
pub trait TensorElement: Element + PrimitiveTensorElementType + 'static {}
impl<T: Element + PrimitiveTensorElementType + 'static> TensorElement for T {}

/// Runs an expression with `$T` standing for the element type that `$type` names.
macro_rules! with_element {
    ($type:expr, $T:ident => $body:expr) => {{
        use ort::value::TensorElementType as E;
        macro_rules! with {
            ($t:ty) => {{
                type $T = $t;
                $body
            }};
        }
        match $type {
            E::Float32 => with!(f32),
            E::Float16 => with!(half::f16),
            E::Uint8 => with!(u8),
            E::Int8 => with!(i8),
            E::Uint16 => with!(u16),
            E::Int16 => with!(i16),
            other => Err(bench_runner_protocol::Failure::model(format!("elements of type {other} are not supported"))),
        }
    }};
}
pub(super) use with_element;

/// Name, element type and sizes of a graph's input or output.
#[derive(Debug, Clone, PartialEq)]
pub struct Port {
    pub name: String,
    pub element: TensorElementType,
    pub shape: Vec<usize>,
}

impl Port {
    pub fn input(session: &Session, name: &str) -> Result<Self, Failure> {
        Self::find(session.inputs(), name).ok_or_else(|| Failure::model(format!("no input {name}")))
    }

    pub fn output(session: &Session, name: &str) -> Result<Self, Failure> {
        Self::find(session.outputs(), name).ok_or_else(|| Failure::model(format!("no output {name}")))
    }

    fn find(outlets: &[Outlet], name: &str) -> Option<Self> {
        let dtype = outlets.iter().find(|o| o.name() == name)?.dtype();
        let shape = dtype.tensor_shape()?.iter().map(|n| usize::try_from(*n).unwrap_or(0)).collect();
        Some(Self { name: name.to_owned(), element: dtype.tensor_type()?, shape })
    }

    /// # Errors
    /// The sizes are others than these: the model is not the one that the job describes.
    pub fn expect(self, shape: &[usize]) -> Result<Self, Failure> {
        if self.shape == shape {
            return Ok(self);
        }
        Err(Failure::model(format!("{} has the shape {:?}, the job's model would have {shape:?}", self.name, self.shape)))
    }

    /// A tensor of zero bytes for this port.
    pub fn tensor(&self) -> Result<DynTensor, Failure> {
        DynTensor::new(&Allocator::default(), self.element, self.shape.clone()).map_err(|e| failed(&e))
    }
}

/// Elements of a tensor.
pub fn elements<T: TensorElement>(tensor: &Value<impl TensorValueTypeMarker + ?Sized>) -> Result<&[T], Failure> {
    tensor.try_extract_tensor::<T>().map(|(_, elements)| elements).map_err(|e| failed(&e))
}

/// Elements of a tensor, to be written.
pub fn elements_mut<T: TensorElement>(tensor: &mut DynTensor) -> Result<&mut [T], Failure> {
    tensor.try_extract_tensor_mut::<T>().map(|(_, elements)| elements).map_err(|e| failed(&e))
}

/// An error of ONNX Runtime outside loading.
pub fn failed(e: &ort::Error) -> Failure {
    Failure::runtime(e.to_string())
}
