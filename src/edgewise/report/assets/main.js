// Reads the payload and joins the parts.
const page = JSON.parse(byId("payload").textContent);
const network = makeNetwork(page, (i) => showNeighbourhood(page, i, () => network.select(-1)));
makeTable(page, (i) => network.select(i));
makeEvidence(page);
offerPicture(byId("save-network"), network.svg, "network");
offerPicture(byId("save-evidence"), byId("evidence-plot"), "evidence");

const slider = byId("threshold");
const all = byId("all-edges");
slider.min = page.slider[0];
slider.max = 1;
slider.step = 0.01;
slider.value = page.slider[1];

function showEdges() {
  const threshold = Number(slider.value);
  const data = page.edges;
  byId("by-probability").hidden = !all.checked;
  const drawn = network.show(all.checked ? (k) => data.pip[k] >= threshold : (k) => data.found[k] === 1);
  byId("threshold-value").textContent = threshold.toFixed(2);
  slider.setAttribute("aria-valuetext", threshold.toFixed(2) + ", " + drawn + " edges");
  const total = all.checked ? drawn + page.hidden : page.conclusive;
  const part = total > drawn ? " (the strongest of " + total.toLocaleString("en") + ")" : "";
  const why = all.checked ? " with PIP ≥ " + threshold.toFixed(2) : " with a Bayes factor of " + page.thresholds[0] + " or more";
  const none = !drawn && !all.checked ? " None is conclusive yet; tick “all by probability” to see the others." : "";
  byId("drawn").classList.toggle("withheld", page.light !== "green");
  if (page.light === "red" && drawn) {
    byId("drawn").textContent = "Where the chains are so far: edges" + why + ". They are not counted while the light is red.";
    return;
  }
  byId("drawn").textContent = drawn.toLocaleString("en") + (drawn === 1 ? " edge" : " edges") + part + why
    + " of " + page.pairs.toLocaleString("en") + " candidate pairs" + (page.larger ? "; larger cliques are in the table only" : "") + "." + none;
}
slider.addEventListener("input", showEdges);
all.addEventListener("change", showEdges);
showEdges();
showNeighbourhood(page, -1);

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
  if (found < 0) {
    byId("panel").classList.remove("empty");
    byId("panel").replaceChildren(element("p", {}, "No variable has “" + wanted.trim() + "” in its name."));
  }
}
search.addEventListener("input", find);
document.documentElement.dataset.ready = "yes";
