//! The QAIRT version that a library or a context binary was built with, as its own text tells it: `v2.37.0.250724175447_124859`
//! (formats/qnn.md; the date and time of the build follow the three numbers).

use std::fmt;

/// A version of the QAIRT SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Build {
    /// First number.
    pub major: u32,
    /// Second number: what decides whether binaries fit.
    pub minor: u32,
    /// Third number.
    pub patch: u32,
}

impl fmt::Display for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// The longest build id that is looked at.
pub const LONGEST: usize = 48;

impl Build {
    /// The first build id in some bytes.
    pub fn find(bytes: &[u8]) -> Option<Self> {
        let at = |i: usize| bytes[i] == b'v' && !i.checked_sub(1).is_some_and(|j| bytes[j].is_ascii_alphanumeric());
        (0..bytes.len()).filter(|i| at(*i)).find_map(|i| Self::parse(&bytes[i + 1..bytes.len().min(i + LONGEST)]))
    }

    /// `2.37.0.250724...`: a date of six digits at least has to follow, or any version of anything would do.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut parts = bytes.split(|b| *b == b'.');
        let mut number = || -> Option<u32> {
            let part = parts.next().filter(|p| (1..=3).contains(&p.len()) && p.iter().all(u8::is_ascii_digit))?;
            std::str::from_utf8(part).ok()?.parse().ok()
        };
        let build = Self { major: number()?, minor: number()?, patch: number()? };
        let date = parts.next()?.iter().take_while(|b| b.is_ascii_digit()).count();
        (date >= 6).then_some(build)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_id_is_found_in_the_text_around_it() {
        let found = |text: &[u8]| Build::find(text).map(|b| b.to_string());
        assert_eq!(found(b"\0v2.37.0.250724175447_124859\0").as_deref(), Some("2.37.0"));
        assert_eq!(found(b"AISW_VERSION v1.2 then v2.28.2.241116104011_103376-auto").as_deref(), Some("2.28.2"));
        for other in
            [&b""[..], b"v", b"v2.37", b"v2.37.0.1", b"v2.37.0.", b"rev2.37.0.250724175447", b"v2.9999999999.0.250724", b"v2..0.250724"]
        {
            assert_eq!(found(other), None, "{other:?}");
        }
        assert!(Build::find(b"v2.9.1.231231") < Build::find(b"v2.10.0.240101"), "numbers, not texts");
    }
}
