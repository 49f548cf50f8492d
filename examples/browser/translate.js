// Translates with an export of t2t-lite-exporter --format=litert, as t2t_lite_runtime does.

import { loadAndCompile, loadLiteRt, Tensor } from "@litertjs/core";
import { SentencePieceProcessor } from "@sctg/sentencepiece-js";

const EOS = 1, UNK = 2;
const UINT8 = 3, BOOL = 6; // LiteRT's numbers of element types

/** Load a version's folder; return the function that translates one text. */
export async function load(folder) {
  const record = new TextDecoder().decode(await read(`${folder}/manifest.json`));
  const { label, options, vocabularies } = JSON.parse(record);
  const source = await vocabulary(folder, vocabularies.source, label);
  const target = vocabularies.target ? await vocabulary(folder, vocabularies.target) : source;
  const search = await searcher(await read(`${folder}/model.tflite`));
  return async (text) => {
    if (!text.trim()) return "";
    const ids = source.encode(text).slice(0, options.max_source_length - 1);
    return target.decode((await search([...ids, EOS])).filter((id) => id > EOS));
  };
}

async function read(address) {
  const response = await fetch(address, { cache: "no-cache" }); // "model" may have been replaced
  if (!response.ok) throw new Error(`No ${address} (${response.status}): copy an export's folder 1 to "model".`);
  return new Uint8Array(await response.arrayBuffer());
}

async function vocabulary(folder, { model, pieces }, label) {
  const spm = new SentencePieceProcessor();
  await spm._loadModel(await read(`${folder}/${model}`));
  if (!pieces) return { encode: (text) => spm.encodeIds(text), decode: (ids) => spm.decodeIds(ids) };
  // An imported model has numbers of its own, and perhaps labels of target languages, >>deu<<.
  const numbers = new Map(pieces.map((piece, id) => [piece, id]));
  return {
    encode(text) {
      const given = text.match(/^>>[^<> ]+<</)?.[0];
      const rest = numbers.has(given) ? text.slice(given.length) : text;
      const first = [given, label].filter((piece) => numbers.has(piece)).slice(0, 1);
      return [...first, ...spm.encodePieces(rest)].map((piece) => numbers.get(piece) ?? UNK);
    },
    decode: (ids) => Array.from(ids, (id) => pieces[id]).join("").replaceAll("▁", " ").replace(/^ /, ""),
  };
}

/** Return the function from a source's ids to the best output's. */
async function searcher(bytes) {
  const { liteRtWasm } = await loadLiteRt("node_modules/@litertjs/core/wasm/");
  // LiteRT.js refuses bool tensors: it is told that they are uint8, which has the same bytes.
  const { prototype } = liteRtWasm.LiteRtRankedTensorType;
  const { elementType } = prototype;
  prototype.elementType = function () {
    const type = elementType.call(this);
    return type.value === BOOL ? { value: UINT8 } : type;
  };
  const model = await loadAndCompile(bytes, { accelerator: "wasm" });
  const sizes = Object.keys(model.signatures) // search_S_T: sources of S tokens, room for T
    .map((name) => [name, ...name.split("_").slice(1).map(Number)])
    .sort((one, other) => one[1] - other[1] || one[2] - other[2]);
  return async (ids) => {
    const length = sizes.map((size) => size[1]).find((length) => length >= ids.length);
    const padded = Int32Array.from({ length }, (_, i) => ids[i] ?? 0);
    const inputs = { ids: new Tensor(padded, [1, length]), num_wanted: new Tensor(Int32Array.of(1), []) };
    let found;
    for (const [name] of sizes.filter((size) => size[1] === length)) {
      found = take(await model.run(name, inputs));
      if (found.done[0]) break; // the room was enough
    }
    take(inputs);
    return found.ids.slice(0, found.lengths[0]);
  };
}

/** Return tensors' values, and free the tensors. */
function take(tensors) {
  return Object.fromEntries(Object.entries(tensors).map(([name, tensor]) => {
    const values = tensor.toTypedArray();
    tensor.delete();
    return [name, values];
  }));
}
