// The network: edges in falling order of PIP, so that a threshold is a number of lines to show.
function makeNetwork(page, onSelect) {
  const svg = byId("graph");
  const data = page.edges;
  const count = page.names.length;
  const places = page.positions.map(([x, y]) => ({ x: x, y: y }));
  const start = places.map((at) => ({ x: at.x, y: at.y }));
  const world = shape("g");
  const edgeLayer = shape("g", { "aria-hidden": "true" });
  const nodeLayer = shape("g");
  if (page.grid) world.append(pixels());
  world.append(edgeLayer, nodeLayer);
  svg.append(world);

  // Pairs only; larger cliques are in the table.
  const pairs = [];
  data.members.forEach((members, k) => { if (members.length === 2) pairs.push(k); });
  pairs.sort((a, b) => data.pip[b] - data.pip[a]);
  const strongest = pairs.reduce((most, k) => Math.max(most, Math.abs(data.given[k] || 0)), 0) || 1;
  const widest = Math.max(2.5, Math.min(9, 9 * Math.pow(60 / Math.max(page.startCount, 1), 0.3)));
  const lines = [];
  const touching = Array.from({ length: count }, () => []);
  const radius = Math.max(4, Math.min(13, 130 / Math.sqrt(count + 20)));
  let shown = 0;
  let selected = -1;
  let current = -1;
  let view = { x: 0, y: 0, scale: 1 };

  const nodes = page.names.map((name, i) => {
    const group = shape("g", { class: "node" + (page.quiet[i] ? " quiet" : ""), "data-node": i });
    group.append(shape("circle", { r: page.grid ? radius * 0.7 : radius }));
    const size = Math.max(10, Math.min(16, 20 - count / 8));
    if (!page.grid) group.append(shape("text", { "font-size": size, y: -radius - 4, "text-anchor": "middle" }, shortened(name, 20)));
    nodeLayer.append(group);
    return group;
  });

  function pixels() {
    const layer = shape("g", { "aria-hidden": "true" });
    for (const at of start) {
      const side = page.grid;
      layer.append(shape("rect", { class: "pixel", x: at.x - side / 2, y: at.y - side / 2, width: side, height: side }));
    }
    return layer;
  }

  function makeLine(rank) {
    const k = pairs[rank];
    const strength = Math.abs(data.given[k] || 0) / strongest;
    const kinds = ["edge", data.given[k] < 0 ? "negative" : "positive"];
    if (data.evidence[k] === 2) kinds.push("unsure");
    const line = shape("path", { class: kinds.join(" "), "stroke-width": (0.6 + (widest - 0.6) * strength).toFixed(2), "data-edge": k });
    lines[rank] = line;
    for (const i of data.members[k]) touching[i].push(rank);
    return line;
  }

  function placeLine(rank) {
    const [a, b] = data.members[pairs[rank]];
    const from = places[a].x.toFixed(1) + " " + places[a].y.toFixed(1);
    const to = places[b].x.toFixed(1) + " " + places[b].y.toFixed(1);
    const across = places[b].x - places[a].x;
    const down = places[b].y - places[a].y;
    // Over a pixel grid, edges beyond the nearest pixels are bent, so that none hides another.
    const bent = page.grid && Math.hypot(across, down) > 1.5 * page.grid;
    const middle = bent
      ? "Q" + ((places[a].x + places[b].x) / 2 + 0.2 * down).toFixed(1) + " " + ((places[a].y + places[b].y) / 2 - 0.2 * across).toFixed(1) + " "
      : "L";
    lines[rank].setAttribute("d", "M" + from + " " + middle + to);
  }

  function placeNode(i) {
    nodes[i].setAttribute("transform", "translate(" + places[i].x.toFixed(1) + " " + places[i].y.toFixed(1) + ")");
    for (const rank of touching[i]) placeLine(rank);
  }

  function showCount(wanted) {
    const fresh = document.createDocumentFragment();
    for (let rank = shown; rank < wanted; rank++) {
      fresh.append(lines[rank] || makeLine(rank));
      placeLine(rank);
    }
    edgeLayer.append(fresh);
    for (let rank = shown - 1; rank >= wanted; rank--) lines[rank].remove();
    shown = wanted;
    mark();
  }

  function countAt(threshold) {
    let low = 0;
    let high = pairs.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (data.pip[pairs[middle]] >= threshold) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  function mark() {
    const near = new Set();
    const linked = new Set();
    for (let rank = 0; rank < shown; rank++) {
      const [a, b] = data.members[pairs[rank]];
      linked.add(a).add(b);
      const mine = selected < 0 || a === selected || b === selected;
      if (selected >= 0 && mine) near.add(a).add(b);
      lines[rank].classList.toggle("faded", !mine);
    }
    nodes.forEach((node, i) => {
      node.classList.toggle("chosen", i === selected);
      node.classList.toggle("near", i !== selected && near.has(i));
      node.classList.toggle("alone", !linked.has(i));
      node.classList.toggle("current", i === current);
      node.classList.toggle("faded-node", selected >= 0 && i !== selected && !near.has(i));
    });
  }

  function select(i) {
    selected = i;
    if (i >= 0) current = i;
    mark();
    onSelect(i);
  }

  function look() {
    world.setAttribute("transform", "translate(" + view.x.toFixed(2) + " " + view.y.toFixed(2) + ") scale(" + view.scale.toFixed(4) + ")");
  }

  function zoom(factor, x, y) {
    const scale = Math.max(0.5, Math.min(12, view.scale * factor));
    const change = scale / view.scale;
    view = { x: x - (x - view.x) * change, y: y - (y - view.y) * change, scale: scale };
    look();
  }

  function pointIn(event) {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    return { x: at.x, y: at.y };
  }

  let held = null;
  svg.addEventListener("pointerdown", (event) => {
    const node = event.target.closest("[data-node]");
    held = { node: node ? Number(node.dataset.node) : -1, from: pointIn(event), moved: false, view: { ...view } };
    svg.setPointerCapture(event.pointerId);
    hideTooltip();
  });
  svg.addEventListener("pointermove", (event) => {
    if (!held) return hover(event);
    const at = pointIn(event);
    if (Math.hypot(at.x - held.from.x, at.y - held.from.y) > 3) held.moved = true;
    if (!held.moved) return;
    if (held.node >= 0) {
      places[held.node] = { x: (at.x - view.x) / view.scale, y: (at.y - view.y) / view.scale };
      placeNode(held.node);
    } else {
      view.x = held.view.x + at.x - held.from.x;
      view.y = held.view.y + at.y - held.from.y;
      look();
    }
  });
  svg.addEventListener("pointerup", () => {
    if (held && !held.moved) select(held.node === selected ? -1 : held.node);
    held = null;
  });
  svg.addEventListener("pointercancel", () => { held = null; });
  svg.addEventListener("pointerleave", hideTooltip);
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && document.activeElement !== svg) return;
    event.preventDefault();
    const at = pointIn(event);
    zoom(Math.exp(-event.deltaY / 400), at.x, at.y);
  }, { passive: false });

  function hover(event) {
    const node = event.target.closest("[data-node]");
    const line = event.target.closest("[data-edge]");
    if (node) {
      const i = Number(node.dataset.node);
      showTooltip(event, page.names[i] + "\nexpected number of neighbours " + number(page.degree[i], 1));
    } else if (line) showTooltip(event, describe(page, Number(line.dataset.edge)));
    else hideTooltip();
  }

  // The nearest node in a direction, so that the arrow keys walk over the picture and not over the columns.
  function neighbourTowards(dx, dy) {
    const from = places[current];
    let best = current;
    let least = Infinity;
    places.forEach((at, i) => {
      if (i === current) return;
      const along = (at.x - from.x) * dx + (at.y - from.y) * dy;
      const across = Math.abs((at.x - from.x) * dy - (at.y - from.y) * dx);
      if (along <= 0 || across > 2 * along) return;
      const cost = along + 2 * across;
      if (cost < least) { least = cost; best = i; }
    });
    return best;
  }

  const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  svg.addEventListener("keydown", (event) => {
    const arrow = arrows[event.key];
    if (arrow) {
      event.preventDefault();
      if (current < 0) current = 0;
      else if (event.shiftKey) {
        places[current] = { x: places[current].x + 12 * arrow[0], y: places[current].y + 12 * arrow[1] };
        placeNode(current);
      } else current = neighbourTowards(arrow[0], arrow[1]);
      mark();
      byId("graph").setAttribute("aria-label", "Network; at variable " + page.names[current]);
    } else if ((event.key === "Enter" || event.key === " ") && current >= 0) {
      event.preventDefault();
      select(current === selected ? -1 : current);
    } else if (event.key === "Escape") select(-1);
    else if (event.key === "+") zoom(1.3, 500, 380);
    else if (event.key === "-") zoom(1 / 1.3, 500, 380);
  });

  byId("zoom-in").addEventListener("click", () => zoom(1.4, 500, 380));
  byId("zoom-out").addEventListener("click", () => zoom(1 / 1.4, 500, 380));
  byId("reset").addEventListener("click", () => {
    view = { x: 0, y: 0, scale: 1 };
    start.forEach((at, i) => { places[i] = { x: at.x, y: at.y }; placeNode(i); });
    look();
    select(-1);
  });

  nodes.forEach((_, i) => placeNode(i));
  return { showCount: showCount, countAt: countAt, select: select };
}
