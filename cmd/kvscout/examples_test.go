package main

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/kvscout/kvscout/test/testpython"
)

// The examples in Go and Python score a prompt of 65 tokens of which a worker holds and reuses 64.
func TestExamples(t *testing.T) {
	server, _ := scored(t)
	var ids []string
	for _, id := range append(tokens(100, 64), 7) {
		ids = append(ids, strconv.Itoa(int(id)))
	}
	python := testpython.Path(t)
	for _, c := range []struct {
		name string
		args []string
		want []string
	}{
		{"go", append([]string{"go", "run", "../../examples/go", "-server", server, "-model", "m"}, ids...),
			[]string{"w0/0", "64 of 65 tokens reusable", "BOUND_KIND_EXACT"}},
		{"python", append([]string{python, "../../examples/python/score.py", server, "m"}, ids...),
			[]string{"w0 0 0.98", "BOUND_KIND_EXACT"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), c.args[0], c.args[1:]...).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			wants(t, string(out), c.want...)
			bad, err := exec.CommandContext(t.Context(), c.args[0], append(c.args[1:len(c.args):len(c.args)], "x")...).CombinedOutput()
			if err == nil || strings.Contains(string(bad), "BOUND") {
				t.Errorf("a token that is no number: %s", bad)
			}
		})
	}
}
