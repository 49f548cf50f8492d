// The wall: a thumbnail of every head of every layer, drawn as it comes into sight.
import { element } from "./dom.js";
import { paint } from "./weights.js";

/**
 * Return the wall of one kind of attention.
 *
 * layers, heads: numbers; queries, keys: tokens; load(layer): promise of Weights;
 * address(layer, head): where a thumbnail leads.
 */
export function wall({ kind, layers, heads, queries, keys, load, address }) {
  const observer = new IntersectionObserver(
    (entries) => {
      for (const entry of entries.filter((each) => each.isIntersecting)) {
        observer.unobserve(entry.target);
        draw(entry.target);
      }
    },
    { rootMargin: "200px" },
  );

  async function draw(canvas) {
    const weights = await load(Number(canvas.dataset.layer));
    paint(canvas, weights.over([Number(canvas.dataset.head)]), queries.length, keys.length);
    canvas.classList.add("drawn");
  }

  function thumbnail(layer, head) {
    const canvas = element("canvas", {
      width: keys.length,
      height: queries.length,
      "data-layer": layer,
      "data-head": head,
    });
    observer.observe(canvas);
    return element(
      "a",
      { class: "thumbnail", href: address(layer, head), "aria-label": `${kind}, layer ${layer + 1}, head ${head + 1}` },
      canvas,
      element("span", { "aria-hidden": "true" }, `${head + 1}`),
    );
  }

  const rows = Array.from({ length: layers }, (_, layer) =>
    element(
      "section",
      { class: "layer" },
      element("h3", {}, `Layer ${layer + 1}`),
      element("div", { class: "thumbnails" }, Array.from({ length: heads }, (_, head) => thumbnail(layer, head))),
    ),
  );
  return element("div", { class: "wall" }, rows);
}
