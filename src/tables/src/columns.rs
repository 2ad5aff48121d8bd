//! Columns, and rows that belong together.

use std::collections::HashMap;

/// The columns that were asked for. One that the file lacks is there too, without a value in any row.
#[derive(Debug, Default)]
pub struct Columns {
    /// The file's own header.
    pub header: Vec<String>,
    /// The file ends within a line, which is not among the rows.
    pub cut: bool,
    /// Number of rows.
    pub rows: usize,
    pub(crate) words: Vec<(String, Words)>,
    pub(crate) numbers: Vec<(String, Numbers)>,
}

/// A column of text: the different words, and which one each row has.
#[derive(Debug, Default)]
pub struct Words {
    /// The different words in the order of their first rows; the first is the empty one, whether a row has it or not.
    pub names: Vec<String>,
    /// Of each row the place in `names`.
    pub codes: Vec<u32>,
}

/// A column of numbers.
#[derive(Debug, Default)]
pub struct Numbers {
    /// One for each row; NaN where there is none.
    pub values: Vec<f64>,
    /// Rows in which something stands that is no number, or none that can have been measured ([`MOST`](crate::MOST)).
    pub not_numbers: usize,
}

/// Points of the rows that have the same words in some columns.
#[derive(Debug, PartialEq)]
pub struct Series {
    /// Its first row.
    pub row: u32,
    /// Those with both numbers, ascending in the first; equal ones stay in the order of the table.
    pub points: Vec<(f64, f64)>,
}

/// Rows that have the same words in some columns.
#[derive(Debug, PartialEq, Eq)]
pub struct Group {
    /// The words' places, in the order of the columns.
    pub codes: Vec<u32>,
    /// The rows, ascending.
    pub rows: Vec<u32>,
}

impl Words {
    /// The word of a row.
    pub fn at(&self, row: u32) -> &str {
        &self.names[self.codes[row as usize] as usize]
    }
}

impl Numbers {
    /// The number of a row.
    pub fn at(&self, row: u32) -> Option<f64> {
        Some(self.values[row as usize]).filter(|value| !value.is_nan())
    }
}

impl Columns {
    /// A column of text.
    ///
    /// # Panics
    /// When it was not asked for.
    pub fn words(&self, name: &str) -> &Words {
        of(&self.words, name)
    }

    /// A column of numbers.
    ///
    /// # Panics
    /// When it was not asked for.
    pub fn numbers(&self, name: &str) -> &Numbers {
        of(&self.numbers, name)
    }

    /// Values of all columns of numbers that are none.
    pub fn not_numbers(&self) -> usize {
        self.numbers.iter().map(|(_, column)| column.not_numbers).sum()
    }

    /// Puts the rows of another part of the same table behind these.
    pub(crate) fn append(&mut self, other: Self) {
        self.rows += other.rows;
        self.cut |= other.cut;
        for ((_, own), (_, of)) in self.words.iter_mut().zip(other.words) {
            let mut known: HashMap<String, u32> = own.names.iter().cloned().zip(0..).collect();
            let place = |name: String| {
                *known.entry(name).or_insert_with_key(|name| {
                    own.names.push(name.clone());
                    own.names.len() as u32 - 1
                })
            };
            let places: Vec<u32> = of.names.into_iter().map(place).collect();
            own.codes.extend(of.codes.into_iter().map(|code| places[code as usize]));
        }
        for ((_, own), (_, of)) in self.numbers.iter_mut().zip(other.numbers) {
            own.values.extend(of.values);
            own.not_numbers += of.not_numbers;
        }
    }

    /// The places of all rows.
    pub fn all(&self) -> Vec<u32> {
        (0..self.rows as u32).collect()
    }

    /// Of these rows, which belong together: those with the same words in these columns. Groups stand in the order of their first rows.
    pub fn groups(&self, rows: &[u32], columns: &[&str]) -> Vec<Group> {
        let mut found: Vec<Group> = Vec::new();
        self.gather(rows, columns, |place, row, codes| {
            if place == found.len() {
                found.push(Group { codes: codes.to_vec(), rows: Vec::new() });
            }
            found[place].rows.push(row);
        });
        found
    }

    /// The points that two columns of numbers make for each combination of words, in the order of their first rows.
    pub fn series(&self, columns: &[&str], x: &str, y: &str) -> Vec<Series> {
        let (x, y) = (self.numbers(x), self.numbers(y));
        let mut found: Vec<Series> = Vec::new();
        self.gather(&self.all(), columns, |place, row, _| {
            if place == found.len() {
                found.push(Series { row, points: Vec::new() });
            }
            found[place].points.extend(x.at(row).zip(y.at(row)));
        });
        for series in found.iter_mut().filter(|series| !series.points.is_sorted_by(|a, b| a.0 <= b.0)) {
            series.points.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        found
    }

    /// Tells of each row the place of its group, with the words' places. Groups are numbered by their first rows.
    fn gather(&self, rows: &[u32], columns: &[&str], mut tell: impl FnMut(usize, u32, &[u32])) {
        let columns: Vec<&[u32]> = columns.iter().map(|name| self.words(name).codes.as_slice()).collect();
        let mut places: HashMap<Vec<u32>, usize> = HashMap::new();
        let mut known: Vec<Vec<u32>> = Vec::new();
        // Which group came after each one the last time: samplers go through their names in one order, so that it mostly comes again.
        let (mut next, mut last): (Vec<usize>, usize) = (Vec::new(), 0);
        for &row in rows {
            let is = |place: usize| known[place].iter().zip(&columns).all(|(code, column)| *code == column[row as usize]);
            let guess = next.get(last).copied().filter(|guess| is(*guess));
            let place = guess.unwrap_or_else(|| {
                let codes: Vec<u32> = columns.iter().map(|column| column[row as usize]).collect();
                *places.entry(codes).or_insert_with_key(|codes| {
                    known.push(codes.clone());
                    next.push(known.len() - 1);
                    known.len() - 1
                })
            });
            next[last] = place;
            last = place;
            tell(place, row, &known[place]);
        }
    }
}

fn of<'a, T>(columns: &'a [(String, T)], name: &str) -> &'a T {
    let found = columns.iter().find(|(known, _)| known == name);
    &found.unwrap_or_else(|| panic!("the column {name} was not asked for")).1
}
