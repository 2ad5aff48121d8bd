//! What a device says about its store, and whether there is room for what it does not have. Pure: text in, decisions out.

use std::collections::HashMap;

use super::AdbError;

/// Left free on the device: results and the system need some too.
const RESERVE: u64 = 64 << 20;

/// What a device says about some names: size and time of change, now and when the digest was right, and what partial files hold.
#[derive(Debug, Default)]
pub(super) struct Answer {
    is: HashMap<String, (u64, i64)>,
    ok: HashMap<String, (u64, i64)>,
    /// By name without the ending.
    pub parts: HashMap<String, u64>,
    /// Bytes that are free.
    pub free: Option<u64>,
}
impl Answer {
    pub fn there(&self, name: &str) -> bool {
        self.is.contains_key(name)
    }

    pub fn vouched(&self, name: &str, size: u64) -> bool {
        self.is.get(name).is_some_and(|is| is.0 == size && self.ok.get(name) == Some(is))
    }
}

/// Lines that can't be read are passed over: what nobody vouches for is sent.
pub(super) fn read_answer(said: &str) -> Answer {
    let mut answer = Answer::default();
    for line in said.lines() {
        let words: Vec<_> = line.split(' ').collect();
        let [kind, name, first, second] = words[..] else { continue };
        let Ok(first) = first.parse::<u64>() else { continue };
        match (kind, second.parse::<i64>()) {
            ("is", Ok(mtime)) => drop(answer.is.insert(name.to_owned(), (first, mtime))),
            ("ok", Ok(mtime)) => drop(answer.ok.insert(name.to_owned(), (first, mtime))),
            ("part", _) => drop(answer.parts.insert(name.trim_end_matches(".part").to_owned(), first)),
            ("free", Ok(block)) => answer.free = Some(first.saturating_mul(block.unsigned_abs())),
            _ => {}
        }
    }
    answer
}

/// Room on the device's storage.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// Bytes that are free, if the device says it.
    pub free: Option<u64>,
    wanted: u64,
    /// The rest of a big file is there twice while it is put behind its beginning.
    twice: u64,
}
impl Room {
    pub fn wants(&mut self, size: u64, there: u64) {
        let rest = size.saturating_sub(there);
        self.wanted = self.wanted.saturating_add(rest);
        if there > 0 {
            self.twice = self.twice.max(rest);
        }
    }

    pub fn check(&self, folder: &str) -> Result<(), AdbError> {
        let needed = self.wanted.saturating_add(self.twice);
        match self.free {
            Some(free) if needed > 0 && free < needed.saturating_add(RESERVE) => {
                let mb = |b: u64| b / 1_000_000;
                let said = format!(
                    "No space left on device: {} MB are free, {} MB are needed and {} MB stay free; `bench devices clean` gives room back",
                    mb(free),
                    mb(needed),
                    mb(RESERVE)
                );
                Err(AdbError::Remote { path: folder.to_owned(), said })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_did_not_change_since_it_was_right_is_vouched_for() {
        let said = "is a 10 1700000000\nis b 10 1700000000\nis c 11 1700000000\nis d 10 5\nok a 10 1700000000\nok b 10 1700000001\n\
                    ok c 11 1700000000\nok e 10 5\npart f.part 7 x\nfree x 1000 4096\n";
        let answer = read_answer(said);
        let vouched: Vec<_> = ["a", "b", "c", "d", "e"].into_iter().filter(|n| answer.vouched(n, 10)).collect();
        assert_eq!(vouched, ["a"]);
        assert!(answer.there("d") && !answer.there("e"));
        assert_eq!((answer.parts["f"], answer.free), (7, Some(4_096_000)));
        let garbage = read_answer("is\nis a\nok a 1 2 3\nis a -1 2\nis a 1 x\n\0\u{fffd}\nfree x 18446744073709551615 4096\n");
        assert!(!garbage.there("a") && garbage.free == Some(u64::MAX));
    }

    #[test]
    fn room_is_asked_for_what_is_sent_and_for_a_rest_twice() {
        let room = |free, files: &[(u64, u64)]| {
            let mut room = Room { free: Some(free), ..Room::default() };
            for (size, there) in files {
                room.wants(*size, *there);
            }
            room.check("/store")
        };
        let gb = 1_000_000_000;
        assert!(room(0, &[]).is_ok(), "nothing to send needs no room");
        assert!(room(3 * gb + RESERVE, &[(gb, 0), (2 * gb, 0)]).is_ok());
        let error = room(3 * gb + RESERVE - 1, &[(gb, 0), (2 * gb, 0)]).unwrap_err();
        assert!(error.disk_full() && error.to_string().contains("3000 MB are needed") && error.to_string().contains("clean"), "{error}");
        // 4 GB of 5 are there: one is sent, and stands there twice for a moment.
        assert!(room(2 * gb + RESERVE, &[(5 * gb, 4 * gb)]).is_ok() && room(2 * gb + RESERVE - 1, &[(5 * gb, 4 * gb)]).is_err());
        assert!(Room::default().check("/store").is_ok(), "a device that does not say");
    }
}
