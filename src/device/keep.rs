//! What has to be put back on a device, kept on the device: scripts below the work root, written before anything is changed. Whoever comes to the
//! device next runs them, and so does a guard on the device itself when nobody has come for a time. Pure: scripts as text.
//!
//! `pins/restore.sh` puts everything back and checks it, `pins/what.txt` says so in words, `pins/alive` is touched by the host, `pins/guard.pid`
//! is the guard's. The folder goes when everything is back.

use std::{fmt::Write as _, time::Duration};

use super::{
    adb::shell::{line, quote},
    pins::PinKind,
};

/// Where a device keeps what has to be put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep {
    /// The work root on the device.
    pub root: String,
    /// So long after the host's last sign of life, and without a living agent, the guard puts everything back.
    pub limit: Duration,
}

/// One state of the device, as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Was {
    /// Its entry in the list.
    pub kind: &'static PinKind,
    /// Which of several, or empty.
    pub instance: String,
    /// What the device said; `None` where it does not tell.
    pub value: Option<String>,
}
impl Was {
    /// Nothing was set: the device's default counts.
    fn unset(&self) -> bool {
        self.value.as_deref().is_none_or(|v| v.is_empty() || v == "null")
    }

    /// The command that puts it back.
    fn restore(&self) -> String {
        let value = self.value.as_deref().unwrap_or_default();
        match &self.kind.reset {
            Some(reset) if self.unset() => command(reset, "", &self.instance),
            _ => command(&self.kind.set, value, &self.instance),
        }
    }

    /// The test that it is back, where the device tells; a reset may leave a default of the device's instead of nothing.
    fn check(&self) -> Option<String> {
        let (read, value) = (self.kind.read.as_ref()?, self.value.as_ref().filter(|_| !self.unset())?);
        Some(format!("[ \"$({} 2>/dev/null)\" = {} ]", command(read, "", &self.instance), quote(value)))
    }

    /// In words.
    pub fn words(&self) -> String {
        let place = if self.instance.is_empty() { String::new() } else { format!(" of {}", self.instance) };
        let value = if self.unset() { "the default" } else { self.value.as_deref().unwrap_or_default() };
        format!("{}{place} to {value}", self.kind.name)
    }
}

/// A line of the list with its values, as a command of its own.
pub fn command(script: &str, value: &str, instance: &str) -> String {
    line(["sh", "-c", script, "sh", value, instance])
}

/// `restore.sh`: the last change is undone first.
fn restore(was: &[Was]) -> String {
    let mut script = String::from("e=0\n");
    for state in was.iter().rev() {
        let words = quote(&format!("could not put back {}", state.words()));
        let set = format!("{} </dev/null >/dev/null 2>&1", state.restore());
        // What could never be changed is as it was, although it can't be set.
        let done = state.check().map_or_else(|| set.clone(), |check| format!("{check} || {{ {set}; {check}; }}"));
        let _ = writeln!(script, "{done} || {{ echo {words}; e=1; }}");
    }
    script + "exit $e\n"
}

impl Keep {
    fn folder(&self) -> String {
        quote(&format!("{}/pins", self.root))
    }

    /// Writes down how things are, before they are changed; refuses where an earlier bench's changes are still to be put back, since what is there
    /// now is then not the device's own. A shell runs the note: nobody else may write it, and the umask of a daemon of Android's is 0. `sync`, because a phone that crashes must not forget it.
    pub fn write(&self, was: &[Was]) -> String {
        let what: Vec<String> = was.iter().map(Was::words).collect();
        format!(
            "mkdir -p {root} && chmod go-w {root} && umask 077 && mkdir -p {folder} && cd {folder} || exit 1\n\
             [ ! -e restore.sh ] || {{ echo 'what an earlier bench has changed is not put back yet' >&2; exit 1; }}\nprintf '%s' {script} > restore.new && printf '%s' {what} > what.txt && : > alive \
             && sync && mv restore.new restore.sh",
            root = quote(&self.root),
            folder = self.folder(),
            script = quote(&restore(was)),
            what = quote(&what.join(", "))
        )
    }

    /// The host's sign of life.
    pub fn beat(&self) -> String {
        format!("[ ! -e {0}/restore.sh ] || touch {0}/alive", self.folder())
    }

    /// Puts everything back if there is something to put back, and says what. An exit status other than 0: something could not be put back, and
    /// stays to be.
    pub fn put_back(&self) -> String {
        format!(
            "{ALIVE}\ncd {folder} 2>/dev/null || exit 0\n[ -e restore.sh ] || {{ cd /; rm -rf {folder}; exit 0; }}\n\
             [ \"$(tail -n 1 restore.sh)\" = 'exit $e' ] || {{ echo 'the note of it, '{folder}'/restore.sh, is damaged: put it back by hand and remove the folder of the note:' \
             $(cat what.txt 2>/dev/null) >&2; exit 1; }}\n\
             [ ! -e guard.pid ] || {{ alive guard.pid && [ \"$p\" != \"$GUARD\" ] && kill $p; }}\n\
             sh restore.sh > said.txt; s=$?\ncat what.txt\n\
             if [ $s = 0 ]; then cd /; rm -rf {folder}; else cat said.txt >&2; fi\nexit $s",
            folder = self.folder()
        )
    }

    /// Starts the guard. It ends by itself when everything is back, and after a week whatever happens.
    pub fn guard(&self) -> String {
        // A phone's `stat` and `sleep` cost some ms: ten looks in the time are enough.
        let step = (self.limit.as_secs() / 10).clamp(1, 60);
        let looks = (self.limit.as_secs() / step).max(1);
        let week = 7 * 24 * 3600 / step;
        let script = format!(
            "{ALIVE}\ncd {folder} || exit 1\nGUARD=$$\nt=$(cat /proc/$$/stat); t=${{t##*) }}; set -- $t\n\
             echo \"$GUARD ${{20}}\" > guard.pid\nn=0 quiet=0 last=\n\
             while [ $n -lt {week} ] && [ $quiet -lt {looks} ]; do\n\
             sleep {step}; n=$((n+1)); quiet=$((quiet+1))\n[ -e restore.sh ] || exit 0\n\
             now=$(stat -c '%Y %i' alive 2>/dev/null); [ \"$now\" = \"$last\" ] || quiet=0; last=$now\n\
             for f in ../work/*.out*/agent.pid; do [ -e \"$f\" ] && alive \"$f\" && quiet=0; done\ndone\n{back}\n",
            folder = self.folder(),
            back = self.put_back()
        );
        // Left behind as the agent is: see `adb/run.rs`.
        format!(
            "umask 077; cd {} || exit 1\nprintf '%s' {} > guard.sh\n$(command -v setsid) sh -c 'sh guard.sh </dev/null >/dev/null 2>&1 &'\ntrue",
            self.folder(),
            quote(&script)
        )
    }
}

/// `alive FILE` sets `p` and succeeds if the process of a pid file (`PID START`) lives.
pub const ALIVE: &str = r#"
alive() {
    p= s=; read -r p s < "$1" || [ -n "$s" ] || return 1
    case "$p$s" in *[!0-9]*|'') return 1;; esac
    t=$(cat "/proc/$p/stat" 2>/dev/null) || return 1
    t=${t##*) }; set -- $t
    [ "${20}" = "$s" ] && [ "$1" != Z ]
}"#;

#[cfg(all(test, unix))]
mod tests;
