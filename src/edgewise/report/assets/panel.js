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
  if (mine.length > most) panel.append(element("p", {}, "and " + (mine.length - most) + " less probable ones; filter the table below for all."));
}
