//! The rules over what tools really printed. What is expected here was counted from the graphs themselves, not from the rules.

use std::{collections::BTreeMap, fs, path::Path};

use bench_backend_api::{Layer, Reader, SourceFile};
use bench_backend_llama_cpp::LlamaCppReader;
use bench_backend_mnn::MnnReader;
use bench_backend_ort_qnn::OrtQnnReader;
use bench_backend_qnn::QnnReader;

use super::{By, Class, Mapped, map};

fn read(reader: &dyn Reader, path: &str) -> Vec<Layer> {
    let full = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let bytes = fs::read(&full).unwrap_or_else(|e| panic!("{}: {e}", full.display()));
    reader.read(&[SourceFile { name: path.to_owned(), bytes }]).unwrap().layers
}

#[test]
fn dump() {
    let show = |name: &str, layers: Vec<Layer>, generates: bool| {
        println!("== {name}");
        for (l, m) in layers.iter().zip(map(&layers, generates)) {
            println!(
                "{:60} {:14} {:>5} {:10} {:9} {:12} {:8} {:?}",
                l.name,
                l.op_type.as_deref().unwrap_or("-"),
                m.block.map_or("-".into(), |b| b.to_string()),
                m.part.unwrap_or("-"),
                m.part_by.map_or("-", By::as_str),
                m.kind.unwrap_or("-"),
                m.class.map_or("-", Class::as_str),
                l.value
            );
        }
    };
    let files = std::env::var("DUMP").unwrap_or_default();
    for f in files.split(':').filter(|f| !f.is_empty()) {
        let (kind, path) = f.split_once('=').unwrap();
        let reader: &dyn Reader = match kind {
            "qnn" => &QnnReader,
            "ort" => &OrtQnnReader,
            "mnn" => &MnnReader,
            _ => &LlamaCppReader,
        };
        let bytes = fs::read(path).unwrap();
        match reader.read(&[SourceFile { name: path.to_owned(), bytes }]) {
            Ok(r) => show(path, r.layers, !path.contains("resnet")),
            Err(e) => println!("{e}"),
        }
    }
    let _ = (BTreeMap::<u8, Mapped>::new(), read as fn(&dyn Reader, &str) -> Vec<Layer>);
}
