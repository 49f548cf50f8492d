#!/usr/bin/env bash
# On any machine with a GPU and a driver for CUDA 12: installs, checks that the outputs agree with the
# CPU's, times training and decoding, and writes what is to be sent back to gpu_report.md. About an hour.
#
#   scripts/gpu_report.sh [--output=gpu_report.md] [--seconds=20] [--small]
#
# --small takes tiny models and some minutes; it works without a GPU too.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

if command -v nvidia-smi >/dev/null; then
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
  python -m pip install --quiet --disable-pip-version-check --editable ".[gpu]"
else
  echo "no nvidia-smi here: the figures will be the processor's" >&2
fi
exec python benchmarks/gpu_report.py "$@"
