#!/usr/bin/env bash
# Build the documentation's site: docs/*.md to build/site/index.html. Needs no network once the
# virtual environment is there. A broken link or reference is an error.
#
#   scripts/docs.sh [arguments for sphinx-build, e.g. -E to read everything anew]
#   python -m http.server --directory build/site       to look at it
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

python -m sphinx -n -W --keep-going -q -d build/doctrees "$@" docs build/site
echo "build/site/index.html"
