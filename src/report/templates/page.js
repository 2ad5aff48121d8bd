// Filters for the rows of a run, and sorting of its comparisons by a column. The page is whole without this. All words stand in the
// page; nothing here makes markup of text.
(() => {
  "use strict";
  const FIELDS = ["backend", "model", "quant", "workload", "status", "class"];
  const forms = [];

  const several = (row, field) => (row.dataset[field] ?? "").split("\n");

  function filters(run) {
    const form = run.querySelector("form.filters");
    if (!form) return;
    const rows = [...run.querySelectorAll("tr[data-backend]")].map((row) => ({ row, counted: row.closest(".compare") !== null, words: null }));
    const parts = [...run.querySelectorAll("tbody, section.set, section.panel")].filter((part) => part.querySelector("tr[data-backend]"));
    const [shown, all] = [form.querySelector(".shown b"), form.querySelector(".shown .all")];
    all.textContent = rows.filter((entry) => entry.counted).length;

    const words = (entry) => {
      entry.words ??= `${entry.row.textContent} ${entry.row.firstElementChild.title}`.toLowerCase();
      return entry.words;
    };

    function apply() {
      const wanted = FIELDS.map((field) => [field, form.elements[field]?.value ?? ""]).filter(([, value]) => value);
      const sought = form.elements.text.value.toLowerCase().split(/\s+/).filter(Boolean);
      let count = 0;
      for (const entry of rows) {
        const { row } = entry;
        row.hidden = !(wanted.every(([field, value]) => several(row, field).includes(value)) && sought.every((word) => words(entry).includes(word)));
        if (!row.hidden && entry.counted) count += 1;
      }
      for (const part of parts) part.hidden = !part.querySelector("tr[data-backend]:not([hidden])");
      form.classList.toggle("active", wanted.length + sought.length > 0);
      shown.textContent = count;
    }

    form.addEventListener("input", () => { apply(); remember(); });
    form.addEventListener("reset", () => setTimeout(() => { apply(); remember(); }));
    form.addEventListener("submit", (event) => event.preventDefault());
    forms.push({ form, apply, name: (element) => `${run.id}.${element.name}` });
    form.hidden = false;
    apply();
  }

  // The state is in the address, so that a link leads to what is seen: #?r0.backend=genie
  const fields = (form) => [...form.elements].filter((element) => element.name);

  function remember() {
    const state = new URLSearchParams();
    for (const { form, name } of forms) for (const element of fields(form)) if (element.value) state.append(name(element), element.value);
    const text = state.toString();
    if (text || location.hash.startsWith("#?")) history.replaceState(null, "", `#${text && "?"}${text}`);
  }

  function recall() {
    if (!location.hash.startsWith("#?")) return;
    const state = new URLSearchParams(location.hash.slice(2));
    for (const { form, name, apply } of forms) {
      for (const element of fields(form)) {
        element.value = state.get(name(element)) ?? "";
        // A choice that this page doesn't have is none.
        if (element.selectedIndex === -1) element.value = "";
      }
      apply();
    }
  }

  // What scrolls sideways can be reached by key; what does not is no stop on the way.
  const sideways = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    }
  });

  // Ascending, descending, as it was. Rows stay within their workload and, timed in another way, with their like; what has no value comes last.
  function sorting(table) {
    const heads = [...table.querySelectorAll("thead th[data-sort]")];
    const bodies = [...table.tBodies].map((body) => ({ body, rows: [...body.querySelectorAll("tr.row")] })).filter((part) => part.rows.length > 1);
    if (!bodies.length) return;

    function sort(head, direction) {
      for (const other of heads) other.removeAttribute("aria-sort");
      if (direction) head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
      const column = head.cellIndex;
      const number = head.dataset.sort === "number";
      const value = (row) => row.cells[column].dataset.v ?? "";
      const order = (a, b) => {
        const [x, y] = [value(a), value(b)];
        if (!x || !y) return (x ? 0 : 1) - (y ? 0 : 1);
        return direction * (number ? x - y : x.localeCompare(y, "en", { numeric: true }));
      };
      for (const { body, rows } of bodies) {
        // `rows` is in the page's order, and a sort keeps it among equals.
        const sorted = direction ? rows.toSorted((a, b) => a.dataset.apart - b.dataset.apart || order(a, b)) : rows;
        body.append(...sorted);
      }
    }

    for (const head of heads) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const next = { null: 1, ascending: -1, descending: 0 };
        sort(head, next[head.getAttribute("aria-sort")]);
      });
    }
  }

  for (const run of document.querySelectorAll("article.run")) filters(run);
  for (const box of document.querySelectorAll(".scroll, .drawing")) sideways.observe(box);
  for (const table of document.querySelectorAll("table.compare")) sorting(table);
  addEventListener("hashchange", recall);
  recall();
})();
