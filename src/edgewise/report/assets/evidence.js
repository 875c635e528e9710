// Evidence against strength. All points of a category are one path of round dots: thousands stay fast.
function makeEvidence(page) {
  const svg = byId("evidence-plot");
  const data = page.edges;
  const usable = [];
  data.bf.forEach((value, k) => { if (data.bound[k] !== "prior" && data.given[k] !== null) usable.push(k); });
  let top = 1.6;
  let bottom = -1.6;
  let low = 0;
  let high = 0;
  for (const k of usable) {
    top = Math.max(top, data.bf[k]);
    bottom = Math.min(bottom, data.bf[k]);
    low = Math.min(low, data.given[k]);
    high = Math.max(high, data.given[k]);
  }
  top *= 1.1;
  bottom *= 1.1;
  const margin = (high - low || 2) * 0.06;
  low -= margin;
  high += margin;
  // Linear up to two either way and logarithmic beyond, so that overwhelming evidence leaves room for doubt.
  const squeeze = (value) => (Math.abs(value) <= 2 ? value : Math.sign(value) * (2 + 2 * Math.log(Math.abs(value) / 2)));
  const some = Math.log10(page.thresholds[0]);
  const strong = Math.log10(page.thresholds[1]);
  const bands = [[strong, top], [some, strong], [-some, some], [-strong, -some], [bottom, -strong]];
  const ring = shape("circle", { class: "ring", fill: "none", visibility: "hidden" });
  let x = null;
  let y = null;

  // In pixels of the screen: on a narrow page the words stand below the plot and not beside it.
  function draw() {
    const width = Math.max(280, Math.round(svg.getBoundingClientRect().width) || 1000);
    const narrow = width < 700;
    const box = { left: 58, right: narrow ? width - 10 : width - 190, top: page.mark ? 34 : 12, bottom: narrow ? 300 : 370 };
    const height = box.bottom + (narrow ? 172 : 54);
    svg.setAttribute("viewBox", "0 0 " + width + " " + height);
    svg.style.height = height + "px";
    svg.replaceChildren();
    x = (value) => box.left + (value - low) / (high - low) * (box.right - box.left);
    y = (value) => box.bottom - (squeeze(value) - squeeze(bottom)) / (squeeze(top) - squeeze(bottom)) * (box.bottom - box.top);
    // Labels stand at the middle of their bands, at least a line apart.
    const labels = bands.map(([from, to]) => (y(from) + y(to)) / 2);
    for (const index of [1, 0]) labels[index] = Math.min(labels[index], labels[index + 1] - 19);
    for (const index of [3, 4]) labels[index] = Math.max(labels[index], labels[index - 1] + 19);
    bands.forEach(([from, to], index) => {
      const start = y(to);
      svg.append(shape("rect", { x: box.left, y: start, width: box.right - box.left, height: Math.max(0, y(from) - start), fill: COLOURS[index], "fill-opacity": 0.1 }));
      const words = (page.light === "red" ? "" : page.counts[index].toLocaleString("en") + " ") + WORDS[index];
      const at = narrow ? { x: box.left, y: box.bottom + 66 + 20 * index } : { x: box.right + 14, y: labels[index] };
      svg.append(shape("rect", { x: at.x, y: at.y - 5, width: 10, height: 10, fill: COLOURS[index] }));
      svg.append(shape("text", { x: at.x + 16, y: at.y + 5, "font-size": 13 }, words));
    });
    let last = Infinity;
    for (const tick of [-300, -100, -50, -20, -10, -5, -3, -2, -1, 0, 1, 2, 3, 5, 10, 20, 50, 100, 300]) {
      if (tick < bottom || tick > top || last - y(tick) < 14) continue;
      last = y(tick);
      svg.append(shape("line", { class: tick ? "grid" : "axis", x1: box.left, x2: box.right, y1: last, y2: last }));
      svg.append(shape("text", { x: box.left - 8, y: last + 5, "font-size": 12, "text-anchor": "end" }, number(tick, 0)));
    }
    const step = niceStep((high - low) / (narrow ? 4 : 8));
    for (let tick = Math.ceil(low / step) * step; tick <= high; tick += step) {
      svg.append(shape("line", { class: "axis", x1: x(tick), x2: x(tick), y1: box.bottom, y2: box.bottom + 5 }));
      svg.append(shape("text", { x: x(tick), y: box.bottom + 19, "font-size": 12, "text-anchor": "middle" }, number(tick, step < 1 ? 1 : 0)));
    }
    svg.append(shape("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }));
    svg.append(shape("line", { class: "grid", x1: x(0), x2: x(0), y1: box.top, y2: box.bottom }));
    const middle = (box.top + box.bottom) / 2;
    svg.append(shape("text", { x: 14, y: middle, "font-size": 13, "text-anchor": "middle", transform: "rotate(-90 14 " + middle + ")" }, "log₁₀ Bayes factor for presence"));
    const across = narrow ? "coupling given inclusion (log odds)" : "coupling: posterior mean given inclusion (log odds)";
    svg.append(shape("text", { x: (box.left + box.right) / 2, y: box.bottom + 42, "font-size": 13, "text-anchor": "middle" }, across));
    const dot = Math.max(3, Math.min(8, 120 / Math.sqrt(usable.length + 1)));
    for (let index = 0; index < 5; index++) {
      const path = usable.filter((k) => data.evidence[k] === index).map((k) => "M" + x(data.given[k]).toFixed(1) + " " + y(data.bf[k]).toFixed(1) + "h0").join("");
      if (path) svg.append(shape("path", { d: path, stroke: COLOURS[index], "stroke-width": dot, "stroke-linecap": "round", "stroke-opacity": 0.85, fill: "none" }));
    }
    ring.setAttribute("r", dot / 2 + 4);
    svg.append(ring);
    if (page.mark) svg.append(markStrip(page, width));
  }

  svg.addEventListener("pointermove", (event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    let best = -1;
    let least = 400;
    for (const k of usable) {
      const distance = (x(data.given[k]) - at.x) ** 2 + (y(data.bf[k]) - at.y) ** 2;
      if (distance < least) { least = distance; best = k; }
    }
    ring.setAttribute("visibility", best < 0 ? "hidden" : "visible");
    if (best < 0) return hideTooltip();
    ring.setAttribute("cx", x(data.given[best]));
    ring.setAttribute("cy", y(data.bf[best]));
    showTooltip(event, describe(page, best));
  });
  svg.addEventListener("pointerleave", () => { ring.setAttribute("visibility", "hidden"); hideTooltip(); });
  onWidth(svg, draw);
}

function niceStep(rough) {
  const power = Math.pow(10, Math.floor(Math.log10(rough)));
  return [1, 2, 5, 10].map((m) => m * power).find((value) => value >= rough);
}
