#!/usr/bin/env bash
# Builds the archives of a release and their checksums. Equal sources give equal archives.
# usage: release.sh DIR VERSION
set -euo pipefail
dist=$1 version=$2
export CGO_ENABLED=0

rm -rf "$dist"
mkdir -p "$dist"
when=$(git log -1 --format=%ct)
for platform in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64; do
  name=kvscout-$version-${platform/\//-}
  mkdir "$dist/$name"
  GOOS=${platform%/*} GOARCH=${platform#*/} go build -trimpath -ldflags="-s -w -X main.release=$version" -o "$dist/$name/kvscout" ./cmd/kvscout
  cp LICENSE README.md "$dist/$name/"
  tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$when" -C "$dist" -cf - "$name" |
    gzip -n >"$dist/$name.tar.gz"
  rm -r "${dist:?}/$name"
  echo "release: $dist/$name.tar.gz"
done
cd "$dist"
sha256sum -- *.tar.gz >SHA256SUMS
