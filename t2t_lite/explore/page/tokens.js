// Subwords as a reader sees them.
import { element, fixed } from "./dom.js";

/** Return a subword with its space as a middle dot: "▁dog" -> "·dog". */
export function shown(piece) {
  return piece.replaceAll("▁", "·");
}

/** Tell whether it is a special token: the start, the end, padding. */
export function isMark(piece) {
  return piece.startsWith("⟨");
}

/** Return the class of a probability, one of five. */
export function shade(probability) {
  const limits = [0.1, 0.3, 0.6, 0.9];
  return `p${limits.filter((limit) => probability >= limit).length}`;
}

/** Return a list of subwords; with log-probabilities each has its probability under it. */
export function pieceList(label, pieces, scores = null, attributes = () => ({})) {
  return element(
    "ol",
    { class: "pieces", "aria-label": label },
    pieces.map((piece, place) => {
      const kind = isMark(piece) ? "piece mark" : "piece";
      if (!scores) return element("li", { class: kind, ...attributes(place) }, shown(piece));
      const probability = Math.exp(scores[place]);
      return element(
        "li",
        { class: `${kind} ${shade(probability)}`, ...attributes(place) },
        element("span", {}, shown(piece)),
        element("small", { title: `log-probability ${fixed(scores[place], 3)}` }, fixed(probability, 2)),
      );
    }),
  );
}
