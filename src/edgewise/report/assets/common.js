// Small helpers. Names of variables are data: they reach the page through textContent only.
const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);
const WORDS = ["strong presence", "presence", "inconclusive", "absence", "strong absence", "set by the prior"];
const COLOURS = WORDS.map((word) => "var(--" + (word === "set by the prior" ? "prior" : word.replace(" ", "-")) + ")");

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
  const text = value.toFixed(digits);
  // A zero has no sign.
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
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
    (page.matrices && page.matrices[k] ? "strength" : "coupling") + " if included " + number(data.given[k], 2) + " (log odds)",
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

// Draws now, and again whenever the place has another width.
function onWidth(svg, draw) {
  let last = -1;
  const look = () => {
    const now = Math.round(svg.parentElement.getBoundingClientRect().width);
    if (now !== last) {
      last = now;
      draw();
    }
  };
  look();
  new ResizeObserver(look).observe(svg.parentElement);
}

const rulers = element("canvas").getContext("2d");

function textWidth(text, size, svg) {
  rulers.font = size + "px " + getComputedStyle(svg).fontFamily;
  return rulers.measureText(text).width;
}

// What a picture says across its top where the light is not green.
function markStrip(page, width) {
  const strip = shape("g", { class: "mark " + page.light });
  strip.append(shape("rect", { x: 0, y: 0, width: width, height: 24 }));
  let text = page.mark;
  while (text.length > 12 && textWidth(text, 12, document.body) > width - 24) text = text.slice(0, -2).trimEnd() + "…";
  strip.append(shape("text", { x: width / 2, y: 16.5, "text-anchor": "middle", "font-size": 12 }, text));
  return strip;
}
