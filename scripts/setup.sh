# Sourced by the scripts beside it: makes the virtual environment .venv with the project in it (and
# the tools of its tests and its documentation) and puts its commands on the PATH. Needs Python 3.11
# or newer and a package index.
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=${PYTHON:-python3}
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  echo "t2t-lite needs Python 3.11 or newer, $python is not; name another: PYTHON=..." >&2
  exit 1
fi
[ -x .venv/bin/python ] || "$python" -m venv .venv
PATH="$PWD/.venv/bin:$PATH"
if ! cmp -s setup.cfg .venv/installed.cfg; then # what is to be installed is new or has changed
  echo "Installing into .venv ..."
  python -m pip install --quiet --disable-pip-version-check --editable runtime \
    --editable ".[test,docs]"
  cp setup.cfg .venv/installed.cfg
fi
