//! Parsers for the texts of `/proc` (proc(5)). They take bytes, since names of processes and paths are whatever a program made them,
//! and answer `None` for what they can't read: they never panic.

/// What the agent uses of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Field 1.
    pub pid: i32,
    /// Field 3, e.g. `b'R'` or `b'Z'`.
    pub state: u8,
    /// Field 4.
    pub ppid: i32,
    /// Field 6, the session.
    pub session: i32,
    /// Field 14 plus field 15, user and kernel time in clock ticks.
    pub cpu_ticks: u64,
    /// Field 19, -20 to 19.
    pub nice: i32,
    /// Field 20.
    pub threads: u64,
    /// Field 22, clock ticks after boot.
    pub start_time: u64,
    /// Field 24, pages.
    pub rss_pages: u64,
}

/// Parses `/proc/PID/stat`. The name (field 2) may hold spaces and parentheses: everything after the LAST `)` is numbers.
pub fn parse_stat(text: &[u8]) -> Option<Stat> {
    let open = text.iter().position(|&b| b == b'(')?;
    let close = text.iter().rposition(|&b| b == b')')?;
    let pid = std::str::from_utf8(text.get(..open)?).ok()?.trim().parse().ok()?;
    let rest = std::str::from_utf8(text.get(close + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let ppid = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    let mut number = fields.skip(7); // now at field 14
    let user: u64 = number.next()?.parse().ok()?;
    let system: u64 = number.next()?.parse().ok()?;
    let mut number = number.skip(3); // now at field 19
    let nice = number.next()?.parse().ok()?;
    let threads = number.next()?.parse().ok()?;
    let mut number = number.skip(1); // now at field 22
    let start_time = number.next()?.parse().ok()?;
    let rss: i64 = number.nth(1)?.parse().ok()?;
    Some(Stat {
        pid,
        state,
        ppid,
        session,
        cpu_ticks: user.saturating_add(system),
        nice,
        threads,
        start_time,
        rss_pages: u64::try_from(rss).unwrap_or(0),
    })
}

/// The value after `key:` in the line-wise files (`status`, `meminfo`, `smaps_rollup`), without surrounding blanks.
pub fn field<'a>(text: &'a [u8], key: &str) -> Option<&'a str> {
    text.split(|&b| b == b'\n')
        .find_map(|line| line.strip_prefix(key.as_bytes())?.strip_prefix(b":"))
        .and_then(|value| std::str::from_utf8(value).ok())
        .map(str::trim)
}

/// A field in KiB, e.g. `VmHWM:  1234 kB`; `None` for any other unit.
pub fn field_kb(text: &[u8], key: &str) -> Option<u64> {
    field(text, key)?.strip_suffix("kB")?.trim_end().parse().ok()
}

/// What the agent uses of `/proc/PID/status` (Documentation/filesystems/proc.rst, table 1-2). Sizes in KiB.
///
/// `VmRSS` is the sum of three: `RssAnon` (heap, stacks, private pages written to), `RssFile` (resident pages of mapped files: clean ones can be
/// dropped at any time), `RssShmem` (System V and POSIX shared memory, memfd, tmpfs, shared anonymous maps). The kernel keeps the counters by CPU or
/// thread and reads them without adding up what waits there: they may be off by some dozen pages for each CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Ended, and waits for its parent.
    pub zombie: bool,
    /// `Threads`.
    pub threads: u64,
    /// `VmRSS`; 0 for a process without memory of its own (a zombie).
    pub rss_kb: u64,
    /// `RssAnon`; `None` on a kernel before 4.5, which does not split.
    pub anon_kb: Option<u64>,
    /// `RssFile`.
    pub file_kb: u64,
    /// `RssShmem`.
    pub shmem_kb: u64,
    /// `VmSwap`: anonymous pages in swap (of a phone: compressed in memory); what was shared memory is not in it.
    pub swap_kb: u64,
    /// `VmHWM`.
    pub hwm_kb: u64,
}

/// Parses `/proc/PID/status` in one pass: it is read at the sampling rate. `None` for what is no such file.
pub fn parse_status(text: &[u8]) -> Option<Status> {
    let mut status = Status::default();
    let mut known = false;
    for line in text.split(|&b| b == b'\n') {
        let Some(colon) = line.iter().position(|&b| b == b':') else { continue };
        let (key, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        let kb = || std::str::from_utf8(value.strip_suffix(b"kB")?.trim_ascii()).ok()?.parse().ok();
        match key {
            b"State" => {
                known = true;
                status.zombie = matches!(value.first(), Some(b'Z' | b'X'));
            }
            b"Threads" => status.threads = std::str::from_utf8(value).ok()?.parse().ok()?,
            b"VmRSS" => status.rss_kb = kb()?,
            b"RssAnon" => status.anon_kb = Some(kb()?),
            b"RssFile" => status.file_kb = kb()?,
            b"RssShmem" => status.shmem_kb = kb()?,
            b"VmSwap" => status.swap_kb = kb()?,
            b"VmHWM" => status.hwm_kb = kb()?,
            _ => {}
        }
    }
    known.then_some(status)
}

/// The process ids of a `children` file.
pub fn parse_children(text: &[u8]) -> impl Iterator<Item = i32> + '_ {
    text.split(u8::is_ascii_whitespace).filter_map(|word| std::str::from_utf8(word).ok()?.parse().ok())
}

/// One line of `/proc/PID/maps` that has a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping<'a> {
    /// Mapped executable.
    pub executable: bool,
    /// The path as the kernel writes it, without ` (deleted)`. A newline in a name is `\012`.
    pub path: &'a [u8],
}

/// Parses a line of `/proc/PID/maps`; `None` for anonymous memory and things like `[heap]`.
pub fn parse_mapping(line: &[u8]) -> Option<Mapping<'_>> {
    // address perms offset dev inode path: the path is the rest of the line, blanks included.
    let mut rest = line;
    let mut permissions: &[u8] = b"";
    for index in 0..5 {
        let end = rest.iter().position(|&b| b == b' ')?;
        if index == 1 {
            permissions = rest.get(..end)?;
        }
        rest = rest.get(end..)?.trim_ascii_start();
    }
    if rest.first() != Some(&b'/') {
        return None;
    }
    let path = rest.strip_suffix(b" (deleted)").unwrap_or(rest);
    Some(Mapping { executable: permissions.get(2) == Some(&b'x'), path })
}

/// Whether a path names a shared library: `libx.so`, `libx.so.6`, `_x.cpython-311.so`.
pub fn is_library(path: &[u8]) -> bool {
    let name = path.rsplit(|&b| b == b'/').next().unwrap_or(path);
    name.ends_with(b".so") || name.windows(4).any(|w| w == b".so.")
}

/// Whether an open file is a device node worth reporting: something under `/dev` that could do work or hold memory.
pub fn is_device_node(path: &[u8]) -> bool {
    const DULL: [&[u8]; 9] = [b"null", b"zero", b"full", b"random", b"urandom", b"tty", b"ptmx", b"console", b"fd"];
    let Some(name) = path.strip_prefix(b"/dev/") else { return false };
    !name.is_empty()
        && !DULL.contains(&name)
        && ![&b"pts/"[..], b"shm/", b"mqueue/", b"tty", b"fd/"].iter().any(|dull| name.starts_with(dull))
}

/// Busy and total ticks of the first line of `/proc/stat`.
pub fn parse_cpu_total(text: &[u8]) -> Option<(u64, u64)> {
    parse_cpu_ticks(text.split(|&b| b == b'\n').next()?.strip_prefix(b"cpu ")?)
}

/// Number, busy and total ticks of every CPU that `/proc/stat` tells of (those that are online).
pub fn parse_cpus(text: &[u8]) -> impl Iterator<Item = (u32, (u64, u64))> + '_ {
    text.split(|&b| b == b'\n').filter_map(|line| {
        let rest = line.strip_prefix(b"cpu")?;
        let space = rest.iter().position(|&b| b == b' ')?;
        let number = std::str::from_utf8(&rest[..space]).ok()?.parse().ok()?;
        Some((number, parse_cpu_ticks(&rest[space..])?))
    })
}

fn parse_cpu_ticks(fields: &[u8]) -> Option<(u64, u64)> {
    let ticks: Vec<u64> = std::str::from_utf8(fields).ok()?.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guest times that follow are part of user already.
    let total: u64 = ticks.iter().take(8).fold(0, |sum, &t| sum.saturating_add(t));
    let idle = ticks.get(3)?.saturating_add(ticks.get(4).copied().unwrap_or(0));
    Some((total.saturating_sub(idle), total))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &[u8] = b"4711 (a) R 1 (b c)) S 17 4711 4711 0 -1 4194560 3000 0 12 0 150 25 0 0 20 -5 7 0 123456 1073741824 51200 18446744073709551615 1 1 0\n";

    #[test]
    fn stat_of_a_process_with_a_nasty_name() {
        let stat = parse_stat(STAT).unwrap();
        assert_eq!(
            stat,
            Stat {
                pid: 4711,
                state: b'S',
                ppid: 17,
                session: 4711,
                cpu_ticks: 175,
                nice: -5,
                threads: 7,
                start_time: 123_456,
                rss_pages: 51_200
            }
        );
        let mut name = STAT.to_vec();
        name.splice(6..7, [0xff, b'\n', b')']);
        assert_eq!(parse_stat(&name), Some(stat));
    }

    #[test]
    fn no_cut_of_a_stat_line_panics() {
        for end in 0..STAT.len() {
            let _ = parse_stat(&STAT[..end]);
        }
        assert_eq!(parse_stat(b""), None);
        assert_eq!(parse_stat(b")("), None);
        assert_eq!(parse_stat(b"1 (x) Z 0"), None);
    }

    #[test]
    fn fields_of_status_and_rollup() {
        let text = b"Name:\tx y\nUid:\t2000\t2000\t2000\t2000\nVmHWM:\t  123456 kB\nRssAnon:\t 12 pages\n";
        assert_eq!(field_kb(text, "VmHWM"), Some(123_456));
        assert_eq!(field_kb(text, "VmH"), None);
        assert_eq!(field_kb(text, "RssAnon"), None);
        assert_eq!(field(text, "Name"), Some("x y"));
        let rollup = b"5581-7fff ---p 00000000 00:00 0   [rollup]\nRss:   900 kB\nPss:   777 kB\nPss_Dirty:  5 kB\n";
        assert_eq!(field_kb(rollup, "Pss"), Some(777));
    }

    #[test]
    fn status_in_one_pass() {
        // As proc.rst shows it, with other numbers; the name is made to mislead.
        let text = b"Name:\tVmRSS:\nState:\tS (sleeping)\nThreads:\t7\nVmHWM:\t  300 kB\nVmRSS:\t  210 kB\nRssAnon:\t  100 kB\nRssFile:\t   80 kB\nRssShmem:\t   30 kB\nVmSwap:\t    9 kB\n";
        let wanted =
            Status { zombie: false, threads: 7, rss_kb: 210, anon_kb: Some(100), file_kb: 80, shmem_kb: 30, swap_kb: 9, hwm_kb: 300 };
        assert_eq!(parse_status(text), Some(wanted));
        let old = parse_status(b"Name:\tx\nState:\tR (running)\nThreads:\t1\nVmRSS:\t  210 kB\n").unwrap();
        assert_eq!((old.rss_kb, old.anon_kb), (210, None));
        assert!(parse_status(b"Name:\tx\nState:\tZ (zombie)\nThreads:\t1\n").unwrap().zombie);
        assert_eq!(parse_status(b""), None);
        for end in 0..text.len() {
            let _ = parse_status(&text[..end]);
        }
    }

    #[test]
    fn children_file() {
        assert_eq!(parse_children(b"12 345 6 ").collect::<Vec<_>>(), [12, 345, 6]);
        assert_eq!(parse_children(b"").count(), 0);
    }

    #[test]
    fn maps_lines() {
        let line = b"7f1c000-7f1d000 r-xp 00001000 fe:00 1234                       /data/my libs/libQnnHtp.so (deleted)";
        assert_eq!(parse_mapping(line), Some(Mapping { executable: true, path: b"/data/my libs/libQnnHtp.so" }));
        assert_eq!(parse_mapping(b"7ffc000-7ffd000 rw-p 00000000 00:00 0                          [stack]"), None);
        assert_eq!(parse_mapping(b"7ffc000-7ffd000 rw-p 00000000 00:00 0 "), None);
        assert_eq!(parse_mapping(b"7ffc000"), None);
        assert!(!parse_mapping(b"1-2 rw-s 0 0:1 7 /dev/kgsl-3d0").unwrap().executable);
    }

    #[test]
    fn libraries_and_device_nodes() {
        for yes in ["/a/libc.so.6", "/a/libQnnHtpV75Stub.so", "x.cpython-311-x86_64-linux-gnu.so"] {
            assert!(is_library(yes.as_bytes()), "{yes}");
        }
        for no in ["/a/libx.so_backup", "/a.so.d/model.bin", "/a/sofa"] {
            assert!(!is_library(no.as_bytes()), "{no}");
        }
        for yes in ["/dev/adsprpc-smd", "/dev/fastrpc-cdsp-secure", "/dev/dma_heap/system", "/dev/kgsl-3d0", "/dev/fdx"] {
            assert!(is_device_node(yes.as_bytes()), "{yes}");
        }
        for no in ["/dev/null", "/dev/pts/3", "/dev/urandom", "/dev/tty1", "/dev/shm/sem.x", "/tmp/dev/x", "/dev/"] {
            assert!(!is_device_node(no.as_bytes()), "{no}");
        }
    }

    #[test]
    fn busy_share_of_all_cpus() {
        let text = b"cpu  100 5 20 800 30 1 2 3 50 0\ncpu0 1 2 3\n";
        assert_eq!(parse_cpu_total(text), Some((131, 961)));
        assert_eq!(parse_cpu_total(b"intr 5"), None);
        let text = b"cpu  9 9 9 9\ncpu0 100 5 20 800 30 1 2 3 50 0\ncpu12 1 1 1 7\ncpux 1 2 3 4\ncpu3 1 2 3\nintr 5 cpu4 1 1 1 1\n";
        assert_eq!(parse_cpus(text).collect::<Vec<_>>(), [(0, (131, 961)), (12, (3, 10))]);
    }
}
