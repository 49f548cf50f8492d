// The lines of the paper's Figures 3 to 5: queries left, keys right, a line as wide as its weight.
import { svg } from "./dom.js";
import { isMark, shown } from "./tokens.js";

const ROW = 26; // pixels a subword
const TOP = 24;
const SMALLEST = 0.03; // thinner lines are not drawn
// Okabe and Ito's colours, told apart by colour-blind readers too, and readable on white and black.
export const COLORS = [
  "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#a67c00", "#3f8fc4", "#8c6bb1", "#737373",
];

/**
 * Return the drawing.
 *
 * weights: of the layer; heads: those drawn, each in its colour; queries, keys: tokens;
 * chosen: the query whose lines alone are drawn, null for all; choose(query): called on a click.
 */
export function lines({ weights, heads, queries, keys, chosen, choose, title }) {
  const widest = (tokens) => Math.max(...tokens.map((token) => [...shown(token)].length));
  const left = Math.min(12 + 8.4 * widest(queries), 260);
  const end = Math.min(12 + 8.4 * widest(keys), 260);
  const right = left + Math.max(Math.min(innerWidth - 32 - left - end, 240), 90); // fits a telephone
  const width = right + end;
  const height = TOP + ROW * Math.max(queries.length, keys.length) + 8;
  const middle = (place) => TOP + ROW * (place + 0.5);
  const links = svg("g", { "stroke-linecap": "round" });
  const drawing = svg(
    "svg",
    {
      class: "lines", viewBox: `0 0 ${width} ${height}`, width, height, "font-size": 14,
      role: "group", "aria-label": title,
    },
    svg("title", {}, title),
    svg("text", { x: left - 8, y: 14, "text-anchor": "end", fill: "currentColor", "font-size": 11 }, "queries"),
    svg("text", { x: right + 8, y: 14, fill: "currentColor", "font-size": 11 }, "keys"),
    links,
  );

  function draw(only) {
    const drawn = [];
    // Lines of one query alone are drawn against its own strongest: many heads look everywhere.
    const strongest = only === null ? 1 : Math.max(...heads.flatMap((head) => keys.map((_, key) => weights.at(head, only, key))));
    queries.forEach((_, query) => {
      if (only !== null && query !== only) return;
      heads.forEach((head) => {
        for (let key = 0; key < keys.length; key++) {
          const weight = weights.at(head, query, key);
          if (weight < SMALLEST) continue;
          // Several heads lie beside each other where they meet.
          const shift = (heads.indexOf(head) - (heads.length - 1) / 2) * 1.5;
          drawn.push(
            svg("line", {
              x1: left, y1: middle(query) + shift, x2: right, y2: middle(key) + shift,
              stroke: COLORS[head % COLORS.length], "stroke-width": Math.max(5 * weight, 0.4).toFixed(2),
              "stroke-opacity": Math.min(0.04 + 1.2 * weight / strongest, 1).toFixed(2),
            }),
          );
        }
      });
    });
    links.replaceChildren(...drawn);
    keyTexts.forEach((text, key) => {
      const weight = only === null ? 0 : Math.max(...heads.map((head) => weights.at(head, only, key)));
      text.setAttribute("font-weight", weight >= 0.1 ? "bold" : "normal");
    });
  }

  function word(token, place, side) {
    return svg(
      "text",
      {
        x: side === "left" ? left - 8 : right + 8, y: middle(place) + 5,
        "text-anchor": side === "left" ? "end" : "start", fill: "currentColor",
        "font-style": isMark(token) ? "italic" : null,
      },
      shown(token),
    );
  }

  const keyTexts = keys.map((token, place) => word(token, place, "right"));
  const words = queries.map((token, query) => {
    const text = word(token, query, "left");
    const label = keys
      .map((key, place) => [Math.max(...heads.map((head) => weights.at(head, query, place))), key])
      .sort((one, other) => other[0] - one[0])
      .slice(0, 3)
      .map(([weight, key]) => `${shown(key)} ${weight.toFixed(2)}`)
      .join(", ");
    return svg(
      "g",
      {
        class: query === chosen ? "query chosen" : "query", tabindex: 0, role: "button",
        "aria-pressed": String(query === chosen), "aria-label": `${shown(token)}: ${label}`,
        onmouseenter: () => draw(query), onmouseleave: () => draw(chosen),
        onfocus: () => draw(query), onblur: () => draw(chosen),
        onclick: () => choose(query === chosen ? null : query),
        onkeydown: (event) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          choose(query === chosen ? null : query);
        },
      },
      svg("rect", { x: 0, y: middle(query) - ROW / 2, width: left, height: ROW, fill: "transparent" }),
      text,
    );
  });
  drawing.append(...words, ...keyTexts);
  draw(chosen);
  return drawing;
}
