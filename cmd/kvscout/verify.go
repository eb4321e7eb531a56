package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/render"
	"github.com/kvscout/kvscout/scorer/verify"
)

// verification is the JSON form of all files.
type verification struct {
	Files    []verify.Report `json:"files"`
	Requests int             `json:"requests"`
	Wrong    int             `json:"wrong"`
}

// verifyOptions are the settings of `kvscout verify`.
type verifyOptions struct {
	modelOptions
	render, json, verbose bool
}

func newVerify() *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use:   "verify FILE...",
		Short: "Compare predictions with what engines reported in recordings",
		Long: `Play recordings in process, predict each recorded request at its time, and compare the prediction with the number that
the engine itself reported (cached_tokens). A directory means every recording in it (.kvrec and .jsonl).

Columns: EQUAL, OVER and UNDER compare the numbers, bounds included; BOUNDS are answers that claimed to be bounds and
held; WRONG are exact answers that differ and bounds that did not hold. The command exits with 1 if any is wrong, or if
a file is cut off or has records that cannot be read.

With --render each prediction starts from the recorded HTTP body instead of its token ids: wrong then counts also what was
rendered to other tokens than the engine ran. Requests that cannot be rendered exactly are left out, which is told.`,
		Example: `  kvscout verify w0.kvrec
  kvscout verify --verbose recordings/
  kvscout verify --json recordings/ | jq .wrong
  kvscout verify --render --profile vllm --tokenizer models/qwen3 w0.kvrec`,
		Args: someArgs("recording"),
		RunE: func(cmd *cobra.Command, args []string) error { return runVerify(cmd, args, &o) },
	}
	o.register(cmd.Flags())
	o.registerRemote(cmd.Flags())
	cmd.Flags().BoolVar(&o.render, "render", false, "predict from the recorded bodies, rendered by --tokenizer and --profile, or by --renderer")
	cmd.Flags().BoolVar(&o.json, "json", false, "print the result as JSON and nothing else")
	cmd.Flags().BoolVar(&o.verbose, "verbose", false, "tell of each wrong prediction on standard error: its number in the file and the numbers compared")
	return cmd
}

func runVerify(cmd *cobra.Command, args []string, o *verifyOptions) error {
	opts, closing, err := o.verification()
	if err != nil {
		return err
	}
	defer closing()
	paths, err := recordingsIn(args)
	if err != nil {
		return err
	}
	stderr := cmd.ErrOrStderr()
	v := verification{Files: []verify.Report{}}
	incomplete := 0
	progress := newProgress(stderr, "verify")
	for i, path := range paths {
		report, err := verifyFile(cmd.Context(), path, stderr, opts, o.verbose, func(done, size int64) {
			progress.show(int64(i)*1000+1000*done/max(size, 1), int64(len(paths))*1000)
		})
		if err != nil {
			progress.end()
			return err
		}
		if report.Torn {
			warn(stderr, "%s: its end is missing, what came before was verified", path)
		}
		if report.Bad > 0 {
			warn(stderr, "%s: %d places could not be read; bounds tell what that leaves unknown", path, report.Bad)
		}
		if report.Unrendered > 0 {
			warn(stderr, "%s: %d requests are left out, because their bodies cannot be rendered exactly in process", path, report.Unrendered)
		}
		if report.Torn || report.Bad > 0 {
			incomplete++
		}
		v.Files = append(v.Files, report)
		v.Requests += report.Requests
		v.Wrong += report.Wrong
	}
	progress.end()
	if o.json {
		err = json.NewEncoder(cmd.OutOrStdout()).Encode(v)
	} else {
		err = printVerification(cmd.OutOrStdout(), v)
	}
	switch {
	case err != nil:
		return err
	case v.Wrong > 0:
		return fmt.Errorf("%w: %d of %d answers", errWrong, v.Wrong, v.Requests)
	case incomplete > 0:
		return fmt.Errorf("%w: %d of %d recordings", errIncomplete, incomplete, len(paths))
	default:
		return nil
	}
}

// verification are the options of package verify. closing is to be called after the last use of them.
func (o *verifyOptions) verification() (opts verify.Options, closing func(), err error) {
	if !o.render {
		if o.tokenizer != "" || o.url != "" {
			return opts, nil, misuse("tokenizer and renderer belong to render")
		}
		return opts, func() {}, nil
	}
	r, closing, err := o.open()
	if err != nil {
		return verify.Options{}, nil, err
	}
	return verify.Options{Render: func(ctx context.Context, path string, body []byte) ([]uint32, []indexer.Feature, error) {
		result, err := r.Render(ctx, render.Request{Path: path, Body: body})
		if errors.Is(err, render.ErrNotExact) {
			err = fmt.Errorf("%w: %w", verify.ErrUnrendered, err)
		}
		if err != nil {
			return nil, nil, saying(err)
		}
		if len(result.Prompts) != 1 {
			return nil, nil, fmt.Errorf("a body of %d prompts", len(result.Prompts))
		}
		var features []indexer.Feature
		for _, f := range result.Prompts[0].Features {
			features = append(features, indexer.Feature{Hash: f.Hash, Offset: f.Offset, Length: f.Length})
		}
		return result.Prompts[0].Tokens, features, nil
	}}, closing, nil
}

func verifyFile(ctx context.Context, path string, stderr io.Writer, opts verify.Options, verbose bool, progress func(done, size int64)) (verify.Report, error) {
	opts.Progress = progress
	if verbose {
		opts.Observe = func(p verify.Prediction) {
			if p.Wrong {
				warn(stderr, "%s: %s", path, wrongPrediction(p))
			}
		}
	}
	return verify.File(ctx, path, opts)
}

func wrongPrediction(p verify.Prediction) string {
	s := fmt.Sprintf("request %d on %s: predicted %d tokens, the engine reported %d", p.Index, p.Source, p.Predicted, p.Reported)
	if p.HasHost {
		s += fmt.Sprintf("; from host memory %d, reported %d", p.HostPredicted, p.HostReported)
	}
	if p.Differs {
		s += "; the body was rendered to other tokens than it ran"
	}
	if reasons := p.Bound.Reasons(); len(reasons) > 0 {
		s += " (a bound: " + strings.Join(reasons, ", ") + ")"
	}
	return s
}

func printVerification(w io.Writer, v verification) error {
	t := newTable(w, "FILE", "REQUESTS", "EQUAL", "OVER", "UNDER", "BOUNDS", "WRONG", "SECONDS")
	var sum verify.Report
	for _, r := range v.Files {
		t.row(filepath.Base(r.File), r.Requests, r.Equal, r.Over, r.Under, r.Bounds, r.Wrong, fmt.Sprintf("%.2f", r.Seconds))
		sum.Equal += r.Equal
		sum.Over += r.Over
		sum.Under += r.Under
		sum.Bounds += r.Bounds
		sum.Seconds += r.Seconds
	}
	t.row("total", v.Requests, sum.Equal, sum.Over, sum.Under, sum.Bounds, v.Wrong, fmt.Sprintf("%.2f", sum.Seconds))
	return t.flush()
}

// recordingsIn lists the files that args mean: themselves, or the recordings in a directory, by name.
func recordingsIn(args []string) ([]string, error) {
	var out []string
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			out = append(out, arg)
			continue
		}
		before := len(out)
		err = filepath.WalkDir(arg, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && slices.Contains([]string{".kvrec", ".jsonl"}, filepath.Ext(path)) {
				out = append(out, path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if len(out) == before {
			return nil, fmt.Errorf("%s: no recordings (.kvrec or .jsonl)", arg)
		}
	}
	return out, nil
}
