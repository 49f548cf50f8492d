// The page: what the address asks for is shown, and whatever is chosen changes the address.
import { attentionView } from "./attention.js";
import { download, element } from "./dom.js";
import { parseView } from "./parse.js";
import { searchView } from "./search.js";
import { openSource } from "./source.js";
import { translationView } from "./translation.js";

const VIEWS = { translation: "Translation", attention: "Attention", search: "Search", parse: "Parse" };
const source = openSource();
const part = (id) => document.getElementById(id);
let about;
let turn = 0; // answers to earlier questions are not shown

/** Return the address's state: {view, text, target, kind, layer, ...}; at first an example's. */
function readState() {
  return { text: about.examples[0], ...Object.fromEntries(new URLSearchParams(location.hash.slice(1))) };
}

/** Return the address of the state with changes; null removes a part. */
function addressOf(changes) {
  const state = { ...readState(), ...changes };
  const kept = Object.entries(state).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return `#${new URLSearchParams(kept)}`;
}

function change(changes) {
  location.hash = addressOf(changes);
}

function availableViews() {
  if (about.only) return [about.only];
  return Object.keys(VIEWS).filter((view) =>
    (view !== "parse" || about.is_parser) && (view !== "attention" || about.has_tokens) && (view !== "search" || about.has_search));
}

async function show() {
  const own = ++turn;
  const state = readState();
  const views = availableViews();
  const view = views.includes(state.view) ? state.view : views[0];
  fillForm(state);
  drawViews(views, view);
  document.title = `${VIEWS[view]} · t2t-lite`;
  const status = part("status");
  status.classList.remove("error");
  const waiting = setTimeout(() => { status.textContent = "Working …"; }, 150);
  try {
    const content = await contentOf(view, state);
    if (own !== turn) return;
    status.textContent = "";
    const focused = document.activeElement?.closest("#view") ? pathOf(document.activeElement) : null;
    part("view").replaceChildren(...[content].flat(2).filter(Boolean));
    part("view").dataset.view = view;
    if (focused) restore(focused);
  } catch (error) {
    if (own !== turn) return;
    status.textContent = error.message;
    status.classList.add("error");
    part("view").replaceChildren();
  } finally {
    clearTimeout(waiting);
    if (own === turn) part("view").dataset.ready = String(own);
  }
}

async function contentOf(view, state) {
  const target = state.target ?? null;
  const translation = await source.translation(state.text, target);
  const given = { translation, about, source, state, change, addressOf };
  if (view === "attention") return attentionView(given);
  if (view === "parse") return parseView(given);
  if (view === "search") {
    return translation.is_blank ? element("p", {}, "A blank text is not searched for.") : searchView({ ...given, search: await source.search(state.text) });
  }
  return translationView(given);
}

/** Controls are drawn anew with every change: focus goes to the one in the same place. */
function pathOf(node) {
  const all = [...part("view").querySelectorAll("a, button, input, select, summary, [tabindex]")];
  return all.indexOf(node);
}

function restore(place) {
  part("view").querySelectorAll("a, button, input, select, summary, [tabindex]")[place]?.focus({ preventScroll: true });
}

function drawViews(views, current) {
  part("views").replaceChildren(
    ...views.map((view) =>
      element("li", {}, element("a", { href: addressOf({ view }), "aria-current": view === current ? "page" : null }, VIEWS[view]))),
  );
  part("views").parentElement.hidden = views.length < 2;
}

function fillForm(state) {
  if (document.activeElement !== part("text")) part("text").value = state.text;
  part("target").value = state.target ?? "";
  if (state.target) part("target-field").open = true;
  part("examples").value = about.examples.includes(state.text) ? state.text : "";
}

function prepareForm() {
  const choose = [element("option", { value: "" }, "—"), ...about.examples.map((text) => element("option", { value: text }, text.length > 90 ? `${text.slice(0, 89)}…` : text))];
  part("examples").replaceChildren(...choose);
  part("examples-field").hidden = about.examples.length < 2;
  part("examples").addEventListener("change", (event) => {
    if (event.target.value) change({ text: event.target.value, target: null, step: null, query: null });
  });
  part("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    part("text").blur();
    change({ text: part("text").value, target: part("target").value || null, step: null, query: null });
  });
  for (const id of ["text", "target"]) {
    part(id).addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey) {
        event.preventDefault();
        part("ask").requestSubmit();
      }
    });
  }
  part("save").addEventListener("click", async () => {
    try {
      const { text, target } = readState();
      download("t2t-lite.html", await source.page(text, target ?? null), "text/html");
    } catch (error) {
      part("status").textContent = error.message;
    }
  });
  if (source.isSaved) {
    part("save").hidden = true;
    part("target-field").hidden = true;
    part("text").readOnly = true;
    document.querySelector("label[for=examples]").textContent = "Texts of this page";
    document.querySelector("#ask [type=submit]").hidden = true;
    part("ask").hidden = Boolean(about.only);
    document.querySelector("header").hidden = Boolean(about.only);
  }
}

async function start() {
  try {
    about = await source.about();
  } catch (error) {
    part("status").textContent = error.message;
    part("status").classList.add("error");
    return;
  }
  part("model-name").textContent = about.name;
  prepareForm();
  addEventListener("hashchange", show);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  await show();
}

start();
