//! `--on-battery` with a test phone that is reached by a cable: its user is asked to unplug it, it is gone, it comes back. The user is this test, and
//! the cable a port that the adb server takes for a device of its own (`host:emulator:PORT`, as emulators ask for it): the serial is no network address,
//! so that `bench` takes the phone for a cabled one, and without the port it is gone at once.

#[path = "device/harness.rs"]
mod harness;
#[path = "device/lab.rs"]
mod lab;
mod support;

use std::{
    fs,
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    path::PathBuf,
    process::Command,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use lab::{Lab, spawn, wait_long};
use serde_json::Value;
use support::{Scenario, finish, journal, run, wait_until};

/// The connections that go through it; `None` while it is pulled.
type Wires = Arc<Mutex<Option<Vec<TcpStream>>>>;

struct Cable {
    wires: Wires,
    serial: String,
}

impl Cable {
    /// From the lab's server to its phone.
    fn plugged(lab: &Lab) -> Self {
        // Servers take odd ports, and the number below one for the serial.
        let odd = |l: &TcpListener| l.local_addr().unwrap().port() % 2 == 1;
        let listener = std::iter::repeat_with(|| TcpListener::bind("127.0.0.1:0").unwrap()).find(odd).unwrap();
        let port = listener.local_addr().unwrap().port();
        let cable = Self { wires: Arc::new(Mutex::new(Some(Vec::new()))), serial: format!("emulator-{}", port - 1) };
        let (wires, phone) = (cable.wires.clone(), lab.phone.address.clone());
        let pass = |mut from: TcpStream, mut to: TcpStream| {
            thread::spawn(move || {
                let mut block = vec![0; 1 << 16];
                while let Ok(n @ 1..) = from.read(&mut block) {
                    if to.write_all(&block[..n]).is_err() {
                        break;
                    }
                }
                let _ = to.shutdown(Shutdown::Both);
            });
        };
        thread::spawn(move || {
            for here in listener.incoming().flatten() {
                let mut wires = wires.lock().unwrap();
                if let (Some(wires), Ok(there)) = (wires.as_mut(), TcpStream::connect(&phone)) {
                    wires.extend([here.try_clone().unwrap(), there.try_clone().unwrap()]);
                    pass(here.try_clone().unwrap(), there.try_clone().unwrap());
                    pass(there, here);
                }
            }
        });
        let mut server = TcpStream::connect(lab.adb.address.to_string().trim_start_matches("tcp:")).unwrap();
        let request = format!("host:emulator:{port}");
        write!(server, "{:04x}{request}", request.len()).unwrap();
        wait_until("the cable", || cable.shell(lab, "echo here") == "here");
        cable
    }

    fn pull(&self) {
        for wire in self.wires.lock().unwrap().take().unwrap() {
            let _ = wire.shutdown(Shutdown::Both);
        }
    }

    fn plug(&self) {
        *self.wires.lock().unwrap() = Some(Vec::new());
    }

    fn shell(&self, lab: &Lab, script: &str) -> String {
        let mut adb = Command::new("adb");
        adb.args(["-s", &self.serial, "shell", script]).env("ADB_SERVER_SOCKET", lab.adb.address.to_string());
        String::from_utf8(adb.output().unwrap().stdout).unwrap().trim().to_owned()
    }
}

/// One launch of three measured queries of 2 s on a device.
fn scenario(lab: &Lab, device: String, power: &str) -> PathBuf {
    let command = ["python3", "./runner.py", "--pace", "2000"].map(str::to_owned).to_vec();
    let path = Scenario { name: "battery", command, device, ..Scenario::default() }.write(lab.dir.path());
    let text = fs::read_to_string(&path).unwrap().replace("queries = 2", "queries = 3");
    fs::write(&path, format!("{text}[power]\nbaseline = \"off\"\n{power}\n")).unwrap();
    path
}

fn asked(lab: &Lab) -> Vec<String> {
    let all = journal(&lab.folder());
    support::events(&all, "ask").map(|e| e["text"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_launch_while_the_cable_is_in_its_users_hand() {
    let Some(mut lab) = Lab::with_paced_runner() else { return };
    lab.phone.tell("battery 80 Charging");
    let cable = Cable::plugged(&lab);
    // Half a minute is added to it for a user who takes his time.
    let path = scenario(&lab, format!("serial = \"{}\"", cable.serial), "away = \"1s\"");
    let running = spawn(lab.run(&path, "20s").arg("--on-battery"));
    let runner = "cat /data/local/tmp/bench/work/*/events.jsonl 2>/dev/null | wc -l";
    wait_until("the request", || lab.said().contains("unplug the device now"));
    thread::sleep(Duration::from_secs(3));
    // It is on the device and waits for the battery.
    assert_eq!(cable.shell(&lab, runner), "0");
    assert!(!lab.said().contains("plug the device in again\""), "{}", lab.said());
    cable.pull();
    wait_until("the loss of the device", || cable.shell(&lab, "echo here").is_empty());
    lab.phone.tell("battery 80 Discharging");
    // Four queries of 2 s, alone.
    thread::sleep(Duration::from_secs(12));
    wait_long("the second request", || lab.said().contains("plug the device in again\""));
    assert!(!lab.said().contains("launch_end"), "nobody can know yet that it has ended: {}", lab.said());
    lab.phone.tell("battery 80 Charging");
    cable.plug();
    finish(running).expect(0);

    let rows = lab.launches();
    assert_eq!((rows.len(), rows[0]["status"].as_str(), rows[0]["charge_state"].as_str()), (1, "ok", "discharging"), "{rows:?}");
    // On the battery for certain, and too short.
    assert!(rows[0]["absent"].contains("power_avg_w=window of "), "{}", rows[0]["absent"]);
    let asked = asked(&lab);
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(asked[0].starts_with("unplug the device now") && asked[1] == "plug the device in again", "{asked:?}");
    let all = journal(&lab.folder());
    assert!(all.iter().all(|e: &Value| !e["text"].as_str().unwrap_or_default().contains("external power")), "{all:?}");
}

#[test]
fn a_user_who_leaves_the_cable_in() {
    let Some(mut lab) = Lab::with_paced_runner() else { return };
    lab.phone.tell("battery 80 Charging");
    let cable = Cable::plugged(&lab);
    let path = scenario(&lab, format!("serial = \"{}\"", cable.serial), "wait = \"4s\"");
    run(lab.run(&path, "20s").arg("--on-battery")).expect(0);
    let rows = lab.launches();
    assert_eq!((rows.len(), rows[0]["status"].as_str(), rows[0]["charge_state"].as_str()), (1, "ok", "charging"), "{rows:?}");
    assert!(rows[0]["absent"].contains("power_avg_w=on external power (battery is charging): "), "{}", rows[0]["absent"]);
    // 4 s of waiting, and five queries of 2 s.
    let wall_s = rows[0]["wall_ms"].parse::<f64>().unwrap() / 1e3;
    assert!((12.0..25.0).contains(&wall_s), "{wall_s}");
}

/// Over the network the run waits once, at its begin.
#[test]
fn a_user_who_does_not_hear() {
    let Some(mut lab) = Lab::with_paced_runner() else { return };
    lab.phone.tell("battery 80 Charging");
    let path = scenario(&lab, lab.device(), "wait = \"3s\"");
    run(lab.run(&path, "20s").arg("--on-battery"))
        .expect(0)
        .says(&["still on external power after 3 s: there will be no figures of power"]);
    let row = lab.launches().remove(0);
    assert!(row["absent"].contains("power_avg_w=on external power (battery is charging): "), "{}", row["absent"]);
    assert_eq!(asked(&lab).len(), 1);
}
