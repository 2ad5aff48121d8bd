//! A device's own lock, for benches on several hosts that share a device over a remote server: two at once would measure each other. A shell on
//! the device holds it for as long as the connection lives, so that a crashed host leaves no lock behind.

use std::time::Duration;

use tokio::{io::AsyncReadExt, time::Instant};

use super::{AdbError, protocol, remote::Remote, server::Stream, shell::quote};

/// The lock, held while this lives.
pub struct Held {
    stream: Stream,
}
impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Held")
    }
}

/// What the shell says.
const WORDS: [(&str, Answer); 3] = [("bench-held", Answer::Held), ("bench-busy", Answer::Busy), ("bench-none", Answer::None)];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Held,
    Busy,
    /// The device has no `flock`: the host's lock has to do.
    None,
}

/// Takes the lock; `None` when somebody else has it. A device without `flock` gives a lock that holds nothing.
pub async fn take(remote: &Remote, root: &str) -> Result<Option<Held>, AdbError> {
    let during = "taking the device's lock";
    // Android's shell passes no descriptor above 2 on to a program unless it is told to.
    let script = format!(
        "mkdir -p -- {root} && cd {root} || exit 1\n\
         command -v flock >/dev/null || {{ echo bench-none; exit; }}\n\
         exec 9>>lock && flock -n 9 9>&9 || {{ echo bench-busy; exit; }}\n\
         echo bench-held; exec cat 9>&9 >/dev/null",
        root = quote(root)
    );
    let service = if remote.has("shell_v2").await? { format!("shell,v2,raw:{script}") } else { format!("exec:sh -c {}", quote(&script)) };
    let mut stream = remote.open(during, &service).await?;
    // Packets or not: the words stand in the stream.
    let answer = protocol::limited(remote.serial(), during, remote.patience.answer, async {
        let (mut said, mut block) = (Vec::new(), [0; 256]);
        loop {
            let n = stream.read(&mut block).await.map_err(protocol::lost(remote.serial(), during))?;
            said.extend_from_slice(&block[..n]);
            let text = String::from_utf8_lossy(&said);
            if let Some((_, answer)) = WORDS.iter().find(|(word, _)| text.contains(word)) {
                return Ok(*answer);
            }
            if n == 0 || said.len() > 4096 {
                let said = text.chars().filter(|c| !c.is_control()).take(200).collect();
                return Err(AdbError::Refused { during: during.to_owned(), said });
            }
        }
    })
    .await?;
    Ok((answer != Answer::Busy).then_some(Held { stream }))
}

/// Takes the lock, waiting for as long as somebody else has it. `busy` is called once if that is so.
pub async fn wait(remote: &Remote, root: &str, busy: impl FnOnce() + Send) -> Result<Held, AdbError> {
    let mut busy = Some(busy);
    loop {
        if let Some(held) = take(remote, root).await? {
            return Ok(held);
        }
        if let Some(busy) = busy.take() {
            busy();
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
}

impl Held {
    /// Whether the connection that holds the lock still stands.
    pub async fn stands(&mut self) -> bool {
        // Nothing is ever said on it: an end or an error is the only thing that can come.
        let mut byte = [0];
        let read = self.stream.read(&mut byte);
        tokio::time::timeout_at(Instant::now() + Duration::from_millis(1), read).await.is_err()
    }
}
