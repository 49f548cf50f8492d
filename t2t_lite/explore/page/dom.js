// Making elements. Texts become text nodes, never HTML.

const SVG = "http://www.w3.org/2000/svg";

function make(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** Return an HTML element; an attribute "onclick" is a listener. */
export function element(tag, attributes = {}, ...children) {
  return make(document.createElement(tag), attributes, children);
}

/** Return an SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return make(document.createElementNS(SVG, tag), attributes, children);
}

/** Return a table in a box that scrolls; the first cell of a row is its header. */
export function table(caption, columns, rows, attributes = {}) {
  const head = element("tr", {}, columns.map((name) => element("th", { scope: "col" }, name)));
  const body = rows.map(([first, ...rest]) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, first),
      rest.map((cell) => element("td", {}, cell)),
    ),
  );
  return scrolling(
    caption,
    element(
      "table",
      attributes,
      element("caption", {}, caption),
      element("thead", {}, head),
      element("tbody", {}, body),
    ),
  );
}

/** Return a box that scrolls sideways, by keyboard too. */
export function scrolling(label, ...children) {
  return element("div", { class: "scrolling", tabindex: 0, role: "region", "aria-label": label }, children);
}

/** Return what opens to show content that is made when it is first opened. */
export function unfolding(summary, content) {
  const details = element("details", { class: "as-table" }, element("summary", {}, summary));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(content());
  });
  return details;
}

/** Return a labelled select; options are [value, text]. */
export function choice(label, options, value, onchange) {
  const select = element(
    "select",
    { onchange: () => onchange(select.value) },
    options.map(([key, text]) => element("option", { value: key, selected: key === value }, text)),
  );
  return element("label", { class: "choice" }, `${label} `, select);
}

/** Save text under a name. */
export function download(name, text, type) {
  const link = element("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** Save a drawing as a file that stands alone: black on white, its own font. */
export function downloadDrawing(name, drawing) {
  drawing.setAttribute("xmlns", SVG);
  drawing.setAttribute("color", "#000");
  drawing.setAttribute("font-family", "Helvetica, Arial, sans-serif");
  download(name, new XMLSerializer().serializeToString(drawing), "image/svg+xml");
}

/** Return a number with so many digits after the point, with a true minus sign. */
export function fixed(value, digits = 2) {
  return value.toFixed(digits).replace("-", "−");
}
