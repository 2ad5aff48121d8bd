use super::*;

fn hostile() -> Comparison {
    let evil = || "<script>alert(1)</script>\"'&".to_owned();
    let change = Change { ratio: 1.1, interval: Some((1.05, 1.15)), verdict: "regressed" };
    let side = || Side { run: evil(), scenario: evil(), started: evil() };
    let difference = |bars| Difference { what: evil(), a: evil(), b: evil(), cells: evil(), bars };
    Comparison {
        tool: evil(),
        a: side(),
        b: side(),
        counts: vec![("regressed", 1)],
        method: vec![evil()],
        problems: vec![evil()],
        serious: vec![difference(true)],
        minor: vec![difference(false)],
        tables: vec![Table {
            metric: "ttft_ms",
            class: evil(),
            better: "lower is better",
            rows: vec![Row {
                keys: Keys { backend: evil(), model: evil(), quant: evil(), workload: evil(), status: evil(), class: evil() },
                cell: evil(),
                device: evil(),
                a: "100.0".to_owned(),
                b: "110.0".to_owned(),
                n: "8".to_owned(),
                composed: true,
                change: change.clone(),
                alone: "",
                decide: evil(),
            }],
            overall: Some((2, change)),
            decide: vec![(evil(), 1)],
        }],
        refused: vec![Refused { reason: evil(), what: vec![evil()] }],
        decide: vec![(evil(), 1)],
    }
}

#[test]
fn whatever_a_run_says_is_text() {
    let page = page::render(&hostile()).expect("a page");
    assert!(page.matches("<script").count() == 1 && !page.contains("alert(1)<"), "{page}");
    assert!(page.contains("default-src &#x27;none&#x27;") || page.contains("default-src 'none'"));
    assert!(page.matches("&lt;script&gt;").count() > 20, "every word of it is on the page");
    assert!(!page.contains("http:") && !page.contains("https:") && !page.contains("src="), "it loads nothing");
    assert!(
        page.contains("prefers-color-scheme:dark") && page.contains(r##"[fill="#B14608"]{fill:#F19E68}"##),
        "verdicts have a dark colour"
    );
}

#[test]
fn figures_and_intervals_are_as_fine_as_they_are_known() {
    let change = |ratio, interval| Change { ratio, interval, verdict: "undecided" };
    let words = |change: Change| (change.figure(), change.between());
    assert_eq!(words(change(1.1, Some((1.05, 1.15)))), ("1.100".to_owned(), "1.050 to 1.150".to_owned()));
    assert_eq!(words(change(1.0004, Some((1.0001, 1.0007)))), ("1.0004".to_owned(), "1.0001 to 1.0007".to_owned()));
    assert_eq!(words(change(2.0, Some((1.0, 4.0)))), ("2.00".to_owned(), "1.00 to 4.00".to_owned()));
    assert_eq!(words(change(1.1, None)), ("1.100".to_owned(), "—".to_owned()));
}

#[test]
fn nothing_to_compare_is_a_page_too() {
    let page = page::render(&Comparison::default()).expect("a page");
    assert!(page.contains("Nothing that could explain a difference"));
}
