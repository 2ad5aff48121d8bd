//! What rows can be filtered by.

use super::groups::workload;
use super::panel::class_title;
use super::view::{Choice, Keys, Pick};
use crate::report::load::{Cell, Run};

/// Cells of a run that nobody needs to filter.
const FEW: usize = 8;

/// What these cells, which share a row, are about.
pub fn keys(cells: &[&Cell]) -> Keys {
    let told = |of: fn(&Cell) -> String| {
        let mut values: Vec<String> = Vec::new();
        for value in cells.iter().map(|cell| of(cell)) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values.join("\n")
    };
    Keys {
        backend: told(|cell| cell.backend.clone()),
        model: told(|cell| cell.model.clone()),
        quant: told(|cell| cell.quant.clone()),
        workload: told(|cell| workload((cell.prompt, cell.generate))),
        status: told(|cell| cell.status.word().to_owned()),
        class: told(|cell| cell.class.clone()),
    }
}

/// The filters of a run: of what its cells have in common there is none.
pub fn filters(run: &Run) -> Vec<Choice> {
    if run.cells.len() <= FEW {
        return Vec::new();
    }
    let by = |name, label, of: &dyn Fn(&Cell) -> ((i64, i64), Pick)| {
        let mut values: Vec<((i64, i64), Pick)> = Vec::new();
        for value in run.cells.iter().map(of) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values.sort_by(|a, b| (a.0, &a.1.text).cmp(&(b.0, &b.1.text)));
        Choice { name, label, values: values.into_iter().map(|(_, pick)| pick).collect() }
    };
    let named = |key: &str| ((0, 0), Pick { key: key.to_owned(), text: key.to_owned(), ours: false });
    let ours = |key: &str, text: String| ((0, 0), Pick { key: key.to_owned(), text, ours: true });
    let all = vec![
        by("class", "Class", &|cell| ours(&cell.class, class_title(&cell.class))),
        by("model", "Model", &|cell| named(&cell.model)),
        by("backend", "Backend", &|cell| named(&cell.backend)),
        by("quant", "Quant", &|cell| named(&cell.quant)),
        by("workload", "Workload", &|cell| {
            let of = (cell.prompt, cell.generate);
            (of, Pick { key: workload(of), text: workload(of), ours: false })
        }),
        by("status", "Status", &|cell| ours(cell.status.word(), cell.status.word().to_owned())),
    ];
    all.into_iter().filter(|choice| choice.values.len() > 1).collect()
}
