// Pictures and tables to take away: SVG and PNG with all their colours inside, and text for a spreadsheet.
const KEPT = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linecap", "stroke-linejoin",
  "opacity", "font-family", "font-size", "font-weight", "text-anchor", "paint-order"];

// A picture as text that needs no page around it; always on white, whatever the page looks like.
function pictureOf(svg) {
  const root = document.documentElement;
  const before = root.dataset.theme;
  root.dataset.theme = "light";
  const copy = svg.cloneNode(true);
  const originals = svg.querySelectorAll("*");
  copy.querySelectorAll("*").forEach((part, k) => {
    const style = getComputedStyle(originals[k]);
    if (style.display === "none" || style.visibility === "hidden") part.setAttribute("data-gone", "");
    for (const name of KEPT) part.setAttribute(name, style.getPropertyValue(name));
    part.removeAttribute("class");
  });
  copy.querySelectorAll("[data-gone]").forEach((part) => part.remove());
  if (before === undefined) delete root.dataset.theme;
  else root.dataset.theme = before;
  const { width, height } = svg.viewBox.baseVal;
  for (const name of ["class", "style", "id", "tabindex", "role"]) copy.removeAttribute(name);
  copy.setAttribute("xmlns", SVG);
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.prepend(shape("rect", { width: "100%", height: "100%", fill: "#fff" }));
  return { text: new XMLSerializer().serializeToString(copy), width: width, height: height };
}

function download(blob, name) {
  const link = element("a", { download: name, href: URL.createObjectURL(blob) });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function saveSVG(svg, name) {
  download(new Blob([pictureOf(svg).text], { type: "image/svg+xml" }), name + ".svg");
}

function savePNG(svg, name) {
  const picture = pictureOf(svg);
  const scale = Math.max(2, 2400 / picture.width);
  const image = new Image();
  image.addEventListener("load", () => {
    const canvas = element("canvas", { width: Math.round(scale * picture.width), height: Math.round(scale * picture.height) });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => download(blob, name + ".png"), "image/png");
  });
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(picture.text);
}

function offerPicture(where, svg, name) {
  for (const [word, save] of [["Save SVG", saveSVG], ["Save PNG", savePNG]]) {
    const button = element("button", { type: "button" }, word);
    button.addEventListener("click", () => save(svg, name));
    where.append(button);
  }
}

// Spreadsheets run text that begins like a formula; an apostrophe makes it text.
function asCell(value) {
  const text = String(value === null || value === undefined ? "" : value).replace(/\s+/g, " ");
  return typeof value === "string" && /^ *[=+\-@]/.test(text) ? "'" + text : text;
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch (refused) {
    const area = element("textarea", { class: "skip" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
