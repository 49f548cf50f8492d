// The beam search as a tree: a column for each step, its best extensions from the top.
import { element, fixed, scrolling, svg, table, unfolding } from "./dom.js";
import { shown } from "./tokens.js";

const STEPS = 12; // shown at a time
const COLUMN = 124;
const ROW = 34;
const TOP = 26;
const BOX = { width: 100, height: 28 };
const FATES = {
  lives: "kept, extended", finished: "finished, kept", "pushed out": "finished, pushed out by better ones",
  "fell out": "fell out of the beam", "ended too low": "ended, not among the best",
};

/** Return the view of a search. */
export function searchView({ search, state, addressOf }) {
  if (!search) return [element("p", {}, "There is no search tree of this text.")];
  const byNumber = new Map(search.extensions.map((each) => [each.number, each]));
  const columns = Map.groupBy
    ? Map.groupBy(search.extensions, (each) => each.step)
    : group(search.extensions);
  const last = Math.max(...columns.keys());
  const first = Math.max(0, Math.min(Number(state.step) || 0, last - (last % STEPS)));
  const shownSteps = [...columns.keys()].filter((step) => step >= first && step < first + STEPS);
  const title = `Steps ${first + 1} to ${shownSteps.at(-1) + 1} of ${last + 1}`;
  return [
    element("p", { class: "facts" },
      `beam size ${search.beam_size} · length penalty α = ${search.alpha} · ${last + 1} of at most ${search.max_length} steps · stopped: ${search.stopped}`),
    penalty(search),
    pager(first, last, title, addressOf),
    scrolling(title, draw(shownSteps, columns, byNumber, first, title)),
    key(),
    element("p", { class: "note" },
      "Each step extends every beam by a subword and keeps the best extensions. Numbers: log-probability of all subwords so far; of a finished output, its score."),
    unfolding("As a table", () =>
      table(title, ["Step", "Rank", "After", "Subword", "Log-probability", "Score", "Outcome"],
        shownSteps.flatMap((step) => columns.get(step).map((each, rank) => [
          String(step + 1), String(rank + 1),
          each.parent === null ? "start" : byNumber.get(each.parent).text,
          shown(each.token), fixed(each.log_probability, 3), fixed(each.score, 3),
          FATES[each.fate] + (each.is_best ? "; part of the best output" : ""),
        ])), { class: "words" })),
  ];
}

function group(extensions) {
  const columns = new Map();
  for (const each of extensions) columns.set(each.step, [...(columns.get(each.step) ?? []), each]);
  return columns;
}

function penalty({ penalty: effect, alpha }) {
  if (!effect.with) return null;
  if (!effect.changed) {
    return element("p", {}, "The length penalty changed nothing: the best output is also the most probable one.");
  }
  return element("p", {},
    `Without the length penalty “${effect.without.text}” (${effect.without.length} subwords, log-probability ${fixed(effect.without.log_probability, 3)}) would be best; `,
    `with α = ${alpha} it is “${effect.with.text}” (${effect.with.length} subwords, ${fixed(effect.with.log_probability, 3)}).`);
}

function pager(first, last, title, addressOf) {
  const link = (step, text) =>
    step < 0 || step > last ? element("span", { class: "off" }, text) : element("a", { href: addressOf({ step: String(step) }) }, text);
  return element("nav", { class: "pager", "aria-label": "Steps" },
    link(first - STEPS, "← earlier"), element("span", {}, title), link(first + STEPS, "later →"));
}

function draw(steps, columns, byNumber, first, title) {
  const rows = Math.max(...steps.map((step) => columns.get(step).length));
  const width = COLUMN * steps.length + 8;
  const height = TOP + ROW * rows + 6;
  const place = new Map();
  steps.forEach((step, column) => columns.get(step).forEach((each, row) => {
    place.set(each.number, { x: 4 + column * COLUMN, y: TOP + row * ROW });
  }));
  const edges = [];
  const boxes = [];
  for (const [number, { x, y }] of place) {
    const each = byNumber.get(number);
    const from = place.get(each.parent);
    if (from) {
      const start = from.x + BOX.width;
      const middle = (start + x) / 2;
      const [y1, y2] = [from.y + BOX.height / 2, y + BOX.height / 2];
      edges.push(svg("path", {
        class: `edge ${classOf(each)}`, fill: "none",
        d: `M${start} ${y1} C${middle} ${y1} ${middle} ${y2} ${x} ${y2}`,
      }));
    }
    const score = each.fate === "lives" || each.fate === "fell out" ? each.log_probability : each.score;
    boxes.push(svg("g", { class: `extension ${classOf(each)}`, transform: `translate(${x} ${y})` },
      svg("title", {}, `${each.text}: log-probability ${fixed(each.log_probability, 3)}, score ${fixed(each.score, 3)}; ${FATES[each.fate]}`),
      svg("rect", { ...BOX, rx: each.fate === "finished" || each.fate === "pushed out" ? 14 : 3 }),
      svg("text", { x: 7, y: 18, "font-size": 12 }, clipped(shown(each.token), 8)),
      svg("text", { x: BOX.width - 6, y: 18, "font-size": 10, "text-anchor": "end" }, fixed(score, 1))));
  }
  const heads = steps.map((step, column) =>
    svg("text", { x: 4 + column * COLUMN, y: 16, "font-size": 11, fill: "currentColor" }, `step ${step + 1}`));
  return svg("svg", { class: "search", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${title}; the table below has the same` },
    heads, edges, boxes);
}

function classOf(each) {
  return `${each.fate.replaceAll(" ", "-")}${each.is_best ? " is-best" : ""}`;
}

function clipped(text, length) {
  const characters = [...text];
  return characters.length > length ? `${characters.slice(0, length - 1).join("")}…` : text;
}

function key() {
  return element("ul", { class: "legend", "aria-label": "Outcomes of an extension" },
    element("li", { class: "fate is-best" }, "part of the best output"),
    Object.entries(FATES).map(([fate, text]) => element("li", { class: `fate ${fate.replaceAll(" ", "-")}` }, text)));
}
