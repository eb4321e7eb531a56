package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kvscout/kvscout/scorer/bench"
)

// kind is how a cell asks.
type kind string

const (
	lean       kind = "Connect, lean client"
	leanJSON   kind = "Connect JSON, lean client"
	leanHashes kind = "Connect, block hashes, lean client"
	stock      kind = "Connect, connect-go client"
	grpcGo     kind = "gRPC, grpc-go client"
	openLoop   kind = "open loop at half load"

	leanIngest kind = "Connect, lean client, beside 200,000 blocks/s"
	openIngest kind = "open loop at half load beside 200,000 blocks/s"

	// Half of what the closed loop reaches grows with the server; this stays. It is the higher of the two rates at which the prototype,
	// which set the bar and has no index, reached 1.2 to 1.6 ms.
	openFixed       kind = "open loop at 10,000/s"
	openFixedIngest kind = "open loop at 10,000/s beside 200,000 blocks/s"
)

// What the open loop is measured with, and how much longer.
const (
	openTokens  = 8192
	openCallers = 32
	openLasts   = 4
	ingestRate  = 200_000
	fixedRate   = 10_000
)

// largest has the cells of which the bars are.
const largest = 16384

// cell is one measurement. rate is 0 once it is done.
type cell struct {
	tokens  int
	kind    kind
	callers int
	rate    float64
}

func (c cell) String() string {
	return fmt.Sprintf("%d tokens, %s, %d callers", c.tokens, c.kind, c.callers)
}

// cells are those in closed loops.
func cells(tokens int) (out []cell) {
	for _, n := range callers {
		out = append(out, cell{tokens: tokens, kind: lean, callers: n})
	}
	if tokens != largest {
		return out
	}
	for _, k := range []kind{stock, grpcGo, leanJSON, leanHashes} {
		out = append(out, cell{tokens: tokens, kind: k, callers: 8})
	}
	return append(out, cell{tokens: tokens, kind: leanHashes, callers: 32})
}

// openCells are the others, of openTokens.
func openCells() (out []cell) {
	for _, k := range []kind{openFixed, openLoop, leanIngest, openFixedIngest, openIngest} {
		out = append(out, cell{tokens: openTokens, kind: k, callers: openCallers})
	}
	return out
}

// results are the reports of every repetition, by server and cell.
type results struct {
	reports map[string]map[cell][]bench.Report
	// ingested is what was published meanwhile, of each repetition.
	ingested []bench.Ingested
}

func newResults() *results { return &results{reports: make(map[string]map[cell][]bench.Report)} }

func (r *results) add(name string, c cell, report bench.Report) {
	if r.reports[name] == nil {
		r.reports[name] = make(map[cell][]bench.Report)
	}
	r.reports[name][c] = append(r.reports[name][c], report)
}

// last is what was added last.
func (r *results) last(name string, c cell) bench.Report {
	list := r.reports[name][c]
	return list[len(list)-1]
}

// median has the median of each column; zeros if the cell was not measured.
func (r *results) median(name string, c cell) bench.Report {
	list := r.reports[name][c]
	if len(list) == 0 {
		return bench.Report{}
	}
	out := bench.Report{
		Requests:  median(list, func(r bench.Report) float64 { return r.Requests }),
		P50:       median(list, func(r bench.Report) float64 { return r.P50 }),
		P99:       median(list, func(r bench.Report) float64 { return r.P99 }),
		ClientCPU: median(list, func(r bench.Report) float64 { return r.ClientCPU }),
	}
	cpu := median(list, func(r bench.Report) float64 {
		if r.ServerCPU == nil {
			return 0
		}
		return *r.ServerCPU
	})
	out.ServerCPU = &cpu
	return out
}

// median is the lower of two in the middle.
func median[T any, V cmp.Ordered](list []T, get func(T) V) V {
	values := make([]V, len(list))
	for i, x := range list {
		values[i] = get(x)
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}
