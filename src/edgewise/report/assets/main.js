// Reads the payload and joins the parts.
const page = JSON.parse(byId("payload").textContent);

function showNeighbourhood(i) {
  const panel = byId("panel");
  panel.replaceChildren();
  panel.classList.toggle("empty", i < 0);
  if (i < 0) {
    panel.append(element("p", {}, "Choose a variable to see its neighbourhood with numbers."));
    return;
  }
  const data = page.edges;
  panel.append(element("h3", {}, page.names[i]));
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

const network = makeNetwork(page, showNeighbourhood);
makeTable(page, (i) => network.select(i));
makeEvidence(page);

const slider = byId("threshold");
slider.min = page.slider[0];
slider.max = 1;
slider.step = 0.01;
slider.value = page.slider[1];

function applyThreshold() {
  const threshold = Number(slider.value);
  const drawn = network.countAt(threshold);
  network.showCount(drawn);
  byId("threshold-value").textContent = threshold.toFixed(2);
  slider.setAttribute("aria-valuetext", threshold.toFixed(2) + ", " + drawn + " edges");
  const hidden = page.hidden ? " (the strongest of " + (drawn + page.hidden).toLocaleString("en") + ")" : "";
  byId("drawn").textContent = drawn.toLocaleString("en") + (drawn === 1 ? " edge" : " edges") + hidden + " with PIP ≥ " + threshold.toFixed(2)
    + " of " + page.pairs.toLocaleString("en") + " candidate pairs" + (page.larger ? "; larger cliques are in the table only" : "");
}
slider.addEventListener("input", applyThreshold);
applyThreshold();
showNeighbourhood(-1);

const index = new Map(page.names.map((name, i) => [name, i]));
const search = byId("search");
page.names.forEach((name) => byId("variables").append(element("option", { value: name })));

function find() {
  const wanted = search.value;
  if (!wanted.trim()) {
    search.removeAttribute("aria-invalid");
    return network.select(-1);
  }
  let found = index.get(wanted);
  const lower = wanted.trim().toLowerCase();
  if (found === undefined) found = page.names.findIndex((name) => name.toLowerCase() === lower);
  if (found < 0) found = page.names.findIndex((name) => name.toLowerCase().startsWith(lower));
  if (found < 0) found = page.names.findIndex((name) => name.toLowerCase().includes(lower));
  network.select(found);
  search.setAttribute("aria-invalid", String(found < 0));
  if (found < 0) byId("panel").replaceChildren(element("p", {}, "No variable has “" + wanted.trim() + "” in its name."));
}
search.addEventListener("input", find);
document.documentElement.dataset.ready = "yes";
