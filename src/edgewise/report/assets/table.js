// The edge table: sorted and filtered over all listed edges, a page of rows at a time.
function makeTable(page, onVariable) {
  const data = page.edges;
  const size = 25;
  const longest = data.members.reduce((most, members) => Math.max(most, members.length), 2);
  const columns = [];
  for (let part = 0; part < longest; part++) {
    columns.push({
      title: "variable " + (part + 1), kind: "name", title2: "Name of the variable",
      value: (k) => (part < data.members[k].length ? page.names[data.members[k][part]] : ""),
    });
  }
  const numeric = (title, values, digits, help) => ({ title: title, help: help, value: (k) => values[k], text: (k) => number(values[k], digits) });
  columns.push(
    { title: "PIP", help: "posterior inclusion probability", value: (k) => data.pip[k], text: (k) => probability(data.pip[k]) },
    numeric("± MCSE", data.mcse, 3, "Monte Carlo standard error of the PIP"),
    { title: "log₁₀ BF", help: "Bayes factor for presence; < and > mark bounds", plain: (k) => bayesFactor(data, k), value: (k) => data.bf[k], text: (k) => bayesFactor(data, k) },
    { title: "evidence", kind: "word", value: (k) => -data.evidence[k], plain: (k) => WORDS[data.evidence[k]], text: (k) => WORDS[data.evidence[k]] },
    numeric("coupling", data.mean, 2, "posterior mean, zero where the edge is absent (log odds)"),
    { title: page.interval, help: "highest-density interval of the coupling", plain: (k) => data.low[k] + " … " + data.high[k], value: (k) => data.low[k], text: (k) => number(data.low[k], 2) + " … " + number(data.high[k], 2) },
    numeric("if included", data.given, 2, "posterior mean given inclusion (log odds)"),
    numeric("R-hat", data.rhat, 3, "agreement of the chains; 1.00 is perfect"),
    numeric("ESS", data.ess, 0, "effective number of draws"),
  );
  const state = { column: longest, rising: false, page: 0, rows: [], all: false };
  const text = data.members.map((members) => members.map((i) => page.names[i]).join("\n").toLowerCase());

  const head = element("tr");
  columns.forEach((column, c) => {
    const cell = element("th", { scope: "col", class: column.kind ? "word" : "" });
    const button = element("button", { type: "button", title: column.help || column.title }, column.title);
    button.addEventListener("click", () => {
      state.rising = state.column === c ? !state.rising : Boolean(column.kind === "name");
      state.column = c;
      state.page = 0;
      refresh();
    });
    cell.append(button);
    head.append(cell);
  });
  byId("edge-table").tHead.append(head);

  const category = byId("category");
  category.append(element("option", { value: "" }, "all"));
  WORDS.forEach((word, index) => {
    if (data.evidence.includes(index)) category.append(element("option", { value: index }, word));
  });

  function refresh() {
    const wanted = byId("filter").value.trim().toLowerCase();
    const kind = category.value;
    const column = columns[state.column];
    const rows = [];
    for (let k = 0; k < text.length; k++) {
      if (wanted && !text[k].includes(wanted)) continue;
      if (kind !== "" && data.evidence[k] !== Number(kind)) continue;
      rows.push(k);
    }
    const sign = state.rising ? 1 : -1;
    rows.sort((a, b) => {
      const x = column.value(a);
      const y = column.value(b);
      if (x === y || (x == null && y == null)) return a - b;
      if (x == null) return 1;
      if (y == null) return -1;
      return sign * (typeof x === "string" ? x.localeCompare(y) : x - y);
    });
    state.rows = rows;
    draw();
  }

  function draw() {
    const length = state.all ? 150 : size;
    const first = state.all ? 0 : state.page * size;
    const body = document.createDocumentFragment();
    for (const k of state.rows.slice(first, first + length)) {
      const row = element("tr", { "data-edge": k });
      columns.forEach((column) => {
        const value = column.text ? column.text(k) : column.value(k);
        const cell = element("td", { class: column.kind === "name" ? "name" : column.kind || "" }, value);
        if (column.kind === "name") cell.title = value;
        row.append(cell);
      });
      row.addEventListener("click", () => onVariable(data.members[k][0]));
      row.className = "link";
      body.append(row);
    }
    byId("edge-table").tBodies[0].replaceChildren(body);
    Array.from(head.cells).forEach((cell, c) => {
      if (c === state.column) cell.setAttribute("aria-sort", state.rising ? "ascending" : "descending");
      else cell.removeAttribute("aria-sort");
    });
    const total = state.rows.length;
    const last = Math.min(first + length, total);
    const rest = page.unlisted ? " " + page.unlisted.toLocaleString("en") + " more" + (page.hidden ? "" : " with PIP below " + page.floor) + " are not listed." : "";
    byId("table-status").textContent = total
      ? "Rows " + (first + 1) + "–" + last + " of " + total.toLocaleString("en") + "." + rest
      : "No edge fits the filter." + rest;
    byId("previous").disabled = state.page === 0;
    byId("next").disabled = last >= total;
  }

  byId("filter").addEventListener("input", () => { state.page = 0; refresh(); });
  byId("copy-table").addEventListener("click", async () => {
    const cells = [columns.map((column) => column.title), ...state.rows.map((k) => columns.map((column) => (column.kind === "name" ? column.value(k) : (column.plain || column.value)(k))))];
    const done = await copyText(cells.map((row) => row.map(asCell).join("\t")).join("\n"));
    byId("table-status").textContent = done ? state.rows.length.toLocaleString("en") + " rows are on the clipboard." : "The browser does not let this page copy.";
  });
  category.addEventListener("change", () => { state.page = 0; refresh(); });
  byId("previous").addEventListener("click", () => { state.page -= 1; draw(); });
  byId("next").addEventListener("click", () => { state.page += 1; draw(); });
  window.addEventListener("beforeprint", () => { state.all = true; draw(); });
  window.addEventListener("afterprint", () => { state.all = false; draw(); });
  refresh();
}
