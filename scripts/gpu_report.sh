#!/usr/bin/env bash
# On a machine with a GPU and an environment with TensorFlow for it (docs/gpus.md): times training and
# decoding, checks that the outputs agree with the CPU's, and writes what is to be sent back,
# gpu_report.json and gpu_report.md. It needs no network and installs nothing; called again it goes on.
#
#   scripts/gpu_report.sh [--minutes=60] [--small]
#
# --small takes tiny models and some minutes; it works without a GPU too.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PATH="$PWD/.venv/bin:$PATH"
exec python benchmarks/gpu_report.py "$@"
