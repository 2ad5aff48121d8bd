//! What every backend over QNN context binaries shares: the package that holds the libraries, and the recipe of the binaries.
//! The same binaries serve Genie, ONNX Runtime and qnn-net-run, so that "the same model" is true (rule R13).

use std::collections::BTreeMap;

use bench_backend_api::{
    Availability, Axis, Cell, DeviceFacts, Failure, FailureKind, Launch, Need, Quant, Recipe, Unit, tool::has_hexagon,
};
use serde_json::{Value, json};

/// Quantisations that the recipe makes.
pub const MADE: &[Quant] = &[Quant::Fp16, Quant::W8a16, Quant::W4a16];

/// The Python package that holds libQnnHtp.so (on x86_64 the HTP emulator), libGenie.so and the plugin of ONNX Runtime.
pub fn package() -> Need {
    Need::PythonPackage { distribution: "onnxruntime-qnn".to_owned(), module: "onnxruntime_qnn".to_owned() }
}

/// Whether the NPU of a device that is another machine can be asked at all.
///
/// # Errors
/// Why not: Hexagon before v68 has no HTP, and without its version the libraries that it needs are unknown.
pub fn reachable(device: &DeviceFacts) -> Result<(), Availability> {
    let reason = match device.htp_arch {
        _ if !["aarch64", "x86_64"].contains(&device.arch.as_str()) => format!("no QNN libraries exist for {}", device.arch),
        0 => "the Hexagon version of this device is not known: name its chip with `soc` in the scenario".to_owned(),
        arch @ 1..68 => format!("Hexagon v{arch} has no HTP: language models need v68 or newer"),
        _ => return Ok(()),
    };
    Err(Availability::Refused { reason })
}

/// Whether context binaries are for the device's chip (rule R33). The emulator runs those of every Hexagon version as if nothing were
/// wrong, a phone refuses them with error 5005.
///
/// # Errors
/// Both chips.
pub fn fits(launch: &Launch<'_>) -> Result<(), Failure> {
    let (meta, device) = (&launch.artifact.meta, launch.device);
    let number = |key: &str| meta.get(key).and_then(Value::as_u64);
    let wanted = u64::from(device.htp_arch);
    if let Some(arch) = number("htp_arch").filter(|arch| *arch != wanted) {
        let message = format!("the context binaries were made for Hexagon v{arch}, the NPU asked for is Hexagon v{wanted}");
        return Err(Failure::new(FailureKind::Model, message));
    }
    Ok(())
}

/// The option of our runners that asks for the same of binaries without a description; a phone's NPU does it by itself.
pub fn checked_arch(device: &DeviceFacts) -> Option<String> {
    (!has_hexagon(device)).then(|| device.htp_arch.to_string())
}

/// The recipe of a prefill and a decode binary for the device's Hexagon version; `None` for what it can't make.
pub fn recipe(cell: &Cell, device: &DeviceFacts) -> Option<Recipe> {
    cell.model.geometry.as_ref()?.seed?;
    if !MADE.contains(&cell.quant) || cell.unit != Unit::Npu {
        return None;
    }
    let mut args = BTreeMap::from([
        ("context".to_owned(), json!(cell.model.context)),
        ("chunk".to_owned(), json!(cell.model.usual_chunk())),
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
