//! The committed example run, rendered and opened in a real browser: what a person sees is what the tables say.

mod support;

use std::{fs, process::Command};

use support::{bench, root, run};

#[test]
fn the_example_in_chromium() {
    let dir = tempfile::tempdir().unwrap();
    let example = root().join("results/example-pc");
    let report = run(bench(dir.path()).arg("report").arg(&example).args(["--out", "pages"])).expect(0);
    let page = dir.path().join(report.stdout.trim());
    let profile = dir.path().join("profile");
    let mut browser = Command::new(support::chromium());
    browser.args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]);
    browser.args(["--disable-component-update", "--enable-logging=stderr", "--virtual-time-budget=3000"]);
    browser.arg(format!("--user-data-dir={}", profile.display())).arg("--dump-dom").arg(format!("file://{}", page.display()));
    let seen = run(&mut browser).expect(0);
    assert!(!seen.stderr.contains("CONSOLE"), "the page complains in the browser: {}", seen.stderr);

    // Figures of the table, read here by another program than the one that made the page.
    let cells = fs::read_to_string(example.join("cells.csv")).unwrap();
    let mut lines = cells.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let column = |name: &str| header.iter().position(|h| *h == name).unwrap();
    let (class, status, peak, id) = (column("device_class"), column("status"), column("peak_mem_mb"), column("cell"));
    let mut measured = 0;
    for fields in lines.map(|l| l.split(',').collect::<Vec<_>>()).filter(|f| f[status] == "ok") {
        let memory: f64 = fields[peak].parse().unwrap();
        let shown = format!("{memory:.1}");
        assert!(seen.stdout.contains(&shown), "{}: {shown} MB is not on the page", fields[id]);
        assert!(matches!(fields[class], "emulator" | "pc"), "{}", fields[class]);
        measured += 1;
    }
    assert_eq!(measured, 18, "the example run measures 18 cells");
    for words in ["Emulator time is not device time", "Content-Security-Policy", "not told apart", "Method and limits"] {
        assert!(seen.stdout.contains(words), "{words:?} is not on the page");
    }
    assert!(seen.stdout.matches("<svg").count() >= 8, "charts are missing");
    assert!(!seen.stdout.contains("NaN") && !seen.stdout.contains("<script"), "no figure is NaN, and no script runs");
}

#[test]
fn what_to_ship_is_on_the_page_on_the_terminal_and_as_data() {
    let dir = tempfile::tempdir().unwrap();
    let example = root().join("results/example-pc");
    let report = |more: &[&str]| run(bench(dir.path()).arg("report").arg(&example).args(["--out", "pages"]).args(more));
    let human = report(&[]).expect(0);
    let page = fs::read_to_string(dir.path().join(human.stdout.trim())).unwrap();
    let emulator = "tiny-llama on local (emulator): no recommendation, since emulator time is not device time: nothing is ranked and nothing is selected from it.";
    assert!(human.stderr.contains(emulator), "{}", human.stderr);
    assert!(page.contains(emulator) && page.contains("What to ship"), "the same words on the page");
    assert!(page.contains("https://github.com/alibaba/MNN") && page.contains("From public documents"), "what no measurement says, apart");

    let machine = report(&["--format", "json", "--use", "chat-assistant"]).expect(0);
    assert_eq!(machine.stderr, "");
    let told: serde_json::Value = serde_json::from_str(&machine.stdout).unwrap();
    let selection = &told["selections"][0];
    assert_eq!(selection["use_case"]["name"], "chat-assistant");
    // No cell of the example has a prompt of 512 tokens.
    let pc = selection["groups"].as_array().unwrap().iter().find(|group| group["class"] == "pc").unwrap();
    assert_eq!(pc["verdict"]["kind"], "no-recommendation");
    assert!(pc["unpromised"][0].as_str().unwrap().ends_with("(prompt-tokens 512): no cell has these conditions"), "{pc}");
    assert!(fs::read_to_string(dir.path().join(told["page"].as_str().unwrap())).unwrap().contains("preset"), "the page is judged for it");

    let wrong = report(&["--use", "glases"]).expect(2);
    assert!(wrong.stderr.contains("no such use case, there are: chat-assistant, glasses"), "{}", wrong.stderr);
}
