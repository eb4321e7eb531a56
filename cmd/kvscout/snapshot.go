package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kvscout/kvscout/indexer"
	"github.com/kvscout/kvscout/indexer/snapshot"
)

func newSnapshot() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Look into a file of serve --snapshot",
		Example: `  kvscout serve --config kvscout.yaml --snapshot kvscout.snapshot
  kvscout snapshot info kvscout.snapshot`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	asJSON := false
	info := &cobra.Command{
		Use:   "info FILE",
		Short: "Prove a snapshot whole, and show what is in it",
		Long: `Read a snapshot from end to end, prove it whole, and show each source in it: the last batch that it has, and how many
blocks are held. A damaged file, or one of another version, is an error. Cache salts are not shown.`,
		Example: `  kvscout snapshot info kvscout.snapshot
  kvscout snapshot info kvscout.snapshot --json | jq .sources[].blocks`,
		Args: oneArg("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			i, err := readInfo(args[0], time.Now())
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(i)
			}
			return i.print(cmd.OutOrStdout())
		},
	}
	info.Flags().BoolVar(&asJSON, "json", false, "print one JSON object and nothing else")
	cmd.AddCommand(info)
	return cmd
}

// snapshotInfo is what `kvscout snapshot info` tells.
type snapshotInfo struct {
	Version int              `json:"version"`
	Created time.Time        `json:"created"`
	Age     float64          `json:"age_seconds"`
	Bytes   int64            `json:"bytes"`
	Sources []snapshotSource `json:"sources"`
}

// snapshotSource is one rank of one worker.
type snapshotSource struct {
	Worker   string    `json:"worker"`
	Rank     int       `json:"rank"`
	Model    string    `json:"model"`
	Engine   string    `json:"engine"`
	Sequence uint64    `json:"sequence"` // of the stream that it is on
	Received time.Time `json:"received"` // that batch
	Scopes   int       `json:"scopes"`
	Blocks   int       `json:"blocks"` // a block under two hashes counts twice
	Reasons  []string  `json:"reasons,omitempty"`
	Waiting  int       `json:"waiting,omitempty"` // stores left out
}

func readInfo(path string, now time.Time) (*snapshotInfo, error) {
	f, err := snapshot.Open(path, snapshot.Any)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := &snapshotInfo{
		Version: f.Version, Created: f.Created, Age: now.Sub(f.Created).Seconds(), Bytes: f.Bytes, Sources: []snapshotSource{},
	}
	var s indexer.Saved
	for i := range f.Streams() {
		if err := f.Stream(i, &s); err != nil {
			return nil, err
		}
		for j := range s.Books {
			b := &s.Books[j]
			out.Sources = append(out.Sources, snapshotSource{
				Worker: s.Source.Worker, Rank: b.Rank, Model: s.Source.Model, Engine: string(s.Source.Engine),
				Sequence: s.Cursor.Seq, Received: s.Cursor.At, Scopes: len(b.Scopes), Blocks: len(b.Hashes),
				Reasons: b.Doubts, Waiting: b.Waiting,
			})
		}
	}
	return out, nil
}

func (i *snapshotInfo) print(w io.Writer) error {
	fmt.Fprintf(w, "snapshot version %d, whole, written %s (%v ago), %d bytes, %d sources\n", i.Version,
		i.Created.UTC().Format(time.RFC3339), time.Duration(i.Age*float64(time.Second)).Round(time.Second), i.Bytes, len(i.Sources))
	if len(i.Sources) == 0 {
		return nil
	}
	t := newTable(w, "WORKER", "RANK", "MODEL", "ENGINE", "SEQUENCE", "RECEIVED", "SCOPES", "BLOCKS", "WAITING", "BOUND")
	for _, s := range i.Sources {
		t.row(s.Worker, s.Rank, orDash(s.Model), orDash(s.Engine), s.Sequence, s.Received.UTC().Format(time.RFC3339), s.Scopes,
			s.Blocks, s.Waiting, orElse(strings.Join(s.Reasons, ", "), "exact"))
	}
	return t.flush()
}
