#!/usr/bin/env bash
# Serve exports with TensorFlow Serving: gRPC on port 8500, REST on port 8501.
#
#   scripts/serve.sh EXPORT_DIR NAME           e.g. scripts/serve.sh export ende
#   scripts/serve.sh NAME=EXPORT_DIR ...       several models, e.g. ende=export enfr=export_enfr
#   scripts/serve.sh --print EXPORT_DIR NAME   only say what would run
#   scripts/serve.sh --labels "stable=1 canary=2" EXPORT_DIR NAME
#
# Takes $TF_SERVING_BINARY, or tensorflow_model_server from the PATH, or Docker with the image
# $TF_SERVING_IMAGE (tensorflow/serving:2.20.0). With --labels it keeps the named versions loaded, and
# a client asks for one by --version_label; otherwise the newest version serves, and a newer one takes
# its place as soon as it is exported. $GRPC_PORT and $REST_PORT are other ports. On a CPU each
# operation has one thread, so that requests share the cores; $INTRA_OP_THREADS gives it more (0: all
# cores), which a lone request to a large model gains from. docs/serve.md has a table of the flags
# that the server gets.
#
# With Docker the ports are open to this machine only; the binary listens on all of its addresses.
#
# Try it:
#   t2t-lite-query-server --server=localhost:8500 --servable_name=NAME
#   curl -d '{"instances": ["A dog runs."]}' localhost:8501/v1/models/NAME:predict
set -euo pipefail

fail() { echo "serve.sh: $2" >&2; exit "$1"; }
run() { exec "$@"; }
labels=""
while [[ "${1:-}" == --* ]]; do
  case "$1" in
    --help) sed -n '2,/^set/{/^set/d; s/^# \{0,1\}//; p}' "${BASH_SOURCE[0]}"; exit ;;
    --print) run() { printf '%q ' "$@"; echo; }; shift ;;
    --labels)
      [[ $# -gt 1 ]] || fail 2 "--labels is followed by labels, e.g. \"stable=1 canary=2\""
      labels="$2"; shift 2 ;;
    *) fail 2 "unknown flag $1; see --help" ;;
  esac
done
for pair in $labels; do
  [[ "$pair" =~ ^[A-Za-z0-9_.-]+=[0-9]+$ ]] || fail 2 "a label is LABEL=VERSION, e.g. stable=1; got $pair"
done

# The models: the names, and the folder of each.
if [[ $# == 2 && "$1" != *=* && "$2" != *=* ]]; then set -- "$2=$1"; fi
[[ $# -gt 0 ]] || fail 2 "expected EXPORT_DIR NAME, or NAME=EXPORT_DIR of each model; see --help"
names=() folders=()
for pair in "$@"; do
  name="${pair%%=*}" folder="${pair#*=}"
  [[ "$pair" == *=* ]] || fail 2 "expected EXPORT_DIR NAME, or NAME=EXPORT_DIR of each model; got $pair"
  [[ "$name" =~ ^[A-Za-z0-9_.-]+$ ]] || fail 2 "a model's name is letters, digits, _ . and -; got '$name'"
  [[ " ${names[*]:-} " != *" $name "* ]] || fail 2 "two models are called $name"
  [[ "$folder" != *[\'\\]* ]] || fail 2 "a folder's name cannot have ' or \\ here; got $folder"
  exports=("$folder"/[0-9]*/saved_model.pb)
  [[ -e "${exports[0]}" ]] \
    || fail 1 "$folder holds no export: run t2t-lite-exporter --export_dir=$folder"
  names+=("$name")
  folders+=("$(cd "$folder" && pwd)")
done
[[ -z "$labels" || ${#names[@]} == 1 ]] || fail 2 "--labels are of one model, got ${#names[@]}"
for pair in $labels; do
  [[ -d "${folders[0]}/${pair#*=}" ]] \
    || fail 1 "${folders[0]} has no version ${pair#*=} for the label ${pair%=*}"
done
grpc_port="${GRPC_PORT:-8500}" rest_port="${REST_PORT:-8501}"

# Write the standard input to a file of its own, which the server may read, and print its name.
new_file() {
  local file
  file="$(mktemp)"
  cat > "$file"
  chmod a+r "$file"
  echo "$file"
}

# Print the name of the server's model config; $1 is a folder in which the server sees each model
# under its name, "" if it sees the folders themselves.
config() {
  local versions="" map="" pair policy="" i folder
  for pair in $labels; do
    versions+=" versions: ${pair#*=}"
    map+=" version_labels { key: '${pair%=*}' value: ${pair#*=} }"
  done
  [[ -z "$labels" ]] || policy=" model_version_policy { specific {$versions } }$map"
  {
    echo "model_config_list {"
    for i in "${!names[@]}"; do
      folder="${folders[i]}"
      [[ -z "$1" ]] || folder="$1/${names[i]}"
      echo "config { name: '${names[i]}' base_path: '$folder' model_platform: 'tensorflow'$policy }"
    done
    echo "}"
  } | new_file
}

# Print the name of a file that says how many batches run at a time: one a core, with a core left for
# the requests themselves. All else each version brings along, in batching_params.pbtxt.
batching() {
  local cores
  cores="$(getconf _NPROCESSORS_ONLN)"
  echo "num_batch_threads { value: $((cores > 1 ? cores - 1 : 1)) }" | new_file
}

options=(--enable_batching --enable_per_model_batching_parameters)
options+=("--tensorflow_intra_op_parallelism=${INTRA_OP_THREADS:-1}")
options+=(--tensorflow_inter_op_parallelism=-1)                   # a batch's own thread runs it
options+=(--grpc_max_threads=256 --rest_api_timeout_in_ms=30000)  # 4 a core are too few
[[ -z "$labels" ]] || options+=(--allow_version_labels_for_unavailable_models)
needs_config=""
[[ -z "$labels" && ${#names[@]} == 1 ]] || needs_config=yes
binary="${TF_SERVING_BINARY:-$(command -v tensorflow_model_server || true)}"
if [[ -n "$binary" ]]; then
  if [[ -n "$needs_config" ]]; then
    options+=("--model_config_file=$(config "")")
  else
    options+=("--model_name=${names[0]}" "--model_base_path=${folders[0]}")
  fi
  run "$binary" "--port=$grpc_port" "--rest_api_port=$rest_port" "${options[@]}" \
    "--batching_parameters_file=$(batching)"
elif command -v docker > /dev/null; then
  mounts=(-v "$(batching):/models/batching.config:ro")
  for i in "${!names[@]}"; do mounts+=(-v "${folders[i]}:/models/${names[i]}:ro"); done
  if [[ -n "$needs_config" ]]; then
    mounts+=(-v "$(config /models):/models/models.config:ro")
    options+=(--model_config_file=/models/models.config)
  fi
  run docker run --rm -p "127.0.0.1:$grpc_port:8500" -p "127.0.0.1:$rest_port:8501" \
    "${mounts[@]}" -e "MODEL_NAME=${names[0]}" "${TF_SERVING_IMAGE:-tensorflow/serving:2.20.0}" \
    "${options[@]}" --batching_parameters_file=/models/batching.config
else
  fail 1 "needs Docker, tensorflow_model_server on the PATH, or \$TF_SERVING_BINARY; \
in Python t2t_lite.load(\"${folders[0]}\") needs no server"
fi
