#!/usr/bin/env bash
# Everything that must pass before a change lands: format, lint, types, tests.
#
#   scripts/test.sh [arguments for pytest, e.g. -m "not learning"]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

ruff format --check .
ruff check .
pyright
python -m pytest "$@"
