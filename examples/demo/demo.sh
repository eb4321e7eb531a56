#!/usr/bin/env bash
# Shows the whole on this machine, by itself, in well under a minute: a server, four simulated engines, scores over gRPC
# and Connect JSON that must equal what the engines report, and the recordings of real engines. Run `make build` first,
# or `make demo`. Exits with 0 if every answer that was called exact was right.
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=${DEMO_SECONDS:-15}
bin=bin/kvscout
work=$(mktemp -d)
server_pid= sim_pid=

stop() { # end a process of ours and wait for it
  if [ -n "$1" ] && kill -0 "$1" 2>/dev/null; then
    kill "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
  fi
}
cleanup() {
  stop "$sim_pid"
  stop "$server_pid"
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

heading() { printf '\n== %s\n\n' "$*"; }
fail() {
  printf '\ndemo failed: %s\n' "$*" >&2
  for log in "$work"/*.log; do
    [ -s "$log" ] && { printf -- '--- %s\n' "$(basename "$log")"; tail -n 20 "$log"; } >&2
  done
  exit 1
}
# wait_for SECONDS WHAT COMMAND...: until the command succeeds
wait_for() {
  local until=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$until" ] || fail "$what did not happen in time"
    sleep 0.1
  done
}

[ -x "$bin" ] || fail "$bin is missing: run make build"

heading "A server on a free port"
"$bin" serve --listen 127.0.0.1:0 >"$work/address" 2>"$work/serve.log" &
server_pid=$!
wait_for 30 "the server's start" test -s "$work/address"
cat "$work/address"
export KVSCOUT_SERVER
KVSCOUT_SERVER=$(awk '{ print $NF }' "$work/address")

heading "Four engines without engines, $seconds s of traffic: each request is scored, then served, then compared"
"$bin" simulate --engines 4 --form mixed --blocks 400 --rate 40 --for "${seconds}s" \
  --register "$KVSCOUT_SERVER" --score "$KVSCOUT_SERVER" --sample "$work/ids.json" >"$work/simulate.out" 2>"$work/simulate.log" &
sim_pid=$!
live() { "$bin" stats | awk '$1 == "sim-0" && $3 == "live" { ok = 1 } END { exit !ok }'; }
wait_for 30 "the first event" live

heading "kvscout workers"
"$bin" workers || fail "workers"

heading "kvscout score (the token ids of a prompt that was served)"
wait_for 30 "a served prompt" test -s "$work/ids.json"
"$bin" score --model sim-model --tokens "$work/ids.json" || fail "score"

heading "The same by curl: Connect is HTTP and JSON"
if command -v curl >/dev/null; then
  echo "curl $KVSCOUT_SERVER/kvscout.v1.ScoreService/Score -H 'Content-Type: application/json' -d '{\"model\":\"sim-model\",\"tokens\":{\"ids\":[...]}}'"
  curl -sS --fail-with-body "$KVSCOUT_SERVER/kvscout.v1.ScoreService/Score" -H 'Content-Type: application/json' \
    -d "{\"model\":\"sim-model\",\"tokens\":{\"ids\":$(cat "$work/ids.json")}}" || fail "curl"
  echo
else
  echo "(curl is not installed)"
fi

heading "kvscout stats, once a cache is full and its engine evicts"
for _ in {1..50}; do # a slow machine may come to it later, or never: the table at the end tells
  "$bin" stats --json | grep -qE '"removedEvents": ?"[1-9]' && break
  sleep 0.1
done
"$bin" stats || fail "stats"

heading "kvscout top shows it live in a terminal; this is one view of it, as text"
"$bin" top --once >"$work/top.txt" || fail "top"
sed '/^Calls$/,$d' "$work/top.txt"

heading "What the engines say of their caches, and what was predicted"
wait "$sim_pid" || { cat "$work/simulate.out"; sim_pid=; fail "an answer that was called exact was wrong, or the simulation broke"; }
sim_pid=
cat "$work/simulate.out"
grep -q '^predicted = reported in [1-9]' "$work/simulate.out" || fail "no request was scored"

heading "Recordings of real vLLM and SGLang: predictions against their own cached_tokens"
"$bin" verify test/testdata/recordings || fail "verify"

heading "Stop"
kill -TERM "$server_pid"
wait "$server_pid" || { server_pid=; fail "the server did not stop cleanly"; }
server_pid=
echo "done: every exact answer was right"
