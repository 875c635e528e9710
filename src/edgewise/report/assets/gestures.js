// Mouse, fingers and keys over the network.
function makeGestures(page, network) {
  const svg = network.svg;
  const fingers = new Map();
  let held = null;

  function pointIn(event) {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    return { x: at.x, y: at.y };
  }

  svg.addEventListener("pointerdown", (event) => {
    const at = pointIn(event);
    fingers.set(event.pointerId, at);
    hideTooltip();
    if (fingers.size > 1) {
      held = null;
      return;
    }
    const node = event.target.closest("[data-node]");
    held = { node: node ? Number(node.dataset.node) : -1, from: at, last: at, moved: false };
    svg.setPointerCapture(event.pointerId);
  });

  svg.addEventListener("pointermove", (event) => {
    const at = pointIn(event);
    if (fingers.size === 2 && fingers.has(event.pointerId)) return pinch(event.pointerId, at);
    if (!held) return hover(event);
    if (Math.hypot(at.x - held.from.x, at.y - held.from.y) > 3) held.moved = true;
    if (!held.moved) return;
    if (held.node >= 0) network.moveNode(held.node, at.x - held.last.x, at.y - held.last.y);
    else network.move(at.x - held.last.x, at.y - held.last.y);
    held.last = at;
  });

  function pinch(id, at) {
    const other = Array.from(fingers).find(([key]) => key !== id)[1];
    const before = fingers.get(id);
    const factor = Math.hypot(at.x - other.x, at.y - other.y) / Math.max(1, Math.hypot(before.x - other.x, before.y - other.y));
    network.zoom(factor, (at.x + other.x) / 2, (at.y + other.y) / 2);
    fingers.set(id, at);
  }

  function release(event) {
    fingers.delete(event.pointerId);
    if (held && !held.moved && event.type === "pointerup") network.select(held.node === network.selected() ? -1 : held.node);
    else if (held && held.moved) network.settle();
    held = null;
  }
  svg.addEventListener("pointerup", release);
  svg.addEventListener("pointercancel", release);
  svg.addEventListener("pointerleave", hideTooltip);
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && document.activeElement !== svg) return;
    event.preventDefault();
    const at = pointIn(event);
    network.zoom(Math.exp(-event.deltaY / 400), at.x, at.y);
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
  function neighbourTowards(current, dx, dy) {
    const places = network.places();
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

  function zoomMiddle(factor) {
    const middle = network.centre();
    network.zoom(factor, middle.x, middle.y);
  }

  const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  svg.addEventListener("keydown", (event) => {
    const arrow = arrows[event.key];
    const current = network.current();
    if (arrow) {
      event.preventDefault();
      if (current < 0) network.setCurrent(0);
      else if (event.shiftKey) {
        network.moveNode(current, 12 * arrow[0], 12 * arrow[1]);
        network.settle();
      } else network.setCurrent(neighbourTowards(current, arrow[0], arrow[1]));
      svg.setAttribute("aria-label", "Network; at variable " + page.names[network.current()]);
    } else if ((event.key === "Enter" || event.key === " ") && current >= 0) {
      event.preventDefault();
      network.select(current === network.selected() ? -1 : current);
    } else if (event.key === "Escape") network.select(-1);
    else if (event.key === "+") zoomMiddle(1.3);
    else if (event.key === "-") zoomMiddle(1 / 1.3);
  });
  byId("zoom-in").addEventListener("click", () => zoomMiddle(1.4));
  byId("zoom-out").addEventListener("click", () => zoomMiddle(1 / 1.4));
  byId("reset").addEventListener("click", network.reset);
}
