//! The markdown table, the CSV and the SQL of `llama-bench`.

use bench_backend_api::{Unreadable, text};
use serde_json::{Map, Value};

use super::{
    row::{Row, from_fields, is_test},
    value::{Bad, Place, Test, mean_std, number_value},
};

/// What was read, and what is odd or of another tool.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// Rows by format.
    pub(super) groups: Vec<Vec<Row>>,
    /// Whether a header was seen.
    pub(super) known: bool,
    /// Whether there is a table of MNN's llm_bench.
    pub(super) foreign: bool,
    /// What was odd.
    pub(super) warnings: Vec<String>,
}

/// Reads all three formats.
pub(super) fn read(file: &str, lines: &[&str]) -> Result<Tables, Unreadable> {
    let mut tables = Tables::default();
    let rows = markdown(file, lines, &mut tables)?;
    tables.groups.push(rows);
    let rows = csv(file, lines, &mut tables)?;
    tables.groups.push(rows);
    let mut rows = Vec::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.trim_start().starts_with("INSERT INTO ")) {
        let place = Place { file, line: at + 1 };
        let fields = insert(line).ok_or_else(|| place.error("the INSERT is cut or its values don't fit its columns"))?;
        if is_test(&fields) {
            rows.push(from_fields(fields, place, &mut tables.warnings)?);
        }
    }
    tables.known |= lines.iter().any(|line| line.trim_start().starts_with("CREATE TABLE IF NOT EXISTS"));
    tables.groups.push(rows);
    Ok(tables)
}

/// Cells of a row; `None` if the line is none. A log prefix before the first bar is dropped.
fn cells(line: &str) -> Option<Vec<&str>> {
    let start = line.find('|')?;
    let inner = line[start + 1..].trim_end().strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

fn markdown(file: &str, lines: &[&str], tables: &mut Tables) -> Result<Vec<Row>, Unreadable> {
    let mut header: Option<Vec<String>> = None;
    let mut rows: Vec<Row> = Vec::new();
    let mut built = 0;
    for (at, line) in lines.iter().enumerate() {
        let place = Place { file, line: at + 1 };
        if let Some(build) = line.trim().strip_prefix("build: ") {
            for row in &mut rows[built..] {
                row.report("build", build.trim());
            }
            built = rows.len();
            continue;
        }
        let Some(row) = cells(line) else {
            if header.is_some() && line.trim_start().starts_with('|') {
                tables.warnings.push(format!("{file} line {}: a row of the table is cut", at + 1));
            }
            continue;
        };
        let has = |name: &str| row.iter().any(|cell| cell.eq_ignore_ascii_case(name));
        if has("modelSize") && has("model") {
            tables.foreign = true;
            header = None;
        } else if has("test") && has("t/s") {
            tables.known = true;
            header = Some(row.iter().map(|cell| (*cell).to_owned()).collect());
        } else if let Some(header) = &header {
            let rule = row.iter().all(|cell| !cell.is_empty() && cell.bytes().all(|byte| matches!(byte, b'-' | b':' | b' ')));
            if rule {
                continue;
            }
            if row.len() == header.len() {
                rows.extend(markdown_row(header, &row, place, &mut tables.warnings)?);
            } else {
                tables.warnings.push(format!("{file} line {}: {} cells under {} columns", at + 1, row.len(), header.len()));
            }
        }
    }
    Ok(rows)
}

fn markdown_row(header: &[String], cells: &[&str], place: Place<'_>, warnings: &mut Vec<String>) -> Result<Option<Row>, Unreadable> {
    let cell = |name: &str| header.iter().position(|column| column.eq_ignore_ascii_case(name)).map_or("", |at| cells[at]);
    let Some(test) = Test::parse(cell("test")) else {
        warnings.push(format!("{} line {}: unknown kind of test `{}`", place.file, place.line, cell("test")));
        return Ok(None);
    };
    let mut row = Row::new(test.label());
    let speed = match mean_std(cell("t/s")) {
        Ok(speed) => Some(speed),
        Err(Bad::Comma) => return Err(place.comma(cell("t/s"))),
        Err(Bad::Text) => {
            warnings.push(format!("{} line {}: `{}` is no speed", place.file, place.line, cell("t/s")));
            None
        }
    };
    row.speed(test, speed.map(|(mean, _)| mean));
    for (name, cell) in header.iter().zip(cells).filter(|(name, _)| !name.eq_ignore_ascii_case("test")) {
        match text::number(cell).and_then(number_value) {
            Some(number) => row.report(name, number),
            None => row.report(name, *cell),
        }
    }
    if let Some(std) = speed.and_then(|(_, std)| std).and_then(number_value) {
        row.report("stddev", std);
    }
    Ok(Some(row))
}

fn csv(file: &str, lines: &[&str], tables: &mut Tables) -> Result<Vec<Row>, Unreadable> {
    let mut header: Option<Vec<String>> = None;
    let mut rows = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let place = Place { file, line: at + 1 };
        if line.contains("n_prompt") && line.contains("n_gen") && !line.contains('{') && !line.contains("INSERT INTO") {
            let names = fields(line.trim(), '"').unwrap_or_default();
            if names.iter().any(|name| name == "n_prompt") {
                tables.known = true;
                header = Some(names);
                continue;
            }
        }
        let Some(header) = &header else { continue };
        let line = line.trim();
        match fields(line, '"') {
            Some(values) if values.len() == header.len() => {
                let fields = header.iter().cloned().zip(values.into_iter().map(Value::String)).collect();
                rows.push(from_fields(fields, place, &mut tables.warnings)?);
            }
            // Values are quoted, lines of log are not.
            Some(values) if line.starts_with('"') => {
                return Err(place.error(&format!(
                    "{} values under {} columns: the row is cut, or a number has a comma",
                    values.len(),
                    header.len()
                )));
            }
            None if line.starts_with('"') => return Err(place.error("the row is cut inside a quoted value")),
            _ => {}
        }
    }
    Ok(rows)
}

/// Fields of a line, quoted or not; a quote inside is doubled. `None` for a quote that never ends.
fn fields(line: &str, quote: char) -> Option<Vec<String>> {
    let mut fields = vec![String::new()];
    let mut rest = line.chars().peekable();
    let mut inside = false;
    while let Some(c) = rest.next() {
        let field = fields.last_mut()?;
        if c == quote {
            if inside && rest.next_if_eq(&quote).is_some() {
                field.push(quote);
            } else {
                inside = !inside;
            }
        } else if c == ',' && !inside {
            fields.push(String::new());
        } else if inside || !c.is_whitespace() || !field.is_empty() {
            field.push(c);
        }
    }
    (!inside).then(|| fields.into_iter().map(|field| field.trim_end().to_owned()).collect())
}

/// `INSERT INTO t (a, b) VALUES ('1', '2');`
fn insert(line: &str) -> Option<Map<String, Value>> {
    let (columns, values) = line.split_once(" VALUES ")?;
    let columns = columns.split_once('(')?.1.trim_end().strip_suffix(')')?;
    let values = values.trim().trim_end_matches(';').trim_end().strip_prefix('(')?.strip_suffix(')')?;
    let (columns, values) = (fields(columns, '\'')?, fields(values, '\'')?);
    (columns.len() == values.len()).then(|| columns.into_iter().zip(values.into_iter().map(Value::String)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_csv_and_sql() {
        assert_eq!(fields(r#""a,b","c ""d""", e"#, '"'), Some(vec!["a,b".to_owned(), "c \"d\"".to_owned(), "e".to_owned()]));
        assert_eq!(fields(r#""a"#, '"'), None);
        let row = insert("INSERT INTO test (n_prompt, n_gen) VALUES ('512', '0');").unwrap_or_default();
        assert_eq!(row["n_prompt"], "512");
        assert!(insert("INSERT INTO test (n_prompt, n_gen) VALUES ('512'").is_none());
    }
}
