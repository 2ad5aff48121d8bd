//! Which devices a scenario means: those that the adb servers know, by serial, by chip, or all of them.

use std::fmt::Write as _;

use thiserror::Error;

use super::{AdbError, Address, DeviceState, Listed, Server, connect};

/// A device and the server that has it.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The server.
    pub server: Server,
    /// What the server says of the device.
    pub listed: Listed,
}

/// Everything that several servers know, and what went wrong with a server.
#[derive(Debug, Default)]
pub struct Survey {
    /// Devices in the servers' order.
    pub devices: Vec<Seen>,
    /// Servers that do not answer.
    pub errors: Vec<(Address, AdbError)>,
}

/// Why no device can be used.
#[derive(Debug, Error)]
pub enum SelectError {
    /// Nothing is attached, or nothing usable.
    #[error("no usable device{0}")]
    Nothing(String),
    /// A serial that no server knows.
    #[error("no device {serial:?}{seen}")]
    Unknown {
        /// The serial asked for.
        serial: String,
        /// What is there instead.
        seen: String,
    },
    /// A device that is there and can't be used.
    #[error("{serial} is {state}: {remedy}")]
    Unusable {
        /// Its serial.
        serial: String,
        /// Its state.
        state: DeviceState,
        /// What to do.
        remedy: &'static str,
    },
    /// Several match and one was meant.
    #[error("{count} devices match: name one with `serial` in [device], or say `all = true`{seen}")]
    Several {
        /// How many.
        count: usize,
        /// Which.
        seen: String,
    },
    /// A server or a device does not answer.
    #[error(transparent)]
    Adb(#[from] AdbError),
}

/// Asks every server. A server that does not answer does not hide the others.
pub async fn survey(servers: &[Address]) -> Survey {
    let mut survey = Survey::default();
    for address in servers {
        let asked = async {
            let server = Server::reach(address.clone()).await?;
            let devices = server.devices().await?;
            Ok((server, devices))
        };
        match asked.await {
            Ok((server, devices)) => {
                survey.devices.extend(devices.into_iter().map(|listed| Seen { server: server.clone(), listed }));
            }
            Err(e) => survey.errors.push((address.clone(), e)),
        }
    }
    survey
}

impl Survey {
    /// What is there, for an error message.
    fn words(&self) -> String {
        let mut text = String::new();
        for seen in &self.devices {
            let Listed { serial, state, .. } = &seen.listed;
            let remedy = state.remedy().map(|r| format!(": {r}")).unwrap_or_default();
            let _ = write!(text, "\n  {serial}  {state}{remedy}");
        }
        for (address, error) in &self.errors {
            let _ = write!(text, "\n  {address}: {error}");
        }
        if text.is_empty() {
            text.push_str(
                ": switch on USB debugging and plug a device in, or `adb connect HOST:PORT`; `bench devices` lists what is there",
            );
        } else {
            text.insert_str(0, "; there are:");
        }
        text
    }

    /// The devices of these serials, each once; one of the form `HOST:PORT` that no server knows is connected to.
    pub async fn by_serial(&self, serials: &[String]) -> Result<Vec<Seen>, SelectError> {
        let mut chosen: Vec<Seen> = Vec::new();
        for serial in serials {
            if chosen.iter().any(|seen| seen.listed.serial == *serial) {
                continue;
            }
            let found = self.devices.iter().find(|d| d.listed.serial == *serial);
            let seen = match found {
                Some(seen) => seen.clone(),
                None => self.connect(serial).await?,
            };
            if let Some(remedy) = seen.listed.state.remedy() {
                return Err(SelectError::Unusable { serial: serial.clone(), state: seen.listed.state, remedy });
            }
            chosen.push(seen);
        }
        Ok(chosen)
    }

    async fn connect(&self, serial: &str) -> Result<Seen, SelectError> {
        let unknown = || SelectError::Unknown { serial: serial.to_owned(), seen: self.words() };
        let network = serial.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
        let server = self.devices.first().map(|d| d.server.clone());
        let (true, Some(server)) = (network, server.or(self.quiet_server().await)) else { return Err(unknown()) };
        connect::connect(&server, serial).await?;
        let listed = server.devices().await?.into_iter().find(|l| l.serial == serial).ok_or_else(unknown)?;
        Ok(Seen { server, listed })
    }

    /// The server of this machine, when no server has a device. One that does not say what it has would not connect to anything either.
    async fn quiet_server(&self) -> Option<Server> {
        let address = Address::find(None, None, |name| std::env::var(name).ok()).ok()?;
        if self.errors.iter().any(|(silent, _)| *silent == address) {
            return None;
        }
        Server::reach(address).await.ok()
    }

    /// Every device that can be used.
    pub fn usable(&self) -> Result<Vec<Seen>, SelectError> {
        let usable: Vec<Seen> = self.devices.iter().filter(|d| d.listed.state == DeviceState::Device).cloned().collect();
        if usable.is_empty() { Err(SelectError::Nothing(self.words())) } else { Ok(usable) }
    }
}

/// One device, unless all are wanted.
pub fn one<T>(mut matching: Vec<(String, T)>, all: bool) -> Result<Vec<T>, SelectError> {
    if matching.len() > 1 && !all {
        let seen = matching.iter().fold(String::new(), |text, (serial, _)| format!("{text}\n  {serial}"));
        return Err(SelectError::Several { count: matching.len(), seen });
    }
    Ok(matching.drain(..).map(|(_, device)| device).collect())
}
