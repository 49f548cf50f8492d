#!/usr/bin/env bash
# Serve an export with TensorFlow Serving: gRPC on port 8500, REST on port 8501.
#
#   scripts/serve.sh EXPORT_DIR NAME           e.g. scripts/serve.sh export ende
#   scripts/serve.sh --print EXPORT_DIR NAME   only say what would run
#   scripts/serve.sh --labels "stable=1 canary=2" EXPORT_DIR NAME
#
# Takes $TF_SERVING_BINARY, or tensorflow_model_server from the PATH, or Docker with the image
# $TF_SERVING_IMAGE (tensorflow/serving). With --labels it keeps the named versions loaded, and a
# client asks for one by --version_label; otherwise the newest version serves, and a newer one takes
# its place as soon as it is exported. $GRPC_PORT and $REST_PORT are other ports. On a CPU each
# operation has one thread, so that requests share the cores; $INTRA_OP_THREADS gives it more (0: all
# cores), which a lone request to a large model gains from.
#
# Try it:
#   t2t-lite-query-server --server=localhost:8500 --servable_name=NAME
#   curl -d '{"instances": ["A dog runs."]}' localhost:8501/v1/models/NAME:predict
set -euo pipefail

run() { exec "$@"; }
labels=""
while [[ "${1:-}" == --* ]]; do
  case "$1" in
    --print) run() { printf '%q ' "$@"; echo; }; shift ;;
    --labels) labels="$2"; shift 2 ;;
    *) echo "serve.sh: unknown flag $1" >&2; exit 2 ;;
  esac
done
if [[ $# != 2 ]]; then
  echo "serve.sh: expected EXPORT_DIR NAME, got $# arguments" >&2
  exit 2
fi
name="$2"
if ! compgen -G "$1/[0-9]*/saved_model.pb" > /dev/null; then
  echo "serve.sh: $1 holds no export: run t2t-lite-exporter --export_dir=$1" >&2
  exit 1
fi
export_dir="$(cd "$1" && pwd)"
grpc_port="${GRPC_PORT:-8500}" rest_port="${REST_PORT:-8501}"

# The model config, for versions with labels: $1 is the folder as the server sees it.
config() {
  local versions="" map="" pair
  for pair in $labels; do
    versions+=" versions: ${pair#*=}"
    map+=" version_labels { key: '${pair%=*}' value: ${pair#*=} }"
  done
  echo "model_config_list { config { name: '$name' base_path: '$1' model_platform: 'tensorflow'" \
    "model_version_policy { specific {$versions } }$map } }"
}

# Each version brings its own batching parameters, batching_params.pbtxt.
options=(--enable_batching --enable_per_model_batching_parameters)
options+=("--tensorflow_intra_op_parallelism=${INTRA_OP_THREADS:-1}")
[[ -z "$labels" ]] || options+=(--allow_version_labels_for_unavailable_models)
binary="${TF_SERVING_BINARY:-$(command -v tensorflow_model_server || true)}"
if [[ -n "$binary" ]]; then
  if [[ -n "$labels" ]]; then
    file="$(mktemp)"
    config "$export_dir" > "$file"
    options+=("--model_config_file=$file")
  else
    options+=("--model_name=$name" "--model_base_path=$export_dir")
  fi
  run "$binary" "--port=$grpc_port" "--rest_api_port=$rest_port" "${options[@]}"
elif command -v docker > /dev/null; then
  mounts=(-v "$export_dir:/models/$name:ro")
  if [[ -n "$labels" ]]; then
    file="$(mktemp)"
    config "/models/$name" > "$file"
    chmod a+r "$file"
    mounts+=(-v "$file:/models/models.config:ro")
    options+=(--model_config_file=/models/models.config)
  fi
  run docker run --rm -p "127.0.0.1:$grpc_port:8500" -p "127.0.0.1:$rest_port:8501" \
    "${mounts[@]}" -e "MODEL_NAME=$name" "${TF_SERVING_IMAGE:-tensorflow/serving}" "${options[@]}"
else
  echo "serve.sh: needs tensorflow_model_server, TF_SERVING_BINARY or Docker; to try the model" \
    "without: python -m t2t_lite.bin.loopback_server --export_dir=$1 --servable_name=$name" >&2
  exit 1
fi
