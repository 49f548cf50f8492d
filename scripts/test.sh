#!/usr/bin/env bash
# What must pass before a change lands: format, lint, types, tests.
#
#   scripts/test.sh [arguments for pytest]          every claim's quickest proof
#   scripts/test.sh --all [arguments for pytest]    also the tests marked `slow`, as CI runs them
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
if [ "${1:-}" = --all ]; then shift; else set -- -m "not slow" "$@"; fi

ruff format --check .
ruff check .
pyright
# Two processes take neighbouring tests, so a file's fixtures are rarely made twice; the process that
# is ready first takes half of what the other has left.
python -m pytest --numprocesses=2 --dist=worksteal --durations=10 --durations-min=10 "$@"
