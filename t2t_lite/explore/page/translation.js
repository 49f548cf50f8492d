// The outputs of a text: n-best, the best one's subwords with their probabilities, the reference.
import { element, fixed, table } from "./dom.js";
import { pieceList, shown } from "./tokens.js";

/** Return the view of a translation; about is of the model. */
export function translationView({ translation, about }) {
  if (translation.is_blank) return [element("p", {}, "A blank text has a blank translation.")];
  const best = translation.given ?? translation.hypotheses[0];
  return [
    element("section", {}, element("h2", {}, translation.given ? "The given output" : "Best output"),
      element("p", { class: "best", lang: "" }, best.text || "(blank)"),
      element("p", { class: "facts" }, facts(translation, best, about)),
      remarks(translation, best, about)),
    about.has_tokens ? tokens(translation, best) : null,
    element("section", {}, element("h2", {}, "All outputs"),
      table(
        `The ${translation.hypotheses.length} best of beam size ${about.options.beam_size}`,
        ["Rank", "Output", "Score", ...(about.has_tokens ? ["Log-probability", "Subwords"] : []), "Complete"],
        translation.hypotheses.map((each, rank) => [
          String(rank + 1),
          element("span", { lang: "" }, each.text || "(blank)"),
          fixed(each.score, 4),
          ...(about.has_tokens ? [fixed(sum(each.token_scores), 3), String(each.tokens.length)] : []),
          each.finished ? "yes" : "cut off",
        ]),
        { class: "words outputs" },
      ),
      element("p", { class: "note" },
        `Score: log-probability over the length penalty ${about.options.length_penalty === "power" ? "n" : "((5 + n) / 6)"}^${about.options.alpha}, n subwords, ⟨end⟩ included.`),
      about.missing ? element("p", { class: "note" }, about.missing) : null),
  ];
}

function facts(translation, best, about) {
  const parts = [`score ${fixed(best.score, 4)}`, `${(translation.seconds * 1000).toFixed(0)} ms`];
  if (translation.parse?.figures?.f1 !== undefined) parts.push(`F1 ${fixed(translation.parse.figures.f1, 1)}`);
  if (translation.chrf !== null) parts.push(`chrF2 ${fixed(translation.chrf, 1)}`);
  if (best.repairs) parts.push(`${best.repairs} repairs to make it a tree`);
  if (about.num_models > 1) parts.push(`mean probability of ${about.num_models} models`);
  return parts.join(" · ");
}

function remarks(translation, best, about) {
  const found = [];
  if (translation.truncated) {
    found.push(`The text was cut: the model reads ${about.max_source_length} subwords.`);
  }
  if (!best.finished) found.push("The output was cut off at its length limit.");
  return [
    found.map((text) => element("p", { class: "warning" }, text)),
    translation.reference === null
      ? null
      : element("p", { class: "reference" }, element("b", {}, "Reference: "), element("span", { lang: "" }, translation.reference)),
  ];
}

/** The subwords of both sides; pointing at one of the output marks what it attended to most. */
function tokens(translation, best) {
  const source = pieceList("Subwords of the source", translation.source);
  const mark = (place) => {
    [...source.children].forEach((piece, key) => {
      piece.classList.toggle("aligned", place !== null && best.alignment[place] === key);
    });
  };
  const target = pieceList("Subwords of the output with their probabilities", best.tokens, best.token_scores, (place) => ({
    tabindex: 0,
    "aria-description": `probability ${Math.exp(best.token_scores[place]).toFixed(2)}, attends most to ${shown(translation.source[best.alignment[place]])}`,
    onmouseenter: () => mark(place), onmouseleave: () => mark(null),
    onfocus: () => mark(place), onblur: () => mark(null),
  }));
  return element("section", {}, element("h2", {}, "Subwords"),
    element("h3", {}, `Source, ${translation.source.length}`), source,
    element("h3", {}, `Output, ${best.tokens.length}, with the probability of each after those before it`), target,
    element("p", { class: "note" },
      "Point at a subword of the output, or tap it: the one of the source that it attended to most is marked. · is a space."),
    legend());
}

function legend() {
  const names = ["below 0.1", "0.1", "0.3", "0.6", "0.9 and above"];
  return element("ul", { class: "legend", "aria-label": "Colours of probabilities" },
    names.map((name, place) => element("li", { class: `piece p${place}` }, name)));
}

function sum(numbers) {
  return numbers.reduce((total, each) => total + each, 0);
}
