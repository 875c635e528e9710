// Plain geometry in pixels: lines that keep clear of nodes, names that cover nothing.
const BENDS = [0, 0.1, -0.1, 0.2, -0.2, 0.06, -0.06, 0.15, -0.15, 0.32, -0.32, 0.45, -0.45];
const SIDES = [[1, 0], [-1, 0], [0, -1], [0, 1], [0.75, -0.75], [-0.75, -0.75], [0.75, 0.75], [-0.75, 0.75]];
const COVERED = 500;
const CELL = 3;

function alongLine(from, to, bend, steps) {
  const across = to.x - from.x;
  const down = to.y - from.y;
  const points = [];
  for (let step = 0; step <= steps; step++) {
    const t = step / steps;
    const aside = 4 * t * (1 - t) * bend;
    points.push({ x: from.x + t * across - aside * down, y: from.y + t * down + aside * across });
  }
  return points;
}

function distanceToPart(at, from, to) {
  const across = to.x - from.x;
  const down = to.y - from.y;
  const length = across * across + down * down || 1e-9;
  const t = Math.max(0, Math.min(1, ((at.x - from.x) * across + (at.y - from.y) * down) / length));
  return Math.hypot(at.x - from.x - t * across, at.y - from.y - t * down);
}

// How far the middle of the line a-b is moved aside, in parts of its length, to keep clear of third nodes.
function bendAround(places, a, b, clearance) {
  const from = places[a];
  const to = places[b];
  const reach = clearance + 0.46 * Math.hypot(to.x - from.x, to.y - from.y);
  const left = Math.min(from.x, to.x) - reach;
  const right = Math.max(from.x, to.x) + reach;
  const top = Math.min(from.y, to.y) - reach;
  const bottom = Math.max(from.y, to.y) + reach;
  const near = places.filter((at, i) => i !== a && i !== b && at.x > left && at.x < right && at.y > top && at.y < bottom);
  let best = 0;
  let most = -1;
  for (const bend of BENDS) {
    const points = alongLine(from, to, bend, bend ? 12 : 1);
    let least = Infinity;
    for (const at of near) {
      for (let k = 1; k < points.length && least > most; k++) least = Math.min(least, distanceToPart(at, points[k - 1], points[k]));
    }
    if (least > most) { most = least; best = bend; }
    if (most >= clearance) break;
  }
  return best;
}

// How much of a box is covered by lines, from one table of sums over small cells.
function makeInk(width, height, lines) {
  const across = Math.ceil(width / CELL) + 1;
  const down = Math.ceil(height / CELL) + 1;
  const sums = new Int32Array((across + 1) * (down + 1));
  for (const points of lines) {
    for (let k = 1; k < points.length; k++) {
      const steps = Math.max(1, Math.ceil(Math.hypot(points[k].x - points[k - 1].x, points[k].y - points[k - 1].y) / CELL));
      for (let step = 0; step < steps; step++) {
        const x = Math.floor((points[k - 1].x + step / steps * (points[k].x - points[k - 1].x)) / CELL);
        const y = Math.floor((points[k - 1].y + step / steps * (points[k].y - points[k - 1].y)) / CELL);
        if (x >= 0 && y >= 0 && x < across && y < down) sums[(y + 1) * (across + 1) + x + 1] = 1;
      }
    }
  }
  for (let y = 1; y <= down; y++) {
    for (let x = 1; x <= across; x++) {
      const here = y * (across + 1) + x;
      sums[here] += sums[here - 1] + sums[here - across - 1] - sums[here - across - 2];
    }
  }
  const column = (x) => Math.max(0, Math.min(across, Math.round(x / CELL)));
  const row = (y) => Math.max(0, Math.min(down, Math.round(y / CELL)));
  return (box) => {
    const [x0, x1, y0, y1] = [column(box.left), column(box.right), row(box.top), row(box.bottom)];
    const at = (y, x) => sums[y * (across + 1) + x];
    return at(y1, x1) - at(y0, x1) - at(y1, x0) + at(y0, x0);
  };
}

function overlap(a, b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

function covers(box, at, radius) {
  const x = Math.max(box.left - at.x, 0, at.x - box.right);
  const y = Math.max(box.top - at.y, 0, at.y - box.bottom);
  return x * x + y * y < radius * radius;
}

// Boxes for names, in the given order: {i, text, box} of those that found a place of their own.
function placeNames(order, places, radii, texts, font, measure, ink, frame, mostInk) {
  const taken = [];
  const height = 1.2 * font;
  const middle = (frame.left + frame.right) / 2;
  for (const i of order) {
    const at = places[i];
    if (at.x < frame.left || at.x > frame.right || at.y < frame.top || at.y > frame.bottom) continue;
    let found = null;
    let least = COVERED;
    texts(i).forEach((text, shortness) => {
      const width = measure(text) + 2;
      for (let number = 0; number < 2 * SIDES.length; number++) {
        const side = SIDES[number % SIDES.length];
        const away = radii[i] + (number < SIDES.length ? 0.2 : 0.9) * font;
        const x = at.x + Math.sign(side[0]) * (Math.abs(side[0]) * away + width / 2);
        const y = at.y + Math.sign(side[1]) * (Math.abs(side[1]) * away + height / 2);
        const box = { left: x - width / 2, right: x + width / 2, top: y - height / 2, bottom: y + height / 2 };
        if (box.left < frame.left || box.right > frame.right || box.top < frame.top || box.bottom > frame.bottom) continue;
        const lines = ink(box);
        // A whole name rather than a short one, and a little rather outwards, close by, in the order of the sides.
        const cost = lines + 4 * shortness + 0.02 * number - 0.3 * Math.sign(side[0] * (at.x - middle));
        if (cost >= least || lines > mostInk) continue;
        if (taken.some((other) => overlap(other.box, box))) continue;
        if (places.some((other, j) => covers(box, other, radii[j]))) continue;
        least = cost;
        found = { i: i, text: text, box: box };
      }
    });
    if (found) taken.push(found);
  }
  return taken;
}
