#!/usr/bin/env bash
# Builds libtokenizers.a for github.com/daulet/tokenizers out of the crate source that
# the Go module itself carries, using only the Go and Rust package registries. Takes some 75 seconds of two quiet cores.
# usage: libtokenizers.sh OUTDIR    then: CGO_LDFLAGS=-LOUTDIR go build -tags hftokenizers ...
set -euo pipefail

MOD=github.com/daulet/tokenizers
VER=v1.24.0
SUM='h1:pdT0kRPB9jYbIRxY1q82RJa9vfSbKI53YdHHNDTnvOE='

# Upstream's Cargo.toml takes tiktoken-rs from a git branch. It is replaced by this registry
# release, whose API lib.rs compiles against unchanged. The release wants fancy-regex 0.13, so
# these four entries of upstream's Cargo.lock change and no other does (--locked proves it).
#        name        version  sha256 of the crate
PINS='tiktoken-rs  0.9.1   3a19830747d9034cd9da43a60eaa8e552dfda7712424aebf187b7a60126bae0d
fancy-regex        0.13.0  531e46835a22af56d1e3b66f04844bed63158bc094a628bec1d321d9b4c44bf2
bit-set            0.5.3   0700ddab506f33b20a03b13996eccd309a48e5ff77d0d95926aa0210fb4e95f1
bit-vec            0.6.3   349f9b6a179ed607305526ca489b34ad0a41aed5f7980fa90eb03160b69598fb'

[ $# -eq 1 ] || { echo "usage: $0 OUTDIR" >&2; exit 2; }
mkdir -p "$1"; OUT=$(cd "$1" && pwd)
LIB=$OUT/libtokenizers.a STAMP=$OUT/libtokenizers.stamp
for t in go cargo rustc gcc g++ sha256sum; do
  command -v "$t" >/dev/null || { echo "$0: $t not found" >&2; exit 1; }
done

want=$({ cat "$0"; rustc -Vv; env | grep -E '^(RUSTFLAGS|CARGO_(PROFILE|BUILD|ENCODED)_?[A-Z_]*)=' | sort || true; } | sha256sum | cut -d' ' -f1)
if [ -s "$LIB" ] && [ "$(cut -d' ' -f1 "$STAMP" 2>/dev/null)" = "$want" ] &&
   [ "$(cut -d' ' -f2 "$STAMP")" = "$(sha256sum <"$LIB" | cut -d' ' -f1)" ]; then
  echo "libtokenizers.a is up to date in $OUT"; exit 0
fi

# 1. the module, checked against the pinned sum
json=$(cd / && GOFLAGS=-mod=mod go mod download -json "$MOD@$VER")
field() { sed -n "s/^[[:space:]]*\"$1\": \"\(.*\)\",\{0,1\}\$/\1/p" <<<"$json"; }
[ "$(field Sum)" = "$SUM" ] || { echo "$0: $MOD@$VER has sum $(field Sum), want $SUM" >&2; exit 1; }
SRC=$(field Dir)

# 2. the crate, with the git dependency and its lock entries replaced
W=$OUT/crate
rm -rf "$W"; mkdir -p "$W"
cp -r "$SRC"/Cargo.toml "$SRC"/Cargo.lock "$SRC"/src "$SRC"/benches "$W"/
chmod -R u+w "$W"
REG=$(sed -n 's/^source = "\(registry+.*\)"$/\1/p;T;q' "$W/Cargo.lock")
while read -r name ver sha; do
  [ "$name" != tiktoken-rs ] || sed -i "s|^tiktoken-rs = .*|tiktoken-rs = \"=$ver\"|" "$W/Cargo.toml"
  sed -i -e "/^name = \"$name\"\$/,/^\(dependencies\|\$\)/{
      s|^version = .*|version = \"$ver\"|
      /^checksum = /d
      s|^source = .*|source = \"$REG\"\nchecksum = \"$sha\"|
    }" "$W/Cargo.lock"
done <<<"$PINS"
if grep -q 'git = \|git+' "$W/Cargo.toml" "$W/Cargo.lock"; then
  echo "$0: a git dependency is left in the crate" >&2; exit 1
fi

# 3. build; the default panic=unwind must stay, tokenizers_encode relies on catch_unwind
T=${LIBTOKENIZERS_TARGET_DIR:-$OUT/cargo-target}
(cd "$W" && cargo build --release --locked --lib --target-dir "$T")
cp "$T/release/libtokenizers.a" "$LIB.tmp"
mv "$LIB.tmp" "$LIB"
echo "$want $(sha256sum <"$LIB" | cut -d' ' -f1)" >"$STAMP"
ls -l "$LIB"
