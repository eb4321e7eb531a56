#!/usr/bin/env bash
# Builds kubetestapi, kube-apiserver and etcd in one program, from Go modules alone: OUT. What it is made of is pinned by
# tools/kubeapi/go.mod and go.sum. It takes some five minutes on two cores, and 2.8 GB for its build cache meanwhile.
# usage: kubeapi.sh OUT
set -euo pipefail
out=$(realpath -m "$1")
cd "$(dirname "$0")/kubeapi"
export GOTOOLCHAIN=local GOFLAGS=-mod=readonly GOWORK=off CGO_ENABLED=0

full=$(go list -m -f '{{.Version}}' k8s.io/kubernetes) # v1.37.2, which the API server says of itself
IFS=. read -r major minor _ <<<"${full#v}"

mkdir -p "$(dirname "$out")"
GOCACHE=$(mktemp -d "$(dirname "$out")/kubeapi-cache.XXXXXX") # of its own: it would triple the ordinary one for good
export GOCACHE
trap 'rm -rf "$GOCACHE"' EXIT
pkg=k8s.io/component-base/version
nice -n 10 go build -trimpath -buildvcs=false \
  -ldflags="-s -w -X $pkg.gitVersion=$full -X $pkg.gitMajor=$major -X $pkg.gitMinor=$minor -X $pkg.gitTreeState=clean" \
  -o "$out" .
