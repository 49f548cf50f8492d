#!/usr/bin/env bash
# Everything that must pass before a change lands: format, lint, types, tests.
#
#   scripts/test.sh [arguments for pytest, e.g. -m "not learning"]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

ruff format --check .
ruff check .
pyright
# Fixtures are made once for each file, so the tests of one stay together; tests/conftest.py orders files.
python -m pytest --numprocesses=2 --dist=loadfile --no-loadscope-reorder "$@"
