package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kvscout/kvscout/render"
)

// golden is a recorded body with what an engine made of it.
type golden struct {
	Name   string     `json:"name"`
	Path   string     `json:"path"`
	Body   *string    `json:"body"`
	Base64 []byte     `json:"body_base64"` // for a body that is no UTF-8
	Status int        `json:"status"`
	Tokens [][]uint32 `json:"token_ids"`
}

// checked is the JSON form of a check. Cases = Equal + Refused + ErrorsEqual + Wrong.
type checked struct {
	Cases       int             `json:"cases"`
	Equal       int             `json:"equal"`
	Refused     int             `json:"refused"`
	ErrorsEqual int             `json:"errors_equal"`
	Wrong       int             `json:"wrong"`
	Details     []checkedDetail `json:"details"`
}

// checkedDetail is one case: equal, refused, errors_equal or wrong, and why.
type checkedDetail struct {
	Name    string `json:"name"`
	Outcome string `json:"outcome"`
	Reason  string `json:"reason"`
}

const (
	outcomeEqual   = "equal"
	outcomeRefused = "refused"
	outcomeErrors  = "errors_equal"
	outcomeWrong   = "wrong"
)

func checkGoldens(cmd *cobra.Command, r render.Renderer, path string, asJSON bool) error {
	out := checked{Details: []checkedDetail{}}
	err := eachGolden(path, func(g *golden) error {
		if err := cmd.Context().Err(); err != nil {
			return err
		}
		out.add(g.Name, r, g, cmd)
		return nil
	})
	if err != nil {
		return err
	}
	if out.Cases == 0 {
		return fmt.Errorf("%s: no recorded bodies", path)
	}
	if asJSON {
		err = json.NewEncoder(cmd.OutOrStdout()).Encode(out)
	} else {
		err = out.print(cmd.OutOrStdout())
	}
	if err == nil && out.Wrong > 0 {
		err = fmt.Errorf("%w: %d of %d bodies", errWrong, out.Wrong, out.Cases)
	}
	return err
}

func (c *checked) add(name string, r render.Renderer, g *golden, cmd *cobra.Command) {
	outcome, reason := g.judge(cmd.Context(), r)
	c.Cases++
	switch outcome {
	case outcomeEqual:
		c.Equal++
	case outcomeRefused:
		c.Refused++
	case outcomeErrors:
		c.ErrorsEqual++
	default:
		c.Wrong++
	}
	c.Details = append(c.Details, checkedDetail{Name: name, Outcome: outcome, Reason: reason})
}

// judge renders the body and compares. Where both refuse, the reasons need not agree: the engine's are for people.
func (g *golden) judge(ctx context.Context, r render.Renderer) (outcome, reason string) {
	body := g.Base64
	if g.Body != nil {
		body = []byte(*g.Body)
	}
	result, err := r.Render(ctx, render.Request{Path: g.Path, Body: body})
	engineErred := g.Status != 200
	switch {
	case err != nil && engineErred:
		return outcomeErrors, saying(err).Error()
	case err != nil && errors.Is(err, render.ErrNotExact):
		return outcomeRefused, err.Error()
	case err != nil:
		return outcomeWrong, fmt.Sprintf("the engine rendered it, we did not: %v", saying(err))
	case engineErred:
		return outcomeWrong, fmt.Sprintf("the engine refused it with status %d, we rendered it", g.Status)
	case len(result.Prompts) != len(g.Tokens):
		return outcomeWrong, fmt.Sprintf("%d prompts, the engine made %d", len(result.Prompts), len(g.Tokens))
	}
	for i, p := range result.Prompts {
		if !slices.Equal(p.Tokens, g.Tokens[i]) {
			return outcomeWrong, fmt.Sprintf("prompt %d: %s", i, firstDifference(p.Tokens, g.Tokens[i]))
		}
	}
	return outcomeEqual, ""
}

func firstDifference(got, want []uint32) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("token %d is %d, the engine's %d (of %d and %d)", i, got[i], want[i], len(got), len(want))
		}
	}
	return fmt.Sprintf("%d tokens, the engine's %d", len(got), len(want))
}

// eachGolden reads a file of recorded bodies, one at a time.
func eachGolden(path string, fn func(*golden) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxFileBytes)
	for n := 1; lines.Scan(); n++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		g := new(golden)
		if err := json.Unmarshal(lines.Bytes(), g); err != nil {
			return fmt.Errorf("%s: line %d is no recorded body: %w", path, n, err)
		}
		if g.Path == "" || g.Status == 0 {
			return fmt.Errorf("%s: line %d has no path or no status", path, n)
		}
		if err := fn(g); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func (c *checked) print(w io.Writer) error {
	t := newTable(w, "CASES", "EQUAL", "ERRORS", "REFUSED", "WRONG")
	t.row(c.Cases, c.Equal, c.ErrorsEqual, c.Refused, c.Wrong)
	if err := t.flush(); err != nil {
		return err
	}
	for _, d := range c.Details {
		if d.Outcome == outcomeRefused || d.Outcome == outcomeWrong {
			if _, err := fmt.Fprintf(w, "%s: %s: %s\n", d.Outcome, d.Name, d.Reason); err != nil {
				return err
			}
		}
	}
	return nil
}
