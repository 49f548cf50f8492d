// A matrix of weights: queries down, keys across, darker the larger, with values where they fit.
import { element, svg } from "./dom.js";
import { isMark, shown } from "./tokens.js";
import { darkness, paint, textOn } from "./weights.js";

const MOST_CELLS = 2500; // that are elements of their own; more are one picture

/** Return the drawing of weight(query, key) in some inks; tell(text) is called for the cell pointed at or tapped. */
export function matrix({ weight, queries, keys, title, tell, inks }) {
  const longest = (tokens) => Math.min(Math.max(...tokens.map((token) => [...shown(token)].length)), 24);
  const left = 12 + 8 * longest(queries);
  const room = (Math.min(innerWidth, 1280) - 40 - left - 3.1 * longest(keys)) / keys.length; // of a column
  const withValues = room >= 30;
  const cell = Math.max(Math.min(room, 34), 16);
  const row = withValues ? 24 : Math.max(cell, 16);
  const top = 16 + 6.2 * longest(keys);
  const width = left + cell * keys.length + 6.2 * longest(keys) * 0.5 + 8;
  const height = top + row * queries.length + 4;
  const [red, green, blue] = inks.heat;
  const drawing = svg(
    "svg",
    {
      class: "matrix", viewBox: `0 0 ${width} ${height}`, width, height, "font-size": 13, role: "img",
      "aria-label": `${title}; the table below has its values`,
    },
    svg("title", {}, title),
  );
  if (queries.length * keys.length > MOST_CELLS) {
    const canvas = element("canvas");
    paint(canvas, weight, queries.length, keys.length, inks);
    drawing.append(
      svg("image", {
        x: left, y: top, width: cell * keys.length, height: row * queries.length,
        href: canvas.toDataURL(), preserveAspectRatio: "none", "image-rendering": "pixelated",
      }),
    );
  } else {
    queries.forEach((_, query) => {
      keys.forEach((_, key) => {
        const value = weight(query, key);
        const place = { x: left + cell * key, y: top + row * query };
        drawing.append(
          svg("rect", {
            ...place, width: cell - 1, height: row - 1,
            fill: `rgb(${red}, ${green}, ${blue})`, "fill-opacity": Math.max(darkness(value), 0.03).toFixed(3),
          }),
        );
        if (withValues && value >= 0.005) {
          drawing.append(
            svg("text", {
              x: place.x + (cell - 1) / 2, y: place.y + row / 2 + 3.5, "text-anchor": "middle",
              "font-size": 10.5, fill: textOn(value, inks),
            }, value.toFixed(2).replace(/^0/, "")),
          );
        }
      });
    });
  }
  queries.forEach((token, query) => {
    drawing.append(
      svg("text", {
        x: left - 6, y: top + row * (query + 0.5) + 4, "text-anchor": "end", fill: "currentColor",
        "font-style": isMark(token) ? "italic" : null,
      }, shown(token)),
    );
  });
  keys.forEach((token, key) => {
    const x = left + cell * (key + 0.5);
    drawing.append(
      svg("text", {
        x, y: top - 6, transform: `rotate(-55 ${x} ${top - 6})`, fill: "currentColor",
        "font-style": isMark(token) ? "italic" : null,
      }, shown(token)),
    );
  });
  const point = (event) => {
    const box = drawing.getBoundingClientRect();
    const scale = width / box.width;
    const key = Math.floor(((event.clientX - box.left) * scale - left) / cell);
    const query = Math.floor(((event.clientY - box.top) * scale - top) / row);
    const inside = key >= 0 && key < keys.length && query >= 0 && query < queries.length;
    tell(inside ? `${shown(queries[query])} → ${shown(keys[key])}: ${weight(query, key).toFixed(4)}` : "");
  };
  for (const name of ["pointermove", "pointerdown"]) drawing.addEventListener(name, point);
  return drawing;
}
