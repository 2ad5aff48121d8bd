#!/usr/bin/env python3
"""Pages of `bench report` in a real Chromium: what a reader sees, what the script does, what hostile words can't do.

    page_check.py example PAGE RUN    the page of a run folder, against its tables
    page_check.py big PAGE RUN        a page of many cells stays usable
    page_check.py hostile PAGE        a page of a run whose every word is an attack
    page_check.py site FOLDER         the index and the pages of trends of a lab whose names are attacks
    page_check.py compared PAGE IDS   a comparison of two runs with these cells

It needs playwright and axe-playwright-python, of which axe itself is taken (tests/browser.sh installs them), and takes Chromium from CHROMIUM. Tables are read by Python's csv.
"""

import csv
import json
import os
import sys
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import axe_playwright_python
from playwright.sync_api import sync_playwright

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text()
# In the columns' order, which is that of the comparison.
COLUMNS = ["ttft_ms", "prefill_tok_s", "decode_tok_s", "itl_p50_ms", "itl_p99_ms", "e2e_ms", "load_ms", "peak_mem_mb"]
SHOWN = "() => [...document.querySelectorAll('.compare tr[data-backend]')].filter(r => r.checkVisibility()).length"


class Browser:
    """A page with what it complained about and what it asked the network for."""

    def __init__(self, chromium, path, **options):
        self.context = chromium.new_context(**options)
        self.page = self.context.new_page()
        self.said, self.asked = [], []
        self.page.on("console", lambda m: self.said.append(m.text))
        self.page.on("pageerror", lambda e: self.said.append(str(e)))
        self.page.on("dialog", lambda d: (self.said.append("dialog: " + d.message), d.dismiss()))
        self.page.on("request", lambda r: self.asked.append(r.url))
        self.page.on("popup", lambda p: self.said.append("popup: " + p.url))
        self.url = Path(path).resolve().as_uri()
        self.page.goto(self.url)

    def wait(self, there):
        """Playwright's own waiting evaluates text within the page, which its policy forbids."""
        for _ in range(200):
            if there():
                return
            self.page.wait_for_timeout(50)
        raise AssertionError("it did not come within 10 s")

    def quiet(self):
        assert self.said == [], self.said
        assert self.asked == [self.url] * len(self.asked), self.asked

    def axe(self, what):
        # What is folded is part of the page too. Of rows and pictures that are alike a few are enough: axe takes milliseconds for each element.
        self.page.evaluate("""() => new Promise(done => {
            document.querySelectorAll('details').forEach(d => { d.open = true; });
            document.querySelectorAll('tbody').forEach(b => [...b.rows].slice(3).forEach(r => r.remove()));
            document.querySelectorAll('.charts').forEach(c => [...c.children].slice(2).forEach(f => f.remove()));
            document.querySelectorAll('dl, ul').forEach(l => [...l.children].slice(4).forEach(i => i.remove()));
            requestAnimationFrame(() => setTimeout(done));
        })""")
        self.page.evaluate(AXE)
        found = self.page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")["violations"]
        bad = [(v["id"], v["impact"], [(n["html"][:200], n["failureSummary"][:300]) for n in v["nodes"][:3]]) for v in found]
        assert not [v for v in bad if v[1] in ("serious", "critical")], f"{what}: {json.dumps(bad, indent=1)}"

    def select(self, name, value):
        self.page.locator(f"form.filters [name={name}]").first.select_option(value)


def rows_of(run, table="cells.csv"):
    with open(Path(run) / table, newline="") as file:
        return list(csv.DictReader(file))


def comparison(page):
    """Rows of the comparisons as they stand: id, values by metric, workload."""
    return page.evaluate("""(columns) => [...document.querySelectorAll('.compare tr.row')].map(r => ({
        id: r.cells[0].title, workload: r.dataset.workload, visible: r.checkVisibility(),
        values: Object.fromEntries(columns.map((c, i) => [c, r.cells[i + 2].dataset.v ?? null])),
        shown: Object.fromEntries(columns.map((c, i) => [c, r.cells[i + 2].querySelector('.value')?.textContent ?? null])),
    }))""", COLUMNS)


def near(shown, exact):
    """A rounded figure is that of the table: half a unit of its last digit."""
    decimals = len(shown.partition(".")[2])
    return abs(float(shown) - exact) <= 0.5 * 10 ** -decimals * 1.0000001


def example(chromium, path, run):
    cells = {row["cell"]: row for row in rows_of(run)}
    ok = {cell for cell, row in cells.items() if row["status"] == "ok"}
    browser = Browser(chromium, path)
    page = browser.page

    # Every figure of the comparison is that of the table.
    seen = comparison(page)
    assert {row["id"] for row in seen} == ok and len(seen) == len(ok), (len(seen), len(ok))
    for row in seen:
        for metric in COLUMNS:
            exact = cells[row["id"]][metric]
            assert (row["values"][metric] is None) == (exact == ""), (row["id"], metric)
            if exact:
                assert float(row["values"][metric]) == float(exact) and near(row["shown"][metric], float(exact)), (row, metric)

    # So are those of the matrix: a place for each row and workload.
    for metric, title in (("ttft_ms", "Time to first token by workload"), ("decode_tok_s", "Decode rate by workload")):
        matrix = page.evaluate("""(title) => [...document.querySelectorAll('.matrices > div')].filter(d => d.querySelector('h4')?.textContent === title)
            .flatMap(d => [...d.querySelectorAll('tbody tr')].map(r => [...r.cells].map(c => c.dataset.v ?? null)))""", title)
        values = sorted(float(v) for row in matrix for v in row if v is not None)
        assert values == sorted(float(cells[c][metric]) for c in ok if cells[c][metric]), title

    # Bars: the lengths drawn are the values of the table, in one proportion for each picture.
    drawn = page.evaluate("""() => [...document.querySelectorAll('figure')].filter(f => /^(Time to first token|Decode rate)( —|$)/.test(f.querySelector('h4').textContent))
        .map(f => ({title: f.querySelector('h4').textContent,
            bars: [...f.querySelectorAll('svg rect')].map(r => ({at: +r.getAttribute('y'), length: +r.getAttribute('width')})),
            rows: [...f.querySelectorAll('tbody tr')].map(r => [...r.cells].map(c => c.textContent))}))""")
    assert drawn
    for picture in drawn:
        values = [float(row[2]) for row in picture["rows"]]
        lengths = [bar["length"] for bar in sorted(picture["bars"], key=lambda bar: bar["at"])]
        assert len(lengths) == len(values), picture["title"]
        # The table's own digits: of 1.3 the bar may be one of 1.25 to 1.35.
        halves = [0.5 * 10 ** -len(row[2].partition(".")[2]) for row in picture["rows"]]
        scale = sum(lengths) / sum(values)
        assert all(abs(length - value * scale) <= 1.5 + (0.01 * value + 2 * half) * scale for length, value, half in zip(lengths, values, halves)), picture
        metric = "ttft_ms" if picture["title"].startswith("Time") else "decode_tok_s"
        exact = sorted(float(cells[c][metric]) for c in ok)
        assert all(any(near(row[2], value) for value in exact) for row in picture["rows"]), picture["title"]

    filters(browser, cells)
    sorting(browser)
    keyboard(browser)
    browser.quiet()

    for scheme in ("light", "dark"):
        other = Browser(chromium, path, color_scheme=scheme)
        other.axe(scheme)
        other.quiet()
    narrow = Browser(chromium, path, viewport={"width": 400, "height": 800})
    narrow.axe("narrow")
    wide = narrow.page.evaluate("() => document.documentElement.scrollWidth")
    assert wide <= 400, f"the page is {wide} px wide on a phone"
    printed(chromium, path)
    plain(chromium, path, len(ok))


def filters(browser, cells):
    page = browser.page
    everything = page.evaluate(SHOWN)
    backends = sorted({row["backend"] for row in cells.values()})
    for backend in backends:
        browser.select("backend", backend)
        want = {c for c, row in cells.items() if row["backend"] == backend and row["status"] == "ok"}
        assert {row["id"] for row in comparison(page) if row["visible"]} == want, backend
        told = page.inner_text("form.filters .shown")
        assert told == f"{page.evaluate(SHOWN)} of {everything} rows", told
    browser.select("status", "ok")
    browser.select("backend", "")
    workload = sorted({row["workload"] for row in comparison(page)})[0]
    browser.select("workload", workload)
    prompt, _, generate = workload.partition(" → ")
    want = {c for c, row in cells.items() if (row["prompt_tokens"], row["gen_tokens"], row["status"]) == (prompt, generate, "ok")}
    assert {row["id"] for row in comparison(page) if row["visible"]} == want
    # The address holds the state: a page opened there shows the same.
    again = browser.context.new_page()
    again.goto(page.url)
    assert again.evaluate(SHOWN) == len(want) and again.input_value("form.filters [name=workload]") == workload
    again.close()
    page.click("form.filters [type=reset]")
    browser.wait(lambda: page.evaluate(SHOWN) == everything)
    assert "#?" not in page.url, page.url
    one = sorted(c for c, row in cells.items() if row["status"] == "ok")[0]
    page.fill("form.filters [name=text]", one.upper())
    assert [row["id"] for row in comparison(page) if row["visible"]] == [one], "an id is found, whatever its case"
    page.fill("form.filters [name=text]", "")


def sorting(browser):
    """Each head three times: up, down, as it was. All heads of a column are pressed, since each panel has its own."""
    seen = browser.page.evaluate("""(columns) => {
        const bodies = () => [...document.querySelectorAll('.compare tbody')].filter(b => b.querySelector('tr.row'));
        const order = () => bodies().map(b => [...b.querySelectorAll('tr.row')].map(r => r.cells[0].title));
        const before = JSON.stringify(order()), found = [];
        for (let i = 0; i < columns.length + 2; i++) {
            const heads = [...document.querySelectorAll('.compare thead')].map(h => h.rows[0].cells[i]).filter(h => h.querySelector('button'));
            for (const word of ['ascending', 'descending', null]) {
                for (const head of heads) head.querySelector('button').click();
                found.push({column: columns[i - 2] ?? null, word, said: heads.map(h => h.getAttribute('aria-sort')),
                    others: document.querySelectorAll('th[aria-sort]').length - (word ? heads.length : 0),
                    same: JSON.stringify(order()) === before,
                    values: bodies().map(b => [...b.querySelectorAll('tr.row')].map(r => r.cells[i].dataset.v ?? null))});
            }
        }
        return found;
    }""", COLUMNS)
    assert len(seen) == 3 * (len(COLUMNS) + 2) and all(step["said"] for step in seen)
    for step in seen:
        assert set(step["said"]) == {step["word"]} and step["others"] == 0, step
        assert step["same"] or step["word"], "the third press gives the page's order back"
        for values in step["values"] if step["word"] else []:
            there = [float(v) if step["column"] else v for v in values if v is not None]
            assert there == sorted(there, reverse=step["word"] == "descending"), step
            assert values[len(there):] == [None] * (len(values) - len(there)), "absent ones come last"


def keyboard(browser):
    page = browser.page
    page.focus("form.filters [name=text]")
    button = page.locator(".compare th[data-sort] button").first
    button.focus()
    page.keyboard.press("Enter")
    assert button.evaluate("b => b.parentElement.ariaSort") == "ascending"
    page.keyboard.press("Space")
    assert button.evaluate("b => b.parentElement.ariaSort") == "descending"
    page.keyboard.press("Space")


def printed(chromium, path):
    browser = Browser(chromium, path)
    browser.page.emulate_media(media="print")
    seen = browser.page.evaluate("""() => ({
        controls: [...document.querySelectorAll('form.filters, form.filters *, .contents')].filter(e => e.checkVisibility()).length,
        rows: [...document.querySelectorAll('.compare tr.row')].every(r => r.checkVisibility()),
        paper: getComputedStyle(document.body).backgroundColor})""")
    assert seen == {"controls": 0, "rows": True, "paper": "rgb(255, 255, 255)"}, seen
    browser.page.emulate_media(media="print", color_scheme="dark")
    assert browser.page.evaluate("() => getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)", "paper is white"
    # A part of the rows on paper says that it is one.
    browser.page.emulate_media(media="screen")
    browser.select("status", "ok")
    browser.page.emulate_media(media="print")
    assert browser.page.is_visible("form.filters .shown") and not browser.page.is_visible("form.filters select >> nth=0")


def plain(chromium, path, rows):
    """Without a script there is the whole page, and no control that does nothing."""
    browser = Browser(chromium, path, java_script_enabled=False)
    assert browser.page.locator(".compare tr.row").count() == rows
    assert browser.page.locator("form.filters").is_hidden() and browser.page.locator("th button").count() == 0


def harmless(browser):
    """Words of a run have made no element, run nothing, and are there to read."""
    assert browser.page.evaluate("() => window.hacked ?? 'no'") == "no"
    markup = browser.page.evaluate("""() => [...document.querySelectorAll('*')].filter(e => [...e.attributes].some(a => /^on/i.test(a.name) || /^\\s*javascript:/i.test(a.value) && a.name !== 'title'
            && !a.name.startsWith('data-') && a.name !== 'value' && a.name !== 'aria-label')).length + document.querySelectorAll('img, iframe, object, embed, base, link, svg script, foreignObject, svg a').length""")
    assert markup == 0, f"{markup} elements that words of a run have made"
    assert browser.page.evaluate("() => document.body.textContent.includes(\"<img src=x onerror=\")"), "the words are shown as they are"
    # A mark that turns the direction of what follows it ends with its own text.
    assert browser.page.evaluate("() => !/[\\u202a-\\u202e\\u2066-\\u2069]/.test(document.body.textContent)"), "marks of direction are shown, not obeyed"


def hostile(chromium, path):
    for scheme in ("light", "dark"):
        browser = Browser(chromium, path, color_scheme=scheme)
        page = browser.page
        # Handlers would run late, on a load that fails or on a pointer.
        page.mouse.move(300, 300)
        for head in page.locator(".compare th button").all():
            head.click()
        for name in ("backend", "model", "quant"):
            box = page.locator(f"form.filters [name={name}]")
            for value in box.locator("option").evaluate_all("all => all.map(o => o.value)") if box.count() else []:
                box.select_option(value)
                assert page.evaluate(SHOWN) > 0, (name, value)
            if box.count():
                box.select_option("")
        page.reload()
        assert page.evaluate("() => [document.scripts.length, window.hacked ?? 'no', document.title.includes('<script>')]") == [1, "no", True]
        harmless(browser)
        decided = page.evaluate("() => [...document.querySelectorAll('.decision .choice .answer')].map(e => e.textContent)")
        assert decided and any("<script>" in said for said in decided), decided
        # The policy by itself: what a hole in the escaping would let in.
        page.evaluate("""() => {
            const put = (name, set) => { const e = document.createElement(name); set(e); document.body.append(e); };
            put('script', e => { e.textContent = 'window.hacked = 1'; });
            put('div', e => { e.innerHTML = '<img src=x onerror="window.hacked = 2"><p style="color:red">'; });
            put('a', e => { e.href = 'javascript:window.hacked = 3'; e.click(); });
        }""")
        page.wait_for_timeout(100)
        assert page.evaluate("() => window.hacked ?? 'no'") == "no"
        assert any("Content Security Policy" in said for said in browser.said), browser.said
        assert not [said for said in browser.said if "Content Security Policy" not in said], browser.said
        assert all(asked.startswith("file:") for asked in browser.asked), browser.asked


def site(chromium, folder):
    """The index and the pages of trends of a lab whose names are attacks. They need no script, and have none."""
    folder = Path(folder)
    pages = [folder / "index.html", *sorted(folder.glob("device-*.html")), *sorted(folder.glob("model-*.html"))]
    assert len(pages) == 3, pages
    for path in pages:
        for options in ({"color_scheme": "light"}, {"color_scheme": "dark", "viewport": {"width": 400, "height": 800}}):
            browser = Browser(chromium, path, **options)
            page = browser.page
            page.mouse.move(300, 300)
            assert page.evaluate("() => document.scripts.length") == 0
            harmless(browser)
            wide = page.evaluate("() => document.documentElement.scrollWidth")
            assert wide <= page.viewport_size["width"], f"{path.name} is {wide} px wide"
            # Each link leads to a file that is there.
            links = page.evaluate("() => [...document.links].map(a => a.href.split('#')[0])")
            gone = [link for link in links if not Path(url2pathname(urlsplit(link).path)).is_file()]
            assert len(links) > 3 and not gone, gone
            browser.axe(f"{path.name} {options}")
            browser.quiet()


def compared(chromium, path, ids):
    """The page of a comparison: `ids` are its cells, of which those of mnn regressed in the decode rate and no other did."""
    ids = ids.split(",")
    browser = Browser(chromium, path)
    page = browser.page
    rows = """() => [...document.querySelectorAll('.compare tr.row')].filter(r => r.checkVisibility())
        .map(r => [r.closest('section').querySelector('h2').firstChild.textContent.trim(), r.cells[0].dataset.v])"""
    both = sorted([metric, cell] for cell in ids for metric in ("ttft_ms", "decode_tok_s"))
    assert sorted(page.evaluate(rows)) == both
    mnn = [pair for pair in both if pair[1].startswith("mnn.")]
    browser.select("backend", "mnn")
    assert sorted(page.evaluate(rows)) == mnn and page.inner_text("form.filters .shown") == f"{len(mnn)} of {len(both)} rows"
    browser.select("backend", "")
    browser.select("status", "regressed")
    assert sorted(page.evaluate(rows)) == [pair for pair in mnn if pair[0] == "decode_tok_s"]
    again = browser.context.new_page()
    again.goto(page.url)
    assert sorted(again.evaluate(rows)) == [pair for pair in mnn if pair[0] == "decode_tok_s"]
    again.close()
    page.click("form.filters [type=reset]")
    browser.wait(lambda: len(page.evaluate(rows)) == len(both))
    # By the ratio: what is slower in B comes first, and the mean of all stays last.
    table = page.locator("section.panel", has_text="decode_tok_s").first
    table.locator("th[data-sort=number] button").click()
    order = table.locator("tr.row th").evaluate_all("all => all.map(h => h.dataset.v)")
    slower = len(mnn) // 2
    assert all(cell.startswith("mnn.") for cell in order[:slower]) and not any(cell.startswith("mnn.") for cell in order[slower:]), order
    assert table.locator("tr").last.inner_text().startswith("Geometric mean")
    browser.quiet()
    for options in ({"color_scheme": "light"}, {"color_scheme": "dark", "viewport": {"width": 400, "height": 800}}):
        other = Browser(chromium, path, **options)
        wide = other.page.evaluate("() => document.documentElement.scrollWidth")
        assert wide <= other.page.viewport_size["width"], f"{wide} px wide"
        other.axe(f"comparison {options}")
        other.quiet()
    without = Browser(chromium, path, java_script_enabled=False)
    assert without.page.locator(".compare tr.row").count() == len(both) and without.page.locator("form.filters").is_hidden()


def big(chromium, path, run):
    cells = rows_of(run)
    ok = {row["cell"] for row in cells if row["status"] == "ok"}
    # What failed for one reason is one row of its model and backend.
    rows = len(ok) + len({(row["model"], row["backend"], row["reason"]) for row in cells if row["status"] != "ok"})
    browser = Browser(chromium, path)
    page = browser.page
    assert page.evaluate(SHOWN) == rows
    # A table of every metric of every cell is what cells.csv is; a picture has what an eye takes in, and says what it leaves out.
    cut = page.locator("details.wide > summary", has_text="largest workload, 4096 → 128: cells.csv has all").all_text_contents()
    assert len(cut) >= 10 and page.evaluate("() => Math.max(...[...document.querySelectorAll('details tbody')].map(b => b.rows.length))") <= 400, cut
    assert page.evaluate("() => Math.max(...[...document.querySelectorAll('svg.chart')].map(s => s.querySelectorAll('*').length))") < 1000
    assert "Drawn: the largest workload, 4096 → 128; the comparison above has them all." in page.text_content("body")
    sizes = page.evaluate("""() => {
        const box = document.forms[0].elements.text;
        const timed = (work) => { const t = performance.now(); work(); document.body.offsetHeight; return Math.round(performance.now() - t); };
        const typed = (text) => timed(() => { box.value = text; box.dispatchEvent(new Event('input', {bubbles: true})); });
        const nav = performance.getEntriesByType('navigation')[0];
        return {elements: document.querySelectorAll('*').length, loaded_ms: Math.round(nav.loadEventEnd),
            filter_ms: typed('mnn w8a16'), narrower_ms: typed('mnn w8a16 phi'), all_ms: typed(''),
            sort_ms: timed(() => document.querySelectorAll('.compare th button')[2].click())};
    }""")
    page.fill("form.filters [name=text]", "mnn w8a16")
    want = {row["cell"] for row in cells if (row["backend"], row["quant"]) == ("mnn", "w8a16")} & ok
    assert {row["id"] for row in comparison(page) if row["visible"]} == want
    browser.select("model", "phi-3.5-mini")
    # Parts without a row that is left are gone with their pictures.
    assert [head.inner_text() for head in page.locator("section.set > h3").all() if head.is_visible()] == ["phi-3.5-mini"]
    page.click("form.filters [type=reset]")
    browser.wait(lambda: page.evaluate(SHOWN) == rows)
    browser.quiet()
    # Figures to look at, not to judge by: a machine that does something else is slower.
    sizes["bytes"] = Path(path).stat().st_size
    assert sizes["elements"] < 250_000 and sizes["bytes"] < 12_000_000, sizes
    print(json.dumps(sizes))


def main():
    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=["--no-sandbox"])
        try:
            {"example": example, "hostile": hostile, "big": big, "site": site, "compared": compared}[sys.argv[1]](chromium, *sys.argv[2:])
        finally:
            chromium.close()


if __name__ == "__main__":
    main()
