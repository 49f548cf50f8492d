// The attention of every layer and head: the matrix of values, the lines of some, a wall of all.
import { choice, downloadDrawing, element, scrolling, table, unfolding } from "./dom.js";
import { wall } from "./heads.js";
import { COLORS, lines } from "./lines.js";
import { matrix } from "./matrix.js";
import { isMark, shown } from "./tokens.js";
import { PAPER, pageInks, shareOf } from "./weights.js";

const KINDS = { cross: "cross: output over source", encoder: "encoder: source over source", decoder: "decoder: output over output" };
const SHOWS = { matrix: "matrix", lines: "lines", wall: "all layers and heads" };
const OVERS = { mean: "mean", maximum: "maximum" };

/** Return the view; state is the address's, change(part) leads to a changed one. */
export async function attentionView({ translation, about, source, state, change, addressOf }) {
  if (translation.is_blank) return [element("p", {}, "A blank text has no attention.")];
  const kind = state.kind in KINDS ? state.kind : "cross";
  const show = state.show in SHOWS ? state.show : "matrix";
  const sides = tokensOf(translation, kind);
  const layers = about.layers[kind === "encoder" ? "encoder" : "decoder"];
  // The last layer first: of cross attention it aligns best.
  const layer = Math.min(Number(state.layer ?? layers) || 0, layers - 1);
  const load = (each) =>
    source.weights(translation.text, state.target ?? null, kind, each, [about.heads, sides.queries.length, sides.keys.length]);
  const heads = headsOf(state, about.heads);
  const parts = [
    element("p", { class: "note" },
      "Attention weights are what the model computed, not an explanation of what it did: other weights can lead to the same output."),
    about.num_models > 1 ? element("p", { class: "note" }, `Of the first of ${about.num_models} models.`) : null,
    element("div", { class: "controls" },
      choice("Kind", Object.entries(KINDS), kind, (value) => change({ kind: value, layer: null, query: null })),
      choice("Show", Object.entries(SHOWS), show, (value) => change({ show: value })),
      show === "wall" ? null : choice("Layer", Array.from({ length: layers }, (_, i) => [String(i), String(i + 1)]), String(layer), (value) => change({ layer: value })),
      show === "matrix" && heads.length > 1
        ? choice("Over heads", Object.entries(OVERS), state.over in OVERS ? state.over : "mean", (value) => change({ over: value })) : null),
  ];
  if (show === "wall") {
    parts.push(
      wall({
        kind, layers, heads: about.heads, ...sides, load,
        address: (each, head) => addressOf({ show: "lines", kind, layer: String(each), heads: String(head), query: null }),
      }),
      element("p", { class: "note" }, "Rows are queries, columns are keys. The darker, the larger the weight (by its square root). Click or tap a thumbnail to see its lines."),
    );
    return parts;
  }
  const weights = await load(layer);
  parts.push(headBoxes(about.heads, heads, change, show === "lines"));
  const names = heads.length === about.heads ? "all heads" : `head ${heads.map((head) => head + 1).join(", ")}`;
  const title = `${kind} attention, layer ${layer + 1}, ${names}`;
  const over = state.over in OVERS ? state.over : "mean";
  const weight = weights.over(heads, over);
  const hint = show === "lines" ? "Point at a query, or tap it, to see its lines alone." : "Point at a cell, or tap it, to see its weight.";
  const readout = element("p", { class: "readout note", "aria-live": "off" }, hint);
  const query = Number(state.query ?? NaN);
  const chosen = query < sides.queries.length ? query : null;
  const draw = (inks) => show === "lines"
    ? lines({ weights, heads, ...sides, chosen, title, choose: (query) => change({ query: query === null ? null : String(query) }) })
    : matrix({ weight, ...sides, title, inks, tell: (text) => { readout.textContent = text || hint; } });
  parts.push(
    scrolling(title, draw(pageInks())),
    readout,
    marks(weight, sides),
    element("p", { class: "buttons" },
      element("button", { type: "button", class: "second", onclick: () => downloadDrawing(`attention-${kind}-${layer + 1}.svg`, draw(PAPER)) }, "Save as SVG")),
    unfolding("As a table", () =>
      table(
        `${title}${heads.length > 1 ? `, ${over}` : ""}: weight of each key (column) for each query (row)`,
        ["query", ...sides.keys.map(shown)],
        sides.queries.map((token, query) => [shown(token), ...sides.keys.map((_, key) => weight(query, key).toFixed(2))]),
      )),
  );
  return parts;
}

/** Return the tokens that ask and those that are looked at. A decoder's first key is the start. */
function tokensOf(translation, kind) {
  const { source, target, start } = translation;
  if (kind === "encoder") return { queries: source, keys: source };
  if (kind === "cross") return { queries: target, keys: source };
  return { queries: target, keys: [start, ...target.slice(0, -1)] };
}

function headsOf(state, count) {
  const all = Array.from({ length: count }, (_, head) => head);
  const chosen = (state.heads ?? "").split(",").filter((text) => text !== "").map(Number).filter((head) => all.includes(head));
  return chosen.length ? chosen : all;
}

function headBoxes(count, heads, change, withColors) {
  const toggle = (head, on) => {
    const next = on ? [...heads, head].sort((a, b) => a - b) : heads.filter((each) => each !== head);
    change({ heads: next.length === count ? null : next.join(",") });
  };
  const boxes = Array.from({ length: count }, (_, head) => {
    const label = element("label", { class: "head" },
      element("input", { type: "checkbox", checked: heads.includes(head), onchange: (event) => toggle(head, event.target.checked) }),
      ` ${head + 1}`);
    if (withColors) {
      label.style.borderBottomColor = COLORS[head % COLORS.length];
      label.classList.add("colored");
    }
    return label;
  });
  return element("fieldset", { class: "heads" }, element("legend", {}, "Heads"), boxes,
    element("button", { type: "button", class: "second", onclick: () => change({ heads: null }) }, "all"));
}

/** Return a line with the share of the weight on special tokens, where many heads rest. */
function marks(weight, { queries, keys }) {
  const places = keys.map((_, key) => key).filter((key) => isMark(keys[key]));
  if (!places.length) return null;
  const names = [...new Set(places.map((key) => keys[key]))];
  const share = (name) => shareOf(weight, queries.length, places.filter((key) => keys[key] === name));
  return element("p", { class: "note" },
    `Weight on special tokens: ${names.map((name) => `${name} ${(100 * share(name)).toFixed(0)} %`).join(", ")}.`);
}
