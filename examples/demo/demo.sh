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
say() { printf '%s\n' "$@"; }
explain() { say "$@" ""; }
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

say "kvscout tells a gateway which engines already hold how much of a prompt in their KV cache." \
  "This shows it with engines that need no GPU and need nothing installed. It takes half a minute and leaves nothing behind."

heading "kvscout serve: the service, here on a free port of this machine"
"$bin" serve --listen 127.0.0.1:0 >"$work/address" 2>"$work/serve.log" &
server_pid=$!
wait_for 30 "the server's start" test -s "$work/address"
cat "$work/address"
export KVSCOUT_SERVER
KVSCOUT_SERVER=$(awk '{ print $NF }' "$work/address")

heading "kvscout simulate: four engines, two with vLLM's events, one with an older vLLM's, one with SGLang's"
say "They publish what they store and drop over ZMQ, in the bytes that real ones send, and register with the service." \
  "For $seconds s each request is scored by the service first, then served by an engine, which tells what it really took from its" \
  "cache. The comparison comes below."
"$bin" simulate --engines 4 --form mixed --blocks 400 --rate 40 --for "${seconds}s" \
  --register "$KVSCOUT_SERVER" --score "$KVSCOUT_SERVER" --sample "$work/ids.json" >"$work/simulate.out" 2>"$work/simulate.log" &
sim_pid=$!
live() { "$bin" stats | awk '$1 == "sim-0" && $3 == "live" { ok = 1 } END { exit !ok }'; }
wait_for 30 "the first event" live

heading "kvscout workers: whom the service listens to"
explain "STATE live: every event so far is in the index. HISTORY complete: all that the engine holds was announced, so a miss is a fact."
"$bin" workers || fail "workers"

heading "kvscout score: who holds a prompt that one of them served?"
explain "HELD: leading tokens in the engine's cache. REUSABLE: what it will skip. SCORE: 0 to 1, for the gateway. BOUND exact: a fact."
wait_for 30 "a served prompt" test -s "$work/ids.json"
"$bin" score --model sim-model --tokens "$work/ids.json" || fail "score"

heading "The same by curl: gRPC, gRPC-Web and plain HTTP with JSON are one port; here only the best worker"
if command -v curl >/dev/null; then
  echo "curl $KVSCOUT_SERVER/kvscout.v1.ScoreService/Score -H 'Content-Type: application/json' -d '{\"model\":\"sim-model\",\"maxWorkers\":1,\"tokens\":{\"ids\":[...]}}'"
  curl -sS --fail-with-body "$KVSCOUT_SERVER/kvscout.v1.ScoreService/Score" -H 'Content-Type: application/json' \
    -d "{\"model\":\"sim-model\",\"maxWorkers\":1,\"tokens\":{\"ids\":$(cat "$work/ids.json")}}" >"$work/answer.json" || fail "curl"
  sed 's/,"\([a-zA-Z]*\)":/,\n "\1":/g' "$work/answer.json" # a line for each field
  echo
else
  echo "(curl is not installed)"
fi

heading "kvscout stats: what each event stream did, once a cache is full and its engine evicts"
for _ in {1..50}; do # a slow machine may come to it later, or never: the table at the end tells
  "$bin" stats --json | grep -qE '"removedEvents": ?"[1-9]' && break
  sleep 0.1
done
"$bin" stats || fail "stats"

heading "kvscout top: the same live in a terminal; this is one view of it, as text"
"$bin" top --once >"$work/top.txt" || fail "top"
sed '/^Calls$/,$d' "$work/top.txt"

heading "What the engines took from their caches, and what had been predicted of each request"
explain "EQUAL: predicted to the token. WRONG: an answer that was called exact was not. There must be none."
wait "$sim_pid" || { cat "$work/simulate.out"; sim_pid=; fail "an answer that was called exact was wrong, or the simulation broke"; }
sim_pid=
cat "$work/simulate.out"
grep -q '^predicted = reported in [1-9]' "$work/simulate.out" || fail "no request was scored"

heading "kvscout verify: recordings of real vLLM and SGLang, each prediction against the engine's own cached_tokens"
explain "BOUNDS: the engine hides something, so the answer said \"at most\" or \"at least\", and that held. Your engines: docs/recordings.md."
"$bin" verify test/testdata/recordings || fail "verify"

heading "Stop"
kill -TERM "$server_pid"
wait "$server_pid" || { server_pid=; fail "the server did not stop cleanly"; }
server_pid=
say "done: every exact answer was right" "" \
  "Next: README.md, \"Score in a minute\" and \"Real engines\"; docs/integration.md for authors of gateways; bin/kvscout --help."
