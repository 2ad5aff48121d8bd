//! Which launches are drawn.

use super::launch::Key;

/// What the user asks for.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Only cells whose id has this in it.
    pub cell: String,
    /// Only launches of this number.
    pub launch: Option<u32>,
    /// All of them, however large the file.
    pub all: bool,
}

/// Bytes of recorded files up to which a whole run is drawn: a row of telemetry becomes two to three times as long, and a viewer in a browser is quick
/// up to a few hundred megabytes.
const WHOLE: u64 = 40 << 20;

/// A launch to choose from.
#[derive(Debug)]
pub struct Candidate {
    /// Which.
    pub key: Key,
    /// It counts.
    pub ok: bool,
    /// Bytes of what would be drawn.
    pub bytes: u64,
}

/// Which of them are drawn, and what is to be said of the others.
pub fn choose(all: &[Candidate], wanted: &Wanted) -> (Vec<bool>, Option<String>) {
    let asked = |c: &Candidate| c.key.0.contains(&wanted.cell) && wanted.launch.is_none_or(|number| c.key.2 == number);
    let asked: Vec<bool> = all.iter().map(asked).collect();
    let bytes: u64 = all.iter().zip(&asked).filter(|(_, asked)| **asked).map(|(c, _)| c.bytes).sum();
    if bytes <= WHOLE || wanted.all || wanted.launch.is_some() {
        return (asked, None);
    }
    let measured = |c: &Candidate| c.key.1 == "measure";
    // Of each cell the first that counts, else the first.
    let first = |c: &Candidate| {
        let own = all.iter().filter(|other| measured(other) && other.key.0 == c.key.0);
        own.min_by_key(|other| (!other.ok, other.key.2)).is_some_and(|first| first.key == c.key)
    };
    let kept: Vec<bool> = all.iter().zip(&asked).map(|(c, asked)| *asked && (!measured(c) || first(c))).collect();
    let count = |drawn: &[bool]| drawn.iter().filter(|drawn| **drawn).count();
    let left = count(&asked) - count(&kept);
    let said = format!(
        "{left} of {} launches are left out, since the run is large ({} MB recorded): of each cell the first measured launch is drawn, and profile and soak; \
         --all draws every one, --cell and --launch choose",
        count(&asked),
        bytes / 1_000_000
    );
    (kept, (left > 0).then_some(said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_large_run_one_launch_a_cell() {
        let of = |cell: &str, pass: &str, n, ok, mb: u64| Candidate { key: (cell.into(), pass.into(), n), ok, bytes: mb << 20 };
        let all = [
            of("a", "measure", 0, false, 9),
            of("a", "measure", 1, true, 9),
            of("a", "measure", 2, true, 9),
            of("b", "measure", 0, false, 9),
            of("a", "profile", 0, true, 1),
            of("a", "soak", 0, true, 9),
        ];
        let (drawn, said) = choose(&all, &Wanted::default());
        assert_eq!(drawn, [false, true, false, true, true, true]);
        assert!(said.unwrap().starts_with("2 of 6 launches are left out"));
        let (drawn, said) = choose(&all, &Wanted { all: true, ..Wanted::default() });
        assert!(drawn.iter().all(|drawn| *drawn) && said.is_none());
        let (drawn, _) = choose(&all, &Wanted { launch: Some(2), ..Wanted::default() });
        assert_eq!(drawn, [false, false, true, false, false, false]);
        let (drawn, said) = choose(&all, &Wanted { cell: "b".to_owned(), ..Wanted::default() });
        assert_eq!((drawn, said), (vec![false, false, false, true, false, false], None));
    }
}
