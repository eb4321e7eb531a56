#!/usr/bin/env bash
# Measures kvscout and other indexes in turn on the same workloads and prints one table for each. Needs cargo; the first
# build takes minutes. Every program checks its answers and ends all of this if one is wrong.
# usage: bench-peers.sh REPS CRATE [TRACE], as bench-peers.sh 3 test/bench/peers conversation_trace.jsonl
# CRATE is the folder of the peers' driver; without TRACE only the pinned workload runs.
set -euo pipefail
reps=$1 crate=$2 trace=${3:-}
cd "$(dirname "$0")/.."

cargo build --release --locked --manifest-path "$crate/Cargo.toml" --target-dir .tools/peers >&2
peers=.tools/peers/release/peers
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

# measure WORKLOAD KVSCOUT-ARGUMENTS -- PEER-ARGUMENTS: all indexes take turns, so that a busy minute hits all of them.
measure() {
  local folder="$results/$1" i name
  local -a own=() theirs=()
  shift
  while [ "$1" != -- ]; do own+=("$1"); shift; done
  theirs=("${@:2}")
  mkdir -p "$folder"
  for ((i = 1; i <= reps; i++)); do
    for name in smg-r3 dyn-radix dyn-crtc; do
      echo "bench-peers: ${folder##*/} $i/$reps $name" >&2
      "$peers" "${own[1]}" "$name" "${theirs[@]}" >"$folder/$name.$i.json"
    done
    echo "bench-peers: ${folder##*/} $i/$reps kvscout" >&2
    bin/kvscout "${own[@]}" --json >"$folder/kvscout.$i.json"
  done
  for name in smg-r3 dyn-radix dyn-crtc; do
    echo "bench-peers: ${folder##*/} heap $name" >&2
    "$peers-heap" "${own[1]}" "$name" "${theirs[@]}" >"$folder/$name.heap.json"
  done
}

measure pinned bench pinned --
if [ -n "$trace" ]; then
  for variant in '100000 1' '4000 1' '100000 8'; do
    read -r cap copies <<<"$variant"
    measure "mooncake, capacity $cap, copies $copies" bench mooncake --cap "$cap" --copies "$copies" --trace "$trace" -- \
      "$cap" "$copies" "$trace"
  done
else
  echo 'bench-peers: no TRACE, so no mooncake' >&2
fi
go run ./test/bench/compare "$results"
