// The check of nginx.conf: a request is texts for a signature of t2t-lite, and at least one.
//
// What is sent on is written anew, so that TensorFlow Serving reads what was checked here: of two
// keys of one name it takes the first, where JSON.parse takes the last.

const MAX_ROWS = 1024;  // max_batch_size in batching_params.pbtxt
const COLUMNS = ["inputs", "targets", "ids"];

const isObject = value => value !== null && typeof value === "object" && !Array.isArray(value);
const isText = value => typeof value === "string" ||
  isObject(value) && Object.keys(value).join() === "b64" && typeof value.b64 === "string";
const isRows = (values, isRow) => Array.isArray(values) &&
  values.length > 0 && values.length <= MAX_ROWS && values.every(isRow);
const isColumns = (value, isColumn) => isObject(value) && Object.keys(value).length > 0 &&
  Object.keys(value).every(name => COLUMNS.includes(name) && isColumn(value[name]));

function isHarmless(request) {
  if (!isObject(request)) return false;
  const keys = Object.keys(request).sort().join();
  if (typeof (request.signature_name || "") !== "string") return false;
  if (keys === "instances" || keys === "instances,signature_name") {
    return isRows(request.instances, isText) ||
      isRows(request.instances, row => isColumns(row, isText));
  }
  if (keys === "inputs" || keys === "inputs,signature_name") {
    return isRows(request.inputs, isText) ||
      isColumns(request.inputs, column => isRows(column, isText));
  }
  return false;
}

function check(r) {
  let request;
  try {
    request = JSON.parse(r.requestText);
  } catch (error) {
    request = null;
  }
  if (!isHarmless(request)) {
    const error = `expected JSON with "instances" or "inputs": 1 to ${MAX_ROWS} texts`;
    r.headersOut["Content-Type"] = "application/json";
    r.return(400, JSON.stringify({error}));
    return;
  }
  r.variables.checked = JSON.stringify(request);
  r.internalRedirect("@serving");
}

export default {check};
