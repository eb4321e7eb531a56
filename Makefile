# Everything a developer or CI runs. `make help` lists the targets. Tools are built from tools/go.mod, Python packages
# come from test/requirements.txt; nothing is installed outside of this folder.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

# The toolchain at hand is the one used; none is downloaded.
export GOTOOLCHAIN := local

FUZZTIME  ?= 10s
BENCH     ?= .
REPS      ?= 3
MINUTES   ?= 60
STEP      ?= 60ms
PEERS     ?= test/bench/peers
HTTPPEER  ?= test/bench/peers-http
TRACE     ?=
TESTFLAGS ?=
AGAINST   ?= .git\#branch=main
VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

bin := .tools/bin

.PHONY: .venv all help build test test-race test-hftokenizers test-kubernetes test-contract test-prometheus chaos chaos-nightly overload nightly soak fuzz bench bench-peers bench-wire e2e-vllm e2e-vllm-render generate generate-check breaking lint vuln demo release clean distclean

all: test lint ## test, then lint (what plain `make` does)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo 'variables: FUZZTIME=$(FUZZTIME) BENCH=$(BENCH) REPS=$(REPS) MINUTES=$(MINUTES) STEP=$(STEP) PEERS=$(PEERS) HTTPPEER=$(HTTPPEER) TRACE=$(TRACE) TESTFLAGS=$(TESTFLAGS) AGAINST=$(AGAINST) VERSION=$(VERSION)'

build: ## build bin/kvscout
	CGO_ENABLED=0 go build -trimpath -o bin/kvscout ./cmd/kvscout

# Tests look for Python in KVSCOUT_PYTHON first, so whoever sets it needs no environment of ours. So it is with
# KVSCOUT_TOKENIZERS and the tokenizers of real models.
python := $(if $(KVSCOUT_PYTHON),,.venv/.installed)
tokenizers := $(if $(KVSCOUT_TOKENIZERS),,.tools/tokenizers/.fetched)

test: $(python) $(tokenizers) ## run every test, chaos in its short form
	go test $(TESTFLAGS) ./...

# The packages that start goroutines, tests included. Expanded only where it is used.
concurrent = $$(grep -rlE --include='*.go' --exclude-dir={gen,kubeapi} '^[[:space:]]*go [A-Za-z]|\.(Go|Parallel|RunParallel)\(' . | xargs -rn1 dirname | sort -u)

test-race: $(python) $(tokenizers) ## run the tests of packages with goroutines under the race detector
	CGO_ENABLED=1 go test -race -timeout=15m $(TESTFLAGS) $(concurrent)

# The API server is built once; whoever sets KVSCOUT_KUBETESTAPI has one. Tests that need it have the build tag kubernetes.
kubetestapi := $(if $(KVSCOUT_KUBETESTAPI),,$(bin)/kubetestapi)

test-kubernetes: $(kubetestapi) ## run the tests against a real kube-apiserver and etcd (built first: 5 minutes)
	KVSCOUT_KUBETESTAPI="$${KVSCOUT_KUBETESTAPI:-$(CURDIR)/$(bin)/kubetestapi}" \
	go test -tags kubernetes $(TESTFLAGS) ./test/kubernetes

test-contract: $(bin)/buf $(python) ## ask every RPC by buf curl and from a browser too (installs Debian's chromium, as root)
	browser=$${KVSCOUT_BROWSER:-$$(tools/browser.sh)}; \
	KVSCOUT_BROWSER="$$browser" go test -tags contract $(TESTFLAGS) ./test/contract

# Its module is apart: Prometheus' engine would be the largest dependency of the product. Cached results know no files outside of it.
test-prometheus: ## test alerts and dashboard by Prometheus' own engine (built first: a minute)
	cd test/prometheus && go vet ./... && go test -count=1 $(TESTFLAGS) ./...

chaos: ## 200 simulated engines under faults for two minutes; then the index must equal each engine's cache
	go test ./test/chaos -v -count=1 -timeout 10m -args -chaos.engines=200 -chaos.for=2m

chaos-nightly: ## the same for thirty minutes, under the race detector
	CGO_ENABLED=1 go test -race ./test/chaos -v -count=1 -timeout 60m -args -chaos.engines=200 -chaos.for=30m -chaos.seed="$$RANDOM"

overload: ## ask a server for ten times what it can do, for a minute by each protocol
	go test ./test/service -v -count=1 -run Overload -timeout 15m -args -service.overload=1m

# TESTFLAGS='-run=^$$ -bench=.' compares the speed of both.
test-hftokenizers: $(tokenizers) ## build the Rust engine of render/token/hf (needs cargo, g++) and compare both engines
	tools/libtokenizers.sh .tools/libtokenizers
	CGO_ENABLED=1 go vet -tags=hftokenizers ./render/token/... ./render/local
	CGO_ENABLED=1 CGO_LDFLAGS='-L$(CURDIR)/.tools/libtokenizers' go test -tags=hftokenizers $(TESTFLAGS) ./render/token/hf ./render/local

nightly: ## compare the index with its model for MINUTES on new random seeds, in each of six ways
	go test -v -count=1 -timeout=0 -run='^Test(Model|Rule16)_' ./test/model -args -model.minutes=$(MINUTES)

soak: ## let a day of churn pass over the index in about 5 minutes, and see that its heap stays flat
	go test -v -count=1 -timeout=30m ./test/soak -args -soak.step=$(STEP)

fuzz: $(python) $(tokenizers) ## run each fuzz target for FUZZTIME
	tools/fuzz.sh $(FUZZTIME)

bench: $(python) $(tokenizers) ## run the benchmarks that match BENCH
	go test -run='^$$' -bench='$(BENCH)' -benchmem $(TESTFLAGS) ./...

bench-peers: build ## measure kvscout and other indexes in turn (needs cargo; TRACE=FILE adds mooncake)
	tools/bench-peers.sh '$(REPS)' '$(PEERS)' '$(TRACE)'

bench-wire: build ## measure serve over the wire, and another indexer over HTTP in turn (needs cargo; HTTPPEER= leaves it out; for its p99, with chrt -r 10 ahead)
	tools/bench-wire.sh '$(REPS)' '$(HTTPPEER)'

generate: $(bin)/buf $(bin)/protoc-gen-go $(bin)/protoc-gen-connect-go ## generate gen/ from proto/
	PATH="$(CURDIR)/$(bin):$$PATH" buf generate

generate-check: $(bin)/buf $(bin)/protoc-gen-go $(bin)/protoc-gen-connect-go ## prove that gen/ is current
	fresh=$$(mktemp -d); trap 'rm -rf "$$fresh"' EXIT; \
	PATH="$(CURDIR)/$(bin):$$PATH" buf generate -o "$$fresh"; \
	diff -r "$$fresh/gen" gen

breaking: $(bin)/buf ## check that proto/ breaks no caller of the version AGAINST
	$(bin)/buf breaking --against '$(AGAINST)'

lint: $(bin)/staticcheck $(bin)/buf ## check formatting, vet, staticcheck, proto rules
	unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "gofmt: $$unformatted"; exit 1; }
	go vet ./...
	go vet -tags kubernetes ./test/kubernetes
	go vet -tags contract ./test/contract
	$(bin)/staticcheck ./...
	$(bin)/buf lint
	$(bin)/buf format --diff --exit-code

vuln: $(bin)/govulncheck ## check for known vulnerabilities, if their database can be reached
	tools/vuln.sh $(bin)/govulncheck

qwen3 = $(or $(KVSCOUT_TOKENIZERS),.tools/tokenizers)/qwen3

e2e-vllm: build $(python) $(tokenizers) ## compare with the hits that a real vLLM reports (installs one; VLLM=PROGRAM takes yours); not in CI
	tools/e2e-vllm.sh .tools/vllm $(or $(KVSCOUT_PYTHON),.venv/bin/python) $(qwen3)

e2e-vllm-render: build $(tokenizers) ## compare with a real vLLM render server (installs one too); not in CI
	tools/e2e-vllm-render.sh .tools/vllm $(qwen3) test/testdata/render/render-vllm-0.32-qwen3.jsonl

demo: build ## show the whole on this machine: simulated engines, a server, scores
	./examples/demo/demo.sh

release: ## build the archives of a release into dist/
	tools/release.sh dist $(VERSION)

clean: ## remove what was built
	rm -rf bin dist

distclean: clean ## remove tools and the Python environment too
	rm -rf .tools .venv

.venv: .venv/.installed

.venv/.installed: test/requirements.txt tools/venv.sh
	tools/venv.sh .venv test/requirements.txt

.tools/tokenizers/.fetched: tools/tokenizers.sh
	tools/tokenizers.sh .tools/tokenizers

# A tool is rebuilt only when its pin may have changed.
tool_buf                   := github.com/bufbuild/buf/cmd/buf
tool_protoc-gen-go         := google.golang.org/protobuf/cmd/protoc-gen-go
tool_protoc-gen-connect-go := connectrpc.com/connect/cmd/protoc-gen-connect-go
tool_staticcheck           := honnef.co/go/tools/cmd/staticcheck
tool_govulncheck           := golang.org/x/vuln/cmd/govulncheck

$(bin)/kubetestapi: tools/kubeapi.sh $(wildcard tools/kubeapi/*)
	tools/kubeapi.sh $@

$(bin)/%: tools/go.mod tools/go.sum
	CGO_ENABLED=0 go build -C tools -o "$(CURDIR)/$@" $(tool_$*)
	@touch $@
