use std::fs;

use super::read::{decimal, joined, parts_of};
use super::{Columns, Group, Problem, Series, Wanted, check, read};

fn table(text: &[u8], wanted: &Wanted) -> Result<Columns, Problem> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.csv");
    fs::write(&path, text).unwrap();
    read(&path, wanted)
}

const WANTED: Wanted = Wanted { words: &["cell", "name"], numbers: &["value"], only: &[("pass", "measure")] };

#[test]
fn rows_become_columns() {
    let text = b"pass,cell,value,name\nmeasure,a,1.5,x\nprofile,a,9,x\nmeasure,b, -2e3 ,\"y, \"\"z\"\"\"\nmeasure,a,,x\nmeasure,b,inf,\nmeasure,b,-1.7e308,x\nmeasure,b,two,x\n";
    let found = table(text, &WANTED).unwrap();
    assert_eq!((found.rows, found.cut, found.header.join(" ")), (6, false, "pass cell value name".to_owned()));
    let cells: Vec<&str> = (0..6).map(|row| found.words("cell").at(row)).collect();
    let names: Vec<&str> = (0..6).map(|row| found.words("name").at(row)).collect();
    assert_eq!((cells.concat(), names), ("ababbb".to_owned(), vec!["x", "y, \"z\"", "x", "", "x", "x"]));
    let values: Vec<Option<f64>> = (0..6).map(|row| found.numbers("value").at(row)).collect();
    assert_eq!(values, [Some(1.5), Some(-2000.0), None, None, None, None]);
    assert_eq!(found.not_numbers(), 3, "inf, -1.7e308 and two; an empty value is absent and not wrong");
}

#[test]
fn groups_are_what_a_map_makes_of_the_rows() {
    let mut lines = vec!["cell,name,value\n".to_owned()];
    let mut wanted: Vec<((u32, u32), Vec<u32>)> = Vec::new();
    for row in 0..5000_u32 {
        // 3,571 is prime to all of them: words come in runs, in turns and out of order.
        let key = (row / 700, (row * 3571) % 5 * u32::from(row % 11 != 0));
        lines.push(format!("c{},n{},{row}\n", key.0, key.1));
        match wanted.iter_mut().find(|(known, _)| *known == key) {
            Some((_, rows)) => rows.push(row),
            None => wanted.push((key, vec![row])),
        }
    }
    let found = table(lines.concat().as_bytes(), &Wanted { only: &[], ..WANTED }).unwrap();
    let groups = found.groups(&found.all(), &["cell", "name"]);
    let name = |column: &str, code: u32| found.words(column).names[code as usize].clone();
    let told: Vec<_> =
        groups.iter().map(|Group { codes, rows }| (name("cell", codes[0]) + &name("name", codes[1]), rows.clone())).collect();
    assert_eq!(told, wanted.into_iter().map(|((cell, of), rows)| (format!("c{cell}n{of}"), rows)).collect::<Vec<_>>());
    assert_eq!(found.groups(&[4, 2], &["cell"]), [Group { codes: vec![1], rows: vec![4, 2] }]);
}

#[test]
fn series_are_ascending_and_keep_what_has_both_numbers() {
    let text = b"name,t,value\nx,2,20\ny,1,5\nx,1,10\nx,,30\ny,3,\nx,2,21\nz,,1\n";
    let found = table(text, &Wanted { words: &["name"], numbers: &["t", "value"], only: &[] }).unwrap();
    let of = |row: u32, points: &[(f64, f64)]| Series { row, points: points.to_vec() };
    let wanted = [of(0, &[(1.0, 10.0), (2.0, 20.0), (2.0, 21.0)]), of(1, &[(1.0, 5.0)]), of(6, &[])];
    assert_eq!(found.series(&["name"], "t", "value"), wanted);
}

/// The standard library reads them too, rightly rounded.
#[test]
fn decimals_are_the_nearest_numbers() {
    let mut state = 1_u64;
    let mut read = 0;
    for _ in 0..200_000 {
        // Knuth's generator; its high bits are good.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let digits = (state >> 12).to_string();
        let digits = &digits[..=(state >> 60) as usize % digits.len()];
        let point = (state >> 50) as usize % (digits.len() + 1);
        for text in [digits.to_owned(), format!("-{}.{}", &digits[..point], &digits[point..])] {
            if let Some(value) = decimal(text.as_bytes()) {
                read += 1;
                assert_eq!(value.to_bits(), text.parse::<f64>().unwrap().to_bits(), "{text}");
            }
        }
    }
    assert!(read > 300_000, "{read}");
    for text in ["0", "-0", "0.1", ".5", "5.", "0.000001", "999999999999999"] {
        assert_eq!(decimal(text.as_bytes()).map(f64::to_bits), text.parse().ok().map(f64::to_bits), "{text}");
    }
    for text in ["", "-", ".", "-.", "1e3", "+1", " 1", "1.2.3", "--1", "inf", "1_000", "1000000000000000", "99999999999999999999999"] {
        assert_eq!(decimal(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn half_a_line_is_not_a_row_and_a_ragged_one_is_named() {
    let found = table(b"pass,cell,value\nmeasure,a,1\nmeasure,a,12", &WANTED).unwrap();
    assert_eq!((found.rows, found.cut, found.numbers("value").values.clone()), (1, true, vec![1.0]));
    let found = table(b"pass,cell,value\nmeasure,a", &WANTED).unwrap();
    assert_eq!((found.rows, found.cut), (0, true));
    let wrong = table(b"pass,cell,value\nmeasure,a,1\nmeasure,a\nmeasure,a,1\n", &WANTED).unwrap_err();
    assert_eq!(wrong.to_string(), "line 3 has 2 values for 3 columns");
}

/// A quoted word sends the whole table through the csv crate; without one our own few lines read it.
#[test]
fn both_ways_of_reading_see_the_same() {
    for body in [
        "a,1,x\n\n\nb,-2e3,y\n",
        "a,1,x\n,,\n",
        "a,1,x\nb,2\n",
        "a,1,x\nb,2,y,z\n",
        "a,1,x\n\n\nb,2\n",
        " a , 1 ,\n",
        "a,1,x\nb,2",
        "\n",
        "",
        "ü,inf,x\n",
    ] {
        let all = Wanted { only: &[], ..WANTED };
        let told = |text: String| {
            table(text.as_bytes(), &all).map_err(|problem| problem.to_string()).map(|found| {
                let row = |row: u32| {
                    (found.words("cell").at(row).to_owned(), found.words("name").at(row).to_owned(), found.numbers("value").at(row))
                };
                // Without the first row, which has the quotes.
                (found.all().into_iter().skip(1).map(row).collect::<Vec<_>>(), found.cut, found.not_numbers())
            })
        };
        assert_eq!(told(format!("cell,value,name\nq,0,q\n{body}")), told(format!("cell,value,name\n\"q\",0,q\n{body}")), "{body:?}");
        let returns = format!("cell,value,name\nq,0,q\n{body}").replace('\n', "\r\n");
        assert_eq!(told(returns.clone()).map(|found| found.0), told(returns.replace('\r', "")).map(|found| found.0), "{body:?}");
    }
}

#[test]
fn what_is_missing_is_empty() {
    let found = table(b"pass,cell\nmeasure,a\n", &WANTED).unwrap();
    assert_eq!((found.words("name").at(0), found.numbers("value").at(0)), ("", None));
    assert_eq!(table(b"pass,cell,value\n", &WANTED).unwrap().rows, 0);
    // A table has its columns' names at least.
    assert_eq!(table(b"", &Wanted { only: &[], ..WANTED }).unwrap_err().to_string(), "it is empty");
    assert_eq!(table(b"cell,value\na,1\n", &WANTED).unwrap_err().to_string(), "it has no column pass");
    // Bytes that are no UTF-8 are one word, not the end of the table.
    assert_eq!(table(b"pass,cell\nmeasure,\xff\n", &WANTED).unwrap().words("cell").at(0), "\u{fffd}");
}

#[test]
fn a_folder_is_no_table() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(read(dir.path(), &WANTED).unwrap_err().to_string(), "is no regular file");
    assert!(matches!(read(&dir.path().join("none"), &WANTED), Err(Problem::Io(_))));
}

#[test]
fn parts_are_the_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.csv");
    let told = |parts: u64| {
        let size = path.metadata().unwrap().len() / parts;
        let found = parts_of(&path, &Wanted { only: &[], ..WANTED }, size, |part| part).and_then(joined);
        let found = found.map_err(|problem| problem.to_string())?;
        let row =
            |row: u32| format!("{} {} {:?}", found.words("cell").at(row), found.words("name").at(row), found.numbers("value").at(row));
        Ok::<_, String>((found.all().into_iter().map(row).collect::<Vec<_>>(), found.cut, found.not_numbers()))
    };
    let plain: String = (0..999).map(|i| format!("c{},{i},n{}\n", i / 100, i % 7)).collect::<Vec<_>>().concat();
    // A name of many lines, at which every part may begin.
    let quoted: String = (0..40).map(|i| format!("c,{i},\"{}\"\n", "a,1,x\n".repeat(9))).collect::<Vec<_>>().concat();
    for (rows, count) in [(plain.clone(), 999), (quoted.clone(), 40), (plain.clone() + &quoted, 1039), (String::new(), 0)] {
        fs::write(&path, format!("cell,value,name\n{rows}")).unwrap();
        let whole = told(1).unwrap();
        assert_eq!(whole.0.len(), count);
        for parts in [2, 3, 4, 50] {
            assert_eq!(told(parts).unwrap(), whole, "{parts}");
        }
    }
    // Half a line at the end, and the line that is wrong.
    fs::write(&path, format!("cell,value,name\n{plain}c,5")).unwrap();
    assert_eq!((told(4), told(4).unwrap().1, told(4).unwrap().0.len()), (told(1), true, 999));
    fs::write(&path, format!("cell,value,name\n{plain}c,5\n{plain}")).unwrap();
    assert_eq!(told(4).unwrap_err(), "line 1001 has 2 values for 3 columns");
}

/// What stands where, and what is said of it. Every line that bench writes ends; what comes behind the last end may be half of anything.
#[test]
fn a_table_is_seen_through_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.csv");
    let of = |text: &[u8]| {
        fs::write(&path, text).unwrap();
        check(&path).map_err(|problem| problem.to_string())
    };
    assert_eq!(of(b"a,b\n1,2\n\"3\n,3\",4\n"), Ok(None));
    assert_eq!(of(b"a,b\n"), Ok(None));
    assert_eq!(of(b"a,b\n1,2\n3"), Ok(Some(8)));
    // Half a line within quotes, of which nobody knows where they would end.
    assert_eq!(of(b"a,b\n1,2\n3,\"x,\ny"), Ok(Some(8)));
    for (text, says) in [
        (&b""[..], "it is empty"),
        (b"\n\n", "it is empty"),
        (b"a,b", "it is cut off in its first line"),
        (b"\0\0\0\0", "it is cut off in its first line"),
        (b"a,b\n1,2\n3\n4,5\n", "line 3 has 1 values for 2 columns"),
        (b"a,b\n1,2\n3,4,5\n", "line 3 has 3 values for 2 columns"),
        (b"a,b\n1,2\n\xff,4\n", "line 3 is no text"),
    ] {
        assert_eq!(of(text), Err(says.to_owned()), "{text:?}");
    }
    for text in [&b""[..], b"a,b"] {
        fs::write(&path, text).unwrap();
        assert!(read(&path, &Wanted::default()).is_err(), "{text:?}");
    }
}
