// Small helpers. Names of variables are data: they reach the page through textContent only.
const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);
const WORDS = ["strong presence", "presence", "inconclusive", "absence", "strong absence", "set by the prior"];
const COLOURS = ["#00508a", "#56b4e9", "#8c8c8c", "#f0a860", "#b34700", "#3d3d3d"];

function element(tag, attributes, text) {
  const made = document.createElement(tag);
  for (const key in attributes || {}) made.setAttribute(key, attributes[key]);
  if (text !== undefined) made.textContent = text;
  return made;
}

function shape(tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const key in attributes || {}) made.setAttribute(key, attributes[key]);
  if (text !== undefined) made.textContent = text;
  return made;
}

function shortened(name, length) {
  const letters = Array.from(String(name).replace(/\s+/g, " "));
  return letters.length > length ? letters.slice(0, length - 1).join("") + "…" : letters.join("");
}

function number(value, digits) {
  if (value === null || value === undefined) return "–";
  return value.toFixed(digits).replace("-", "−");
}

function probability(value) {
  if (value > 0.9995 && value < 1) return "> 0.999";
  if (value < 0.0005 && value > 0) return "< 0.001";
  return value.toFixed(3);
}

function bayesFactor(data, k) {
  const mark = data.bound[k];
  if (mark === "prior") return "–";
  return (mark ? (mark === ">" ? "> " : "< ") : "") + number(data.bf[k], 2);
}

function edgeLabel(page, k, length) {
  return page.edges.members[k].map((i) => shortened(page.names[i], length)).join(" – ");
}

function describe(page, k) {
  const data = page.edges;
  const lines = [
    edgeLabel(page, k, 60),
    "inclusion probability " + probability(data.pip[k]) + " (± " + number(data.mcse[k], 3) + ")",
    "log10 Bayes factor " + bayesFactor(data, k) + ": " + WORDS[data.evidence[k]],
    "coupling if included " + number(data.given[k], 2) + " (log odds)",
  ];
  return lines.join("\n");
}

function showTooltip(event, text) {
  const box = byId("tooltip");
  box.textContent = text;
  box.hidden = false;
  const x = Math.min(event.clientX + 14, window.innerWidth - box.offsetWidth - 8);
  const y = Math.min(event.clientY + 14, window.innerHeight - box.offsetHeight - 8);
  box.style.left = Math.max(4, x) + "px";
  box.style.top = Math.max(4, y) + "px";
}

function hideTooltip() {
  byId("tooltip").hidden = true;
}
