#!/usr/bin/env bash
# Measures kvscout serve over the wire, and another project's indexer over HTTP beside it, in turn, with the same client,
# workload and checks; prints tables of medians and how the bars are met. Needs cargo; the first build takes minutes.
# usage: bench-wire.sh REPS CRATE, as bench-wire.sh 3 test/bench/peers-http
# Without cargo, and with CRATE empty, only kvscout is measured. CARGO_TARGET_DIR may name another folder of builds.
set -euo pipefail
reps=$1 crate=${2:-}
cd "$(dirname "$0")/.."

built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
peer=()
if [ -n "$crate" ] && command -v cargo >/dev/null; then
  target=${CARGO_TARGET_DIR:-.tools/peers-http}
  cargo build --release --locked --manifest-path "$crate/Cargo.toml" --target-dir "$target" >&2
  peer=(-peer "$target/release/peers-http")
else
  echo 'bench-wire: no cargo or no CRATE, so no peer' >&2
fi
go build -o "$built/wire" ./test/bench/wire
# The measuring itself takes under five minutes; a server that hangs ends it.
timeout -k 10 720 "$built/wire" -kvscout bin/kvscout "${peer[@]}" -reps "$reps"
