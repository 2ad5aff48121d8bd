//! What rows can be filtered by.

use super::groups::workload;
use super::panel::class_title;
use super::view::{Choice, Keys, Pick};
use crate::report::load::{Cell, Run};

/// Rows that nobody needs to filter.
const FEW: usize = 8;

/// A choice of a row, with what it is sorted by before its text.
pub type Placed = ((i64, i64), Pick);

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

/// Name and label of a filter, and which choice of it a row is.
pub type By<'a, T> = (&'static str, &'static str, &'a dyn Fn(&T) -> Placed);

/// The filters of a run: of what its cells have in common there is none.
pub fn filters(run: &Run) -> Vec<Choice> {
    let named = |key: &str| ((0, 0), Pick { key: key.to_owned(), text: key.to_owned(), ours: false });
    let ours = |key: &str, text: String| ((0, 0), Pick { key: key.to_owned(), text, ours: true });
    choices(
        &run.cells,
        &[
            ("class", "Class", &|cell: &Cell| ours(&cell.class, class_title(&cell.class))),
            ("model", "Model", &|cell| named(&cell.model)),
            ("backend", "Backend", &|cell| named(&cell.backend)),
            ("quant", "Quant", &|cell| named(&cell.quant)),
            ("workload", "Workload", &|cell| {
                let of = (cell.prompt, cell.generate);
                (of, Pick { key: workload(of), text: workload(of), ours: false })
            }),
            ("status", "Status", &|cell| ours(cell.status.word(), cell.status.word().to_owned())),
        ],
    )
}

/// The filters of rows that are more than a few, each of what not all have in common.
pub fn choices<T>(rows: &[T], by: &[By<T>]) -> Vec<Choice> {
    if rows.len() <= FEW {
        return Vec::new();
    }
    let choice = |&(name, label, of): &By<T>| {
        let mut values: Vec<Placed> = Vec::new();
        for value in rows.iter().map(of) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values.sort_by(|a, b| (a.0, &a.1.text).cmp(&(b.0, &b.1.text)));
        Choice { name, label, values: values.into_iter().map(|(_, pick)| pick).collect() }
    };
    by.iter().map(choice).filter(|choice| choice.values.len() > 1).collect()
}
