#!/usr/bin/env bash
# Makes the Python environment that tests take their expected values and real ZMQ peers from.
# usage: venv.sh DIR REQUIREMENTS
set -euo pipefail
dir=$1 requirements=$2

rm -rf "$dir"
if python3 -m venv "$dir" >/dev/null 2>&1; then
  "$dir/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements"
else # Debian's python3 without python3-venv has no ensurepip: install with the pip outside.
  rm -rf "$dir"
  python3 -m venv --without-pip "$dir"
  site=$("$dir/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  python3 -m pip install --quiet --disable-pip-version-check --target "$site" -r "$requirements"
fi
touch "$dir/.installed"
