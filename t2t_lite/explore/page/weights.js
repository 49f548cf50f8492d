// Attention weights of one layer: [head, query, key], two bytes each.

const SCALE = 65535;

export class Weights {
  constructor(view, heads, queries, keys) {
    this.view = view;
    this.heads = heads;
    this.queries = queries;
    this.keys = keys;
  }

  /** Return the weight that a head's query gives to a key. */
  at(head, query, key) {
    return this.view.getUint16(2 * ((head * this.queries + query) * this.keys + key), true) / SCALE;
  }

  /** Return a function (query, key) -> weight: the mean of heads, or the largest. */
  over(heads, how = "mean") {
    if (heads.length === 1) return (query, key) => this.at(heads[0], query, key);
    if (how === "maximum") {
      return (query, key) => Math.max(...heads.map((head) => this.at(head, query, key)));
    }
    return (query, key) =>
      heads.reduce((sum, head) => sum + this.at(head, query, key), 0) / heads.length;
  }
}

/** Return the share of all weight that goes to some keys. */
export function shareOf(weight, queries, keys) {
  let sum = 0;
  for (let query = 0; query < queries; query++) {
    for (const key of keys) sum += weight(query, key);
  }
  return sum / queries;
}

/** Paint weights, a pixel each, the more of the heat's colour the larger. */
export function paint(canvas, weight, queries, keys, { heat } = pageInks()) {
  canvas.width = keys;
  canvas.height = queries;
  const context = canvas.getContext("2d");
  const image = context.createImageData(keys, queries);
  const [red, green, blue] = heat;
  for (let query = 0, place = 0; query < queries; query++) {
    for (let key = 0; key < keys; key++, place += 4) {
      image.data[place] = red;
      image.data[place + 1] = green;
      image.data[place + 2] = blue;
      image.data[place + 3] = 255 * darkness(weight(query, key));
    }
  }
  context.putImageData(image, 0, 0);
}

/** Return how dark a weight is drawn, from 0 to 1: its root, so that small ones can be seen. */
export function darkness(weight) {
  return Math.sqrt(weight);
}

/** The colours, [red, green, blue], of a weight of 1 and of one of 0: on paper. */
export const PAPER = { heat: [11, 79, 158], ground: [255, 255, 255] };

/** Return the same of the page, which may be dark. */
export function pageInks() {
  const style = getComputedStyle(document.documentElement);
  const color = (name) => {
    const text = style.getPropertyValue(name).trim();
    return [1, 3, 5].map((place) => parseInt(text.slice(place, place + 2), 16));
  };
  return { heat: color("--heat"), ground: color("--ground") };
}

/** Return black or white, whichever is read better on a weight's cell: at least 4.5 to 1. */
export function textOn(weight, { heat, ground }) {
  const share = darkness(weight);
  const linear = heat.map((value, i) => {
    const mixed = (share * value + (1 - share) * ground[i]) / 255;
    return mixed <= 0.04045 ? mixed / 12.92 : ((mixed + 0.055) / 1.055) ** 2.4;
  });
  const luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  // (l + 0.05) / 0.05 = 1.05 / (l + 0.05) where both are read as well
  return luminance > Math.sqrt(0.05 * 1.05) - 0.05 ? "#000" : "#fff";
}
