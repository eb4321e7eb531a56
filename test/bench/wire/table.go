package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/kvscout/kvscout/scorer/bench"
)

// bar is what a ratio to the peer, or a figure, has to reach.
type bar struct {
	what string
	// ours is compared with theirs, if that is set: requests a second, or p50 (low). Else p99 has to be under most, in us.
	ours, theirs cell
	low          bool
	want, most   float64
}

// bars of the service.
func bars() (out []bar) {
	at := func(k kind, callers int) cell { return cell{tokens: largest, kind: k, callers: callers} }
	for _, n := range []int{8, 32} {
		out = append(out, bar{what: fmt.Sprintf("Connect, 16,384 tokens, %d callers", n), ours: at(lean, n), theirs: at(lean, n), want: 4.5})
	}
	return append(out,
		bar{what: "the same, 1 caller, p50", ours: at(lean, 1), theirs: at(lean, 1), low: true, want: 1. / 3},
		bar{what: "connect-go client, 8 callers", ours: at(stock, 8), theirs: at(lean, 8), want: 2.5},
		bar{what: "grpc-go client, 8 callers", ours: at(grpcGo, 8), theirs: at(lean, 8), want: 2.4},
		bar{what: "1,024 block hashes, 8 callers", ours: at(leanHashes, 8), theirs: at(leanHashes, 8), want: 1.3},
		bar{what: "1,024 block hashes, 32 callers", ours: at(leanHashes, 32), theirs: at(leanHashes, 32), want: 1.5},
		bar{what: "JSON with base64 tokens, 8 callers", ours: at(leanJSON, 8), theirs: at(lean, 8), want: 2.5},
		bar{what: "p99 at 10,000 calls/s, 8,192 tokens", ours: opened(openFixed), most: 1500},
		bar{what: "the same beside 200,000 blocks/s", ours: opened(openFixedIngest), most: 1500},
		bar{what: "p99 at half of the closed loop's calls/s", ours: opened(openLoop), most: 1500},
		bar{what: "the same beside 200,000 blocks/s", ours: opened(openIngest), most: 1500},
	)
}

// opened is the cell of an open loop.
func opened(k kind) cell { return cell{tokens: openTokens, kind: k, callers: openCallers} }

// print prints the tables in Markdown.
func (r *results) print(w io.Writer, s settings) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%d workers, %d prompts, %d processors, medians of %d\n\n", workers, prompts, runtime.NumCPU(), s.reps)
	fmt.Fprintln(&out, "| tokens | how | callers | server | requests/s | p50 us | p99 us | server CPU us | client CPU us |")
	fmt.Fprintln(&out, "| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, tokens := range sizes {
		list := cells(tokens)
		if tokens == openTokens {
			list = append(list, openCells()...)
		}
		for _, c := range list {
			for _, name := range []string{"kvscout", "dynamo"} {
				r.row(&out, name, c)
			}
		}
	}
	r.beside(&out)
	r.bars(&out)
	_, err := io.WriteString(w, out.String())
	return err
}

func (r *results) row(out *strings.Builder, name string, c cell) {
	if len(r.reports[name][c]) == 0 {
		return
	}
	m := r.median(name, c)
	how := string(c.kind)
	if name != "kvscout" {
		how = "JSON, lean client"
		if c.kind == leanHashes {
			how = "JSON, block hashes, lean client"
		}
	}
	fmt.Fprintf(out, "| %d | %s | %d | %s | %.0f | %.0f | %.0f | %.0f | %.0f |\n",
		c.tokens, how, c.callers, name, m.Requests, m.P50, m.P99, *m.ServerCPU, m.ClientCPU)
}

// beside prints what became of what engines published.
func (r *results) beside(out *strings.Builder) {
	if len(r.ingested) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%.0f blocks a second were stored and removed beside, visible after %.2f ms (p50) and %.2f ms (p99)\n",
		median(r.ingested, func(i bench.Ingested) float64 { return i.Blocks }),
		median(r.ingested, func(i bench.Ingested) float64 { return i.LagP50 }),
		median(r.ingested, func(i bench.Ingested) float64 { return i.LagP99 }))
}

// bars prints how each bar is met.
func (r *results) bars(out *strings.Builder) {
	fmt.Fprint(out, "\n| bar | wanted | measured | |\n| --- | --- | --- | --- |\n")
	for _, b := range bars() {
		ours, theirs := r.median("kvscout", b.ours), r.median("dynamo", b.theirs)
		var wanted, measured string
		met := false
		switch {
		case ours.Requests == 0:
			continue
		case b.most > 0:
			wanted, measured = fmt.Sprintf("< %.0f us", b.most), fmt.Sprintf("%.0f us", ours.P99)
			met = ours.P99 < b.most
		case theirs.Requests == 0:
			continue
		case b.low:
			ratio := ours.P50 / theirs.P50
			wanted, measured = fmt.Sprintf("<= %.2fx", b.want), fmt.Sprintf("%.2fx", ratio)
			met = ratio <= b.want
		default:
			ratio := ours.Requests / theirs.Requests
			wanted, measured = fmt.Sprintf(">= %.1fx", b.want), fmt.Sprintf("%.2fx", ratio)
			met = ratio >= b.want
		}
		word := "met"
		if !met {
			word = "missed"
		}
		fmt.Fprintf(out, "| %s | %s | %s | %s |\n", b.what, wanted, measured, word)
	}
}
