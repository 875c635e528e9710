// The neighbourhood of one variable with numbers, beside the network.
function showNeighbourhood(page, i, onClose) {
  const panel = byId("panel");
  panel.replaceChildren();
  panel.classList.toggle("empty", i < 0);
  if (i < 0) return;
  const data = page.edges;
  const close = element("button", { type: "button", class: "close screen-only", "aria-label": "Close" }, "×");
  close.addEventListener("click", onClose);
  panel.append(close, element("h3", {}, page.names[i]));
  if (page.groups) panel.append(element("p", {}, page.groups[page.group[i]]));
  if (page.frequency[i] !== null) {
    panel.append(element("p", {}, "“" + page.high[i] + "” in " + number(100 * page.frequency[i], 1) + " % of the rows."));
  }
  if (page.levels && page.levels[i]) panel.append(levelBars(page.levels[i]));
  panel.append(element("p", {}, "Expected number of neighbours: " + number(page.degree[i], 1) + "."));
  const mine = [];
  data.members.forEach((members, k) => { if (members.includes(i)) mine.push(k); });
  mine.sort((a, b) => data.pip[b] - data.pip[a] || Math.abs(data.given[b]) - Math.abs(data.given[a]));
  const table = element("table", { class: "neighbours" });
  const head = element("tr");
  for (const word of ["neighbour", "PIP", "if included"]) head.append(element("th", { scope: "col", class: word === "neighbour" ? "word" : "" }, word));
  table.append(head);
  // The probable ones, but never an empty list.
  const most = Math.min(20, Math.max(5, mine.filter((k) => data.pip[k] >= 0.05).length));
  for (const k of mine.slice(0, most)) {
    const row = element("tr", { title: describe(page, k) });
    const others = data.members[k].filter((j) => j !== i).map((j) => page.names[j]).join(" – ");
    row.append(element("td", { class: "name" }, others));
    row.append(element("td", {}, probability(data.pip[k])));
    row.append(element("td", { class: data.given[k] < 0 ? "negative" : "positive" }, number(data.given[k], 2)));
    table.append(row);
  }
  panel.append(table);
  for (const k of mine.slice(0, most)) {
    if (page.matrices && page.matrices[k]) panel.append(heatMap(page, k, i));
  }
  if (mine.length > most) panel.append(element("p", {}, "and " + (mine.length - most) + " less probable ones; filter the table below for all."));
}

// Shares of the levels of a variable, as bars behind the words.
function levelBars(levels) {
  const table = element("table", { class: "levels", "aria-label": "Shares of the levels" });
  for (const [label, share] of levels) {
    const row = element("tr");
    row.append(element("td", { class: "name" }, label));
    const cell = element("td", {}, number(100 * share, 1) + " %");
    cell.style.background = "linear-gradient(to left, var(--bar) " + number(100 * share, 1) + "%, transparent 0)";
    row.append(cell);
    table.append(row);
  }
  return table;
}

// The matrix of a pair: which levels go together more (blue) or less (orange) often.
function heatMap(page, k, i) {
  const [first, second] = page.edges.members[k];
  const turned = first !== i;
  const values = page.matrices[k];
  const other = turned ? first : second;
  const cell = (a, b) => (turned ? values[b][a] : values[a][b]);
  const label = (v, c) => (page.levels && page.levels[v] ? page.levels[v][c][0] : String(c));
  const rows = turned ? values[0].length : values.length, columns = turned ? values.length : values[0].length;
  let largest = 1e-9;
  values.forEach((line) => line.forEach((value) => { largest = Math.max(largest, Math.abs(value)); }));
  const figure = element("figure", { class: "heat" });
  const table = element("table");
  const head = element("tr");
  head.append(element("th", { scope: "col", class: "word" }, page.names[i] + " \\ " + page.names[other]));
  for (let b = 0; b < columns; b++) head.append(element("th", { scope: "col" }, label(other, b)));
  table.append(head);
  for (let a = 0; a < rows; a++) {
    const line = element("tr");
    line.append(element("th", { scope: "row", class: "word" }, label(i, a)));
    for (let b = 0; b < columns; b++) {
      const value = cell(a, b), part = Math.round(80 * Math.abs(value) / largest);
      const box = element("td", { title: label(i, a) + ", " + label(other, b) + ": " + number(value, 2) }, number(value, 2));
      box.style.background = "color-mix(in srgb, var(--" + (value < 0 ? "negative" : "positive") + ") " + part + "%, transparent)";
      if (part > 45) box.classList.add("deep");
      line.append(box);
    }
    table.append(line);
  }
  figure.append(table, element("figcaption", {}, "Log odds added by each pair of levels, if the edge is there."));
  return figure;
}
