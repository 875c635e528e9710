// The network in pixels of the screen: places scale with the zoom, letters and lines do not.
const FADE_FROM = 600;
const MOST_BENT = 1500;

function makeNetwork(page, onSelect) {
  const svg = byId("graph");
  const data = page.edges;
  const count = page.names.length;
  const start = page.positions.map(([x, y]) => ({ x: x, y: y }));
  const layout = start.map((at) => ({ ...at }));
  const world = shape("g");
  const pixelLayer = shape("g", { "aria-hidden": "true" });
  const edgeLayer = shape("g", { "aria-hidden": "true" });
  const nodeLayer = shape("g");
  const nameLayer = shape("g", { class: "names", "aria-hidden": "true" });
  const frameLayer = shape("g", { "aria-hidden": "true" });
  world.append(pixelLayer, edgeLayer, nodeLayer, nameLayer);
  svg.append(world, frameLayer);

  // Pairs only; larger cliques are in the table. The weakest first, so that strong lines lie on top.
  const pairs = [];
  data.members.forEach((members, k) => { if (members.length === 2) pairs.push(k); });
  const size = (k) => Math.abs(data.given[k] || 0);
  pairs.sort((a, b) => size(a) - size(b));
  const strongest = pairs.length ? size(pairs[pairs.length - 1]) || 1 : 1;
  const lines = new Map();
  let shown = [];
  let selected = -1;
  let current = -1;
  let view = { x: 0, y: 0, scale: 1 };
  let width = 0;
  let height = 0;
  let fit = null;
  let places = [];
  let radii = [];
  let font = 12;
  let widest = 6;

  const nodes = page.names.map((name, i) => {
    const group = shape("g", { class: "node", "data-node": i });
    const colour = page.group[i] < 0 ? "alone-colour" : "group-" + page.group[i] % 12;
    group.append(shape("circle", { class: colour }));
    nodeLayer.append(group);
    return group;
  });
  const squares = page.grid ? start.map(() => pixelLayer.appendChild(shape("rect", { class: "pixel" }))) : [];

  function measure() {
    width = Math.max(260, Math.round(svg.getBoundingClientRect().width) || 1000);
    height = Math.round(Math.min(width < 700 ? 1.2 * width : 0.66 * width, Math.max(420, 0.86 * window.innerHeight)));
    if (page.grid) height = Math.round(Math.min(height, width * page.grid[0] / page.grid[1] + 80));
    svg.setAttribute("viewBox", "0 0 " + width + " " + height);
    svg.style.height = height + "px";
    font = count <= 40 && width >= 700 ? 13 : 11;
    const bottom = drawFrame();
    const top = page.mark ? 34 : 10;
    const sides = page.grid ? 20 : width < 700 ? 34 : 80;
    const xs = start.map((at) => at.x);
    const ys = start.map((at) => at.y);
    const low = { x: Math.min(...xs), y: Math.min(...ys) };
    const high = { x: Math.max(...xs), y: Math.max(...ys) };
    const pad = page.grid ? 0.5 : 0;
    const wide = Math.max(high.x - low.x + 2 * pad, 1e-6);
    const tall = Math.max(high.y - low.y + 2 * pad, 1e-6);
    let across = (width - 2 * sides) / wide;
    let down = (height - top - bottom - (page.grid ? 10 : 44)) / tall;
    // Fill the frame, but do not stretch the picture out of shape.
    const most = (page.grid ? 1 : 1.45) * Math.min(across, down);
    across = Math.min(across, most);
    down = Math.min(down, most);
    fit = { x: width / 2 - across * (low.x + high.x) / 2, y: (top + height - bottom) / 2 - down * (low.y + high.y) / 2, across: across, down: down, top: top, bottom: bottom };
  }

  // The mark and the legend stay where they are when the picture moves; both are part of it when it is saved.
  function drawFrame() {
    frameLayer.replaceChildren();
    const letters = 12;
    const items = legend();
    const rows = [[]];
    let used = 12;
    for (const item of items) {
      item.lead = item.line || item.dot ? 32 : 0;
      item.width = item.lead + 2 + textWidth(item.text, letters, svg);
      if (used + item.width > width - 8 && rows[rows.length - 1].length) {
        rows.push([]);
        used = 12;
      }
      item.x = used;
      used += item.width + 16;
      rows[rows.length - 1].push(item);
    }
    const tall = items.length ? 20 * rows.length + 8 : 0;
    frameLayer.append(shape("rect", { class: "legend-ground", x: 0, y: height - tall, width: width, height: tall }));
    rows.forEach((row, k) => row.forEach((item) => {
      const y = height - tall + 14 + 20 * k;
      if (item.line) frameLayer.append(shape("path", { class: item.line, "stroke-width": item.thick, d: "M" + item.x + " " + y + "h26" }));
      else if (item.dot) frameLayer.append(shape("circle", { class: item.dot, cx: item.x + 20, cy: y, r: 6 }));
      frameLayer.append(shape("text", { x: item.x + item.lead, y: y + 4, "font-size": letters }, item.text));
    }));
    if (page.mark) frameLayer.append(markStrip(page, width));
    return tall;
  }

  function legend() {
    const kinds = [["positive", (k) => !(data.given[k] < 0)], ["negative", (k) => data.given[k] < 0]];
    const items = [];
    for (const [word, belongs] of kinds) {
      const some = shown.filter(belongs).length;
      if (some) items.push({ line: "edge " + word, thick: 3, text: page.light === "red" ? word : word + ": " + some.toLocaleString("en") });
    }
    if (shown.some((k) => data.evidence[k] === 2)) items.push({ line: "edge positive unsure", thick: 1.6, text: "inconclusive" });
    if (shown.length) {
      for (const part of [1, 0.5, 0.25]) items.push({ line: "edge neutral", thick: thickness(part), text: (part * strongest).toPrecision(2) + (part === 1 ? " log odds" : "") });
    }
    if (page.groups) page.groups.forEach((word, g) => items.push({ dot: "group-" + g % 12, text: shortened(word, 24) }));
    else if (!page.grid && page.group.some((g) => g >= 0)) items.push({ text: "node colours: communities" });
    return items;
  }

  function thickness(part) {
    return (0.6 + (widest - 0.6) * part).toFixed(2);
  }

  function settle() {
    const scale = view.scale;
    places = layout.map((at) => ({ x: scale * (fit.x + at.x * fit.across), y: scale * (fit.y + at.y * fit.down) }));
    const grown = Math.pow(scale, 0.4);
    const radius = page.grid ? Math.max(2, 0.16 * fit.across * scale) : grown * Math.max(width < 700 ? 3 : 4, Math.min(width < 700 ? 8 : 11, 0.16 * Math.sqrt(width * height / (count + 4)) / 2));
    const linked = new Set();
    for (const k of shown) for (const i of data.members[k]) linked.add(i);
    radii = layout.map((_, i) => (linked.has(i) ? radius : 0.7 * radius));
    nodes.forEach((node, i) => node.firstChild.setAttribute("r", radii[i].toFixed(1)));
    squares.forEach((square, i) => {
      const side = fit.across * scale;
      for (const [name, value] of [["x", places[i].x - side / 2], ["y", places[i].y - side / 2], ["width", side], ["height", side]]) square.setAttribute(name, value.toFixed(1));
    });
    nodes.forEach((_, i) => placeNode(i));
    shown.forEach((k) => placeLine(k));
    placeAllNames();
    world.setAttribute("transform", "translate(" + view.x.toFixed(1) + " " + view.y.toFixed(1) + ")");
    svg.dataset.zoom = scale.toFixed(3);
    svg.classList.toggle("zoomed", scale > 1.01);
  }

  function placeNode(i) {
    nodes[i].setAttribute("transform", "translate(" + places[i].x.toFixed(1) + " " + places[i].y.toFixed(1) + ")");
  }

  function placeLine(k) {
    const [a, b] = data.members[k];
    const from = places[a];
    const to = places[b];
    const across = to.x - from.x;
    const down = to.y - from.y;
    let bend = 0;
    // Over a pixel grid, edges beyond the nearest pixels are bent, so that none hides another.
    if (page.grid) bend = Math.hypot(across, down) > 1.5 * fit.across * view.scale ? -0.1 : 0;
    else if (shown.length <= MOST_BENT) bend = bendAround(places, a, b, Math.max(...radii) + 2);
    const line = lines.get(k);
    line.bend = bend;
    const end = to.x.toFixed(1) + " " + to.y.toFixed(1);
    const middle = bend
      ? "Q" + ((from.x + to.x) / 2 - 2 * bend * down).toFixed(1) + " " + ((from.y + to.y) / 2 + 2 * bend * across).toFixed(1) + " "
      : "L";
    line.setAttribute("d", "M" + from.x.toFixed(1) + " " + from.y.toFixed(1) + " " + middle + end);
  }

  function placeAllNames() {
    nameLayer.replaceChildren();
    if (page.grid) return;
    const degree = new Array(count).fill(0);
    for (const k of shown) for (const i of data.members[k]) degree[i] += 1;
    const rank = (i) => (i === selected || i === current ? 1e6 : 0) + (nodes[i].classList.contains("near") ? 1e5 : 0) + degree[i];
    const faded = (i) => nodes[i].classList.contains("faded-node");
    const order = page.names.map((_, i) => i).filter((i) => !faded(i)).sort((a, b) => rank(b) - rank(a) || a - b);
    const frame = { left: 2 - view.x, right: width - 2 - view.x, top: fit.top - 6 - view.y, bottom: height - fit.bottom - 2 - view.y };
    const moved = places.map((at) => ({ x: at.x - frame.left, y: at.y - frame.top }));
    const ink = makeInk(width, height, shown.length > 6000 ? [] : shown.map((k) => {
      const [a, b] = data.members[k];
      return alongLine(moved[a], moved[b], lines.get(k).bend, lines.get(k).bend ? 12 : 1);
    }));
    const box = { left: 0, right: frame.right - frame.left, top: 0, bottom: frame.bottom - frame.top };
    const texts = (i) => (i === selected ? [40, 24, 14] : [24, 14, 9]).map((length) => shortened(page.names[i], length));
    const mostInk = count <= 40 ? 60 : 14;
    for (const { i, text, box: found } of placeNames(order, moved, radii, texts, font, (text) => textWidth(text, font, svg), ink, box, mostInk)) {
      const name = shape("text", { "font-size": font, "text-anchor": "middle", "data-name": i, x: ((found.left + found.right) / 2 + frame.left).toFixed(1), y: (found.bottom + frame.top - 0.33 * font).toFixed(1) }, text);
      if (i === selected || i === current) name.classList.add("strong");
      nameLayer.append(name);
    }
  }

  function show(wanted) {
    const drawn = pairs.filter(wanted);
    widest = Math.max(2, Math.min(width < 700 ? 5 : 8, 8 * Math.pow(40 / Math.max(drawn.length, 1), 0.3)));
    shown = drawn;
    const made = document.createDocumentFragment();
    for (const k of shown) {
      let line = lines.get(k);
      if (!line) {
        const kinds = ["edge", data.given[k] < 0 ? "negative" : "positive"];
        if (data.evidence[k] === 2) kinds.push("unsure");
        line = shape("path", { class: kinds.join(" "), "data-edge": k });
        lines.set(k, line);
      }
      line.setAttribute("stroke-width", thickness(size(k) / strongest));
      // Weak lines step back.
      line.setAttribute("stroke-opacity", (0.45 + 0.45 * size(k) / strongest).toFixed(2));
      made.append(line);
    }
    edgeLayer.replaceChildren(made);
    edgeLayer.style.opacity = Math.max(0.3, Math.min(0.9, Math.sqrt(FADE_FROM / Math.max(shown.length, 1)))).toFixed(2);
    mark();
    refresh();
    return shown.length;
  }

  function mark() {
    const near = new Set();
    const linked = new Set();
    for (const k of shown) {
      const [a, b] = data.members[k];
      linked.add(a).add(b);
      const mine = selected < 0 || a === selected || b === selected;
      if (selected >= 0 && mine) near.add(a).add(b);
      lines.get(k).classList.toggle("faded", !mine);
    }
    nodes.forEach((node, i) => {
      node.classList.toggle("chosen", i === selected);
      node.classList.toggle("near", i !== selected && near.has(i));
      node.classList.toggle("alone", !linked.has(i));
      node.classList.toggle("current", i === current);
      node.classList.toggle("faded-node", selected >= 0 && i !== selected && !near.has(i));
    });
  }

  function refresh() {
    measure();
    settle();
  }

  function select(i) {
    selected = i;
    if (i >= 0) current = i;
    mark();
    onSelect(i);
    if (i >= 0) uncover(i);
    placeAllNames();
  }

  // The panel lies over the right of a wide picture: what was chosen moves out from under it.
  function uncover(i) {
    const panel = byId("panel");
    if (getComputedStyle(panel).position !== "absolute") return;
    const edge = width - panel.offsetWidth - 40;
    const x = places[i].x + view.x;
    if (x > edge) move(edge - x, 0);
  }

  function move(across, down) {
    view.x += across;
    view.y += down;
    world.setAttribute("transform", "translate(" + view.x.toFixed(1) + " " + view.y.toFixed(1) + ")");
  }

  function zoom(factor, x, y) {
    const scale = Math.max(0.6, Math.min(12, view.scale * factor));
    const change = scale / view.scale;
    view = { x: x - (x - view.x) * change, y: y - (y - view.y) * change, scale: scale };
    settle();
  }

  function moveNode(i, across, down) {
    layout[i].x += across / (fit.across * view.scale);
    layout[i].y += down / (fit.down * view.scale);
    places[i] = { x: places[i].x + across, y: places[i].y + down };
    placeNode(i);
    for (const k of shown) if (data.members[k].includes(i)) placeLine(k);
    const name = nameLayer.querySelector("[data-name='" + i + "']");
    if (name) for (const [axis, step] of [["x", across], ["y", down]]) name.setAttribute(axis, Number(name.getAttribute(axis)) + step);
  }

  function reset() {
    view = { x: 0, y: 0, scale: 1 };
    start.forEach((at, i) => { layout[i] = { ...at }; });
    select(-1);
    refresh();
  }

  const network = {
    svg: svg, show: show, select: select, zoom: zoom, move: move, moveNode: moveNode, settle: settle, reset: reset, mark: mark,
    centre: () => ({ x: width / 2, y: height / 2 }),
    selected: () => selected,
    current: () => current,
    setCurrent: (i) => { current = i; mark(); placeAllNames(); },
    places: () => places,
  };
  makeGestures(page, network);
  onWidth(svg, refresh);
  return network;
}
