// Where the data come from: the server, or this file itself where it was saved with data in it.
import { Weights } from "./weights.js";

async function ask(path, body) {
  const options = body && {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  };
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error("The server does not answer. Is t2t-lite-explore still running?");
  }
  if (response.ok) return response;
  const text = await response.text();
  try {
    throw new Error(JSON.parse(text).error);
  } catch (error) {
    throw error instanceof SyntaxError ? new Error(`${response.status}: ${text}`) : error;
  }
}

/** The server's answers. Weights of the text shown last are kept. */
class Server {
  isSaved = false;
  #weights = new Map();
  #weightsOf = "";

  async about() {
    return (await ask("/api/about")).json();
  }

  async translation(text, target) {
    return (await ask("/api/translation", { text, target })).json();
  }

  async search(text) {
    return (await ask("/api/search", { text })).json();
  }

  async page(text, target) {
    return (await ask("/api/save", { text, target })).text();
  }

  /** Return a promise of one layer's weights. */
  weights(text, target, kind, layer, shape) {
    const of = JSON.stringify([text, target]);
    if (of !== this.#weightsOf) this.#weights.clear();
    this.#weightsOf = of;
    const key = `${kind} ${layer}`;
    if (!this.#weights.has(key)) {
      const answer = ask("/api/attention", { text, target, kind, layer })
        .then((response) => response.arrayBuffer())
        .then((buffer) => new Weights(new DataView(buffer), ...shape));
      answer.catch(() => this.#weights.delete(key));
      this.#weights.set(key, answer);
    }
    return this.#weights.get(key);
  }
}

/** The data of a saved page, for its own texts alone. */
class Saved {
  isSaved = true;

  constructor(data) {
    this.data = data;
  }

  async about() {
    return this.data.about;
  }

  #of(text) {
    const found = this.data.texts.find((each) => each.text === text);
    if (!found) throw new Error("This page was saved with other texts: choose one of them.");
    return found;
  }

  async translation(text) {
    return this.#of(text).translation;
  }

  async search(text) {
    return this.#of(text).search;
  }

  async weights(text, target, kind, layer, shape) {
    const bytes = Uint8Array.from(atob(this.#of(text).attention[kind][layer]), (c) => c.charCodeAt(0));
    return new Weights(new DataView(bytes.buffer), ...shape);
  }
}

/** Return the page's source of data. */
export function openSource() {
  const data = document.getElementById("data");
  return data ? new Saved(JSON.parse(data.textContent)) : new Server();
}
