//! What every backend over QNN context binaries shares: the package that holds the libraries, and the recipe of the binaries.
//! The same binaries serve Genie, ONNX Runtime and qnn-net-run, so that "the same model" is true (rule R13).

use std::collections::BTreeMap;

use bench_backend_api::{Axis, Cell, DeviceClass, DeviceFacts, Need, Quant, Recipe, Unit};
use serde_json::json;

/// Quantisations that the recipe makes.
pub const MADE: &[Quant] = &[Quant::Fp16, Quant::W8a16, Quant::W4a16];

/// The Python package that holds libQnnHtp.so (on x86_64 the HTP emulator), libGenie.so and the plugin of ONNX Runtime.
pub fn package() -> Need {
    Need::PythonPackage { distribution: "onnxruntime-qnn".to_owned(), module: "onnxruntime_qnn".to_owned() }
}

/// An HTP library on a PC is a simulator: its cells are never `pc` (design 2b.6).
pub const fn device_class(device: &DeviceFacts) -> DeviceClass {
    match device.class {
        DeviceClass::Pc => DeviceClass::Emulator,
        other => other,
    }
}

/// The recipe of a prefill and a decode binary for the device's Hexagon version; `None` for what it can't make.
pub fn recipe(cell: &Cell, device: &DeviceFacts) -> Option<Recipe> {
    cell.model.geometry.as_ref()?.seed?;
    if !MADE.contains(&cell.quant) || cell.unit != Unit::Npu {
        return None;
    }
    let mut args = BTreeMap::from([
        ("context".to_owned(), json!(cell.model.context)),
        ("chunk".to_owned(), json!(cell.model.chunk)),
        ("quant".to_owned(), json!(cell.quant.as_str())),
        ("soc_model".to_owned(), json!(device.soc_model)),
        ("htp_arch".to_owned(), json!(device.htp_arch)),
    ]);
    if let Some(bits) = cell.asked(Axis::Kv).and_then(|kv| kv.parse::<u32>().ok()) {
        match (cell.quant, bits) {
            (Quant::Fp16, 16) => {}
            (Quant::Fp16, _) => return None,
            _ => {
                args.insert("kv_bits".to_owned(), json!(bits));
            }
        }
    }
    Some(Recipe { kind: "qnn-context".to_owned(), args })
}
