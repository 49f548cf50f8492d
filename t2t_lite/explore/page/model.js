// The model: its parameters by part beside Table 3's figure, and the curves of its training.
import { element, svg, table, unfolding } from "./dom.js";

const SIZE = { width: 460, height: 240, left: 58, right: 12, top: 14, bottom: 34 };

/** Return the view of the model and its training. */
export function modelView({ about }) {
  const { description, curves = {}, schedule = [], hparams = {} } = about;
  const parts = [];
  if (description) parts.push(parameters(description));
  const charts = [];
  if (schedule.length) charts.push(chart("learning rate, by the formula", schedule, curves.learning_rate));
  for (const [name, points] of Object.entries(curves)) {
    if (name !== "learning_rate" && points.length) charts.push(chart(name, points));
  }
  if (charts.length) {
    parts.push(element("section", {}, element("h2", {}, "Training"), element("div", { class: "charts" }, charts)));
  }
  if (Object.keys(hparams).length) {
    parts.push(element("section", {}, element("h2", {}, "Hyperparameters"),
      table("As the run has them", ["Name", "Value"], Object.entries(hparams).map(([name, value]) => [name, String(value)]))));
  }
  return parts.length ? parts : [element("p", {}, "Nothing is known of this model's training.")];
}

function parameters({ parts, parameters: all, table_3: paper, memory, flops, tokens }) {
  const largest = Math.max(...parts.map((each) => each.total));
  const bar = (total) => {
    const meter = element("span", { class: "bar", "aria-hidden": "true" });
    meter.style.width = `${(100 * total) / largest}%`;
    return meter;
  };
  const rows = parts.map((each) => [
    each.name, String(each.count), each.parameters.toLocaleString("en"), each.total.toLocaleString("en"),
    element("span", { class: "share" }, `${((100 * each.total) / all).toFixed(1)} %`, bar(each.total)),
  ]);
  rows.push(["in all", "", "", all.toLocaleString("en"), paper ? `Table 3: ${paper} million` : ""]);
  const total = Object.values(memory).reduce((sum, each) => sum + each, 0);
  return element("section", {}, element("h2", {}, `Parameters: ${all < 1e6 ? all.toLocaleString("en") : `${(all / 1e6).toFixed(1)} million`}`),
    table("By part", ["Part", "Layers", "Of one", "All", "Share"], rows),
    element("p", { class: "note" },
      `A step of ${tokens.toLocaleString("en")} source and as many target tokens takes ${flops.toExponential(2)} floating-point operations and in float32 at least ${total < 2 ** 30 ? `${(total / 2 ** 20).toFixed(0)} MiB` : `${(total / 2 ** 30).toFixed(1)} GiB`}.`));
}

/** Return a line chart of [x, y] points with a table; `beside` are points drawn over it. */
function chart(name, points, beside = null) {
  const all = [...points, ...(beside ?? [])].filter(([, y]) => Number.isFinite(y));
  if (all.length === 1) {
    const [[step, value]] = all;
    return element("figure", {}, element("figcaption", {}, name),
      element("p", { class: "best" }, short(value)), element("p", { class: "facts" }, `at step ${step.toLocaleString("en")}, the only one`));
  }
  const [x0, x1] = extent(all.map(([x]) => x));
  const [y0, y1] = extent([...all.map(([, y]) => y), ...(Math.min(...all.map(([, y]) => y)) > 0 && name.includes("rate") ? [0] : [])]);
  const x = (value) => SIZE.left + ((value - x0) / (x1 - x0)) * (SIZE.width - SIZE.left - SIZE.right);
  const y = (value) => SIZE.height - SIZE.bottom - ((value - y0) / (y1 - y0)) * (SIZE.height - SIZE.top - SIZE.bottom);
  const path = (line) => line.filter(([, value]) => Number.isFinite(value)).map(([a, b], i) => `${i ? "L" : "M"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join("");
  const axis = [y0, (y0 + y1) / 2, y1].flatMap((value) => [
    svg("line", { x1: SIZE.left, x2: SIZE.width - SIZE.right, y1: y(value), y2: y(value), class: "grid" }),
    svg("text", { x: SIZE.left - 6, y: y(value) + 4, "text-anchor": "end" }, short(value)),
  ]);
  const steps = [[x0, "start"], [x1, "end"]].map(([value, anchor]) =>
    svg("text", { x: x(value), y: SIZE.height - 12, "text-anchor": anchor }, short(value)));
  const drawing = svg("svg", { class: "chart", viewBox: `0 0 ${SIZE.width} ${SIZE.height}`, role: "img", "aria-label": `${name} over steps; the table below has the values` },
    axis, steps,
    svg("text", { x: (SIZE.left + SIZE.width) / 2, y: SIZE.height - 12, "text-anchor": "middle" }, "step"),
    svg("path", { d: path(points), class: "curve", fill: "none" }),
    beside ? svg("path", { d: path(beside), class: "curve beside", fill: "none" }) : null);
  return element("figure", {}, element("figcaption", {}, name, beside ? " (dashed: as trained)" : ""), drawing,
    unfolding("As a table", () => table(`${name} over steps`, ["Step", name], points.map(([step, value]) => [step.toLocaleString("en"), short(value)]))));
}

function extent(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return low === high ? [low - Math.abs(low || 1) / 2, high + Math.abs(high || 1) / 2] : [low, high];
}

function short(value) {
  if (value !== 0 && Math.abs(value) < 0.01) return value.toExponential(1);
  return value.toLocaleString("en", { maximumSignificantDigits: 4 });
}
