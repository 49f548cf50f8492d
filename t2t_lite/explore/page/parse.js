// A parser's tree, the gold one beside it where there is one, errors marked.
import { element, fixed, scrolling, svg, table, unfolding } from "./dom.js";

const LEVEL = 44;
const MARKS = { wrong: "✗", missed: "✗" };

/** Return the view of a parse. */
export function parseView({ translation }) {
  const { parse } = translation;
  if (!parse?.predicted) return [element("p", {}, "There is no tree of this text.")];
  const parts = [figures(parse)];
  parts.push(part("The model's tree", parse.predicted, "wrong"));
  if (parse.gold) parts.push(part("The gold tree", parse.gold, "missed"));
  return parts;
}

function figures({ figures: found }) {
  if (!found) return element("p", { class: "facts" }, "There is no gold tree of this text.");
  if (found.problem) return element("p", { class: "warning" }, `Not compared: ${found.problem}.`);
  return element("p", { class: "facts" },
    `F1 ${fixed(found.f1, 1)} · recall ${fixed(found.recall, 1)} (${found.matched} of ${found.gold} gold phrases) · precision ${fixed(found.precision, 1)} (${found.matched} of ${found.predicted})`);
}

function part(title, tree, error) {
  const phrases = [];
  collect(tree, phrases);
  const errors = phrases.filter((each) => each.status === error).length;
  const heading = errors ? `${title}: ${errors} ${error} ${errors === 1 ? "phrase" : "phrases"}, marked ✗` : title;
  return element("section", {}, element("h2", {}, heading),
    scrolling(title, draw(tree, title)),
    unfolding("As a table", () =>
      table(`${title}: its phrases`, ["Label", "Words", "Status"],
        phrases.map((each) => [each.label, each.words.join(" "), each.status]), { class: "words" })));
}

/** Add (label, status, words) of each phrase in the order of opening; return the words. */
function collect(tree, phrases) {
  if (tree.word !== undefined) return [tree.word];
  const phrase = { label: tree.label, status: tree.status, words: [] };
  phrases.push(phrase);
  phrase.words = tree.children.flatMap((child) => collect(child, phrases));
  return phrase.words;
}

function draw(tree, title) {
  const links = [];
  const labels = [];
  let right = 8;
  let bottom = 0;

  function place(node, depth) {
    const y = 20 + depth * LEVEL;
    bottom = Math.max(bottom, y);
    if (node.word !== undefined) {
      const width = 9 * Math.max([...node.word].length, [...node.label].length, 2) + 12;
      const x = right + width / 2;
      right += width;
      labels.push(svg("text", { x, y, class: "tag" }, node.label));
      labels.push(svg("text", { x, y: y + 20, class: "word" }, node.word));
      bottom = Math.max(bottom, y + 20);
      return x;
    }
    const xs = node.children.map((child) => place(child, depth + 1));
    const x = (xs[0] + xs.at(-1)) / 2;
    node.children.forEach((child, index) => {
      links.push(svg("line", { x1: x, y1: y + 5, x2: xs[index], y2: y + LEVEL - 15, class: child.status ?? "" }));
    });
    labels.push(svg("text", { x, y, class: `phrase ${node.status}` }, `${node.label}${MARKS[node.status] ? ` ${MARKS[node.status]}` : ""}`));
    return x;
  }

  place(tree, 0);
  return svg("svg", { class: "tree", viewBox: `0 0 ${right + 8} ${bottom + 12}`, width: right + 8, height: bottom + 12, role: "img", "aria-label": `${title}; the table below has its phrases`, "text-anchor": "middle" }, links, labels);
}
