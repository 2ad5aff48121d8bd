//! Words with numbers.

use std::fmt::Display;

/// `1 cell`, `2 cells`, `2 entries`, `2 launches`: a number with its noun, given in the singular.
pub fn count<N: Copy + Display + PartialEq + From<u8>>(n: N, what: &str) -> String {
    match what.strip_suffix('y') {
        _ if n == N::from(1) => format!("1 {what}"),
        Some(stem) => format!("{n} {stem}ies"),
        None if what.ends_with("ch") => format!("{n} {what}es"),
        None => format!("{n} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn one_of_a_thing_is_no_plural() {
        let said = [(0, "cell"), (1, "cell"), (2, "cell"), (1, "entry"), (3, "entry"), (1, "launch"), (7, "launch")];
        let wanted = ["0 cells", "1 cell", "2 cells", "1 entry", "3 entries", "1 launch", "7 launches"];
        assert_eq!(said.map(|(n, what)| count(n, what)), wanted);
        assert_eq!(count(1_u64, "soak"), "1 soak");
    }
}
