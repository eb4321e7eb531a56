#!/usr/bin/env bash
# Runs every fuzz target of the module for a while, one after the other, and fails at the end if any failed.
# usage: fuzz.sh TIME [PACKAGES], as fuzz.sh 10s ./...
set -euo pipefail
time=$1 packages=${2:-./...}

# `go test -list` prints the targets of a package and then "ok <package> <time>".
targets=$(go test -list '^Fuzz' "$packages" | awk '/^Fuzz/ { names[n++] = $1 }
  /^ok/ { for (i = 0; i < n; i++) print $2, names[i]; n = 0 }')
if [ -z "$targets" ]; then
  echo "fuzz: no targets in $packages" >&2
  exit 1
fi

# run fuzzes one target. Before Go 1.27 `go test` may report the end of its own time as a failure without an input
# (golang/go#75804), mostly on a busy machine; such a run is repeated once.
run() {
  local package=$1 target=$2 log status=0
  log=$(mktemp)
  go test -run='^$' -fuzz="^$target\$" -fuzztime="$time" -fuzzminimizetime=100x "$package" </dev/null 2>&1 | tee "$log" || status=$?
  if [ "$status" -ne 0 ] && grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input' "$log"; then
    echo "fuzz: $target: go test missed its own deadline, once more"
    status=0
    go test -run='^$' -fuzz="^$target\$" -fuzztime="$time" -fuzzminimizetime=100x "$package" </dev/null || status=$?
  fi
  rm "$log"
  return "$status"
}

failed=0
while read -r package target; do
  echo "fuzz: $target in $package"
  run "$package" "$target" || failed=1
done <<<"$targets"
exit "$failed"
