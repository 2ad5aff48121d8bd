//! `results/README.md`: the field-by-field spec, made from the schema so that it can't fall behind.

use super::schema::{CELLS, METRICS, TABLES, Type};

/// The part of `results/README.md` between its markers.
pub fn markdown() -> String {
    let mut lines = Vec::new();
    for table in TABLES {
        lines.push(format!(
            "### {}\n\nA row is {}.\n\n| column | type | may be empty | meaning |\n|---|---|---|---|",
            table.file, table.row
        ));
        for column in table.columns {
            let ty = match column.ty {
                Type::Text => "text",
                Type::Int => "integer",
                Type::Float => "number",
            };
            let empty = if column.nullable { "yes" } else { "no" };
            lines.push(format!("| `{}` | {ty} | {empty} | {} |", column.name, column.meaning));
        }
        if table.file == CELLS.file {
            lines.push(
                "\nThen, for each metric `m` below: `m` (median over launches), `m_lo` and `m_hi` (interval of that median), \
                 `m_coverage` (how often such an interval holds the median: 0.95, or under ten launches what order statistics give, \
                 which with five and fewer is less), `m_mad` (median absolute deviation, raw), `m_centre` (the location that comparisons and history use: \
                 Hodges and Lehmann's, of the logarithms; empty when a value is not above 0, and in runs before 2026-12) and `m_n` (launches \
                 behind it); all numbers. Without a value all are empty; with one launch there is no interval, and `m_lo`, `m_hi` and `m_coverage` are \
                 empty. Only cells that are ok have any.\n\n\
                 | metric | of | better | meaning |\n|---|---|---|---|"
                    .to_owned(),
            );
            for m in METRICS {
                let of = if m.per_query { "query" } else { "launch" };
                let better = if m.higher_is_better { "higher" } else { "lower" };
                lines.push(format!("| `{}` | {of} | {better} | {} |", m.name, m.meaning));
            }
        }
        lines.push(String::new());
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `BENCH_UPDATE=1 cargo test the_spec_is_current` brings the file up to date.
    #[test]
    fn the_spec_is_current() {
        const BEGIN: &str = "<!-- made from src/results/schema.rs -->\n";
        const END: &str = "<!-- end -->";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/results/README.md");
        let text = std::fs::read_to_string(path).unwrap();
        let (head, rest) = text.split_once(BEGIN).expect("the begin marker");
        let (_, tail) = rest.split_once(END).expect("the end marker");
        let wanted = format!("{head}{BEGIN}\n{}\n{END}{tail}", markdown());
        if std::env::var_os("BENCH_UPDATE").is_some() {
            std::fs::write(path, &wanted).unwrap();
        } else {
            assert!(text == wanted, "results/README.md is not current: run BENCH_UPDATE=1 cargo test the_spec_is_current");
        }
    }
}
