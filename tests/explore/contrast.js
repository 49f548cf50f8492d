// Return what on the page has too little contrast: [ratio, needed, what, its text], ... (WCAG 2.2,
// success criteria 1.4.3 and 1.4.11). Runs as a function's body.
const parse = (text) => {
  const parts = text.match(/[\d.]+/g).map(Number);
  return { rgb: parts.slice(0, 3), alpha: parts[3] ?? 1 };
};
const over = (top, alpha, under) => under.map((value, i) => alpha * top[i] + (1 - alpha) * value);
const luminance = (rgb) => {
  const [red, green, blue] = rgb.map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const ratio = (one, other) => {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
};
const style = (node, name) => getComputedStyle(node).getPropertyValue(name);

/** What lies under an element: backgrounds of those around it; in a drawing the shapes below too. */
function ground(node) {
  const layers = [];
  for (let each = node; each; each = each.parentElement) {
    const { rgb, alpha } = parse(style(each, "background-color"));
    if (alpha > 0) layers.unshift([rgb, alpha]);
  }
  const drawing = node.closest("svg");
  if (drawing && node.tagName === "text") {
    const box = node.getBoundingClientRect();
    const [x, y] = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
    for (const rect of drawing.querySelectorAll("rect")) {
      const { left, right, top, bottom } = rect.getBoundingClientRect();
      const isBelow = rect.compareDocumentPosition(node) & Node.DOCUMENT_POSITION_FOLLOWING;
      const fill = style(rect, "fill");
      if (!isBelow || fill === "none" || x < left || x > right || y < top || y > bottom) continue;
      const { rgb, alpha } = parse(fill);
      layers.push([rgb, alpha * Number(style(rect, "fill-opacity"))]);
    }
  }
  return layers.reduce((under, [rgb, alpha]) => over(rgb, alpha, under), [255, 255, 255]);
}

const failures = [];
function check(node, color, under, needed, what) {
  const { rgb, alpha } = parse(color);
  const found = ratio(over(rgb, alpha, under), under);
  if (found < needed) failures.push([Number(found.toFixed(2)), needed, what, node.textContent.slice(0, 30)]);
}

const named = (node) => `${node.tagName.toLowerCase()}.${node.getAttribute("class") ?? ""}`;
let numTexts = 0;
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode.parentElement;
  const isText = walker.currentNode.data.trim() && node.checkVisibility() && !node.closest("option, title, script, style, noscript");
  if (!isText) continue;
  numTexts++;
  check(node, style(node, node.closest("svg") ? "fill" : "color"), ground(node), 4.5, named(node));
}
for (const node of document.querySelectorAll("textarea, select")) {
  check(node, style(node, "color"), ground(node), 4.5, named(node));
}
const graphics = {
  "svg line, svg path": "stroke", ".extension rect": "stroke",
  "textarea, select, button": "border-top-color", "nav [aria-current], .head.colored": "border-bottom-color",
  ".fate": "border-top-color",
};
let numGraphics = 0;
for (const [selector, property] of Object.entries(graphics)) {
  for (const node of document.querySelectorAll(selector)) {
    if (!node.checkVisibility()) continue;
    numGraphics++;
    check(node, style(node, property), ground(node.parentElement), 3, `${named(node)} ${property}`);
  }
}
return { failures, numTexts, numGraphics };
