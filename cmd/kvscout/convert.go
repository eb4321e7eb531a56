package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/kvscout/kvscout/events/recording"
)

func newConvert() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "convert FILE",
		Short: "Write a recording in the dump form",
		Long: `Write a recording, of JSON lines or any other form that is read, in the dump form. Records that cannot be read are
counted and left out; the command then exits with 1.`,
		Example: `  kvscout record convert w0.jsonl -o w0.kvrec`,
		Args:    oneArg("recording"),
		RunE:    func(cmd *cobra.Command, args []string) error { return runConvert(cmd, args[0], output) },
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "`FILE` to write; one that exists is emptied")
	return cmd
}

func runConvert(cmd *cobra.Command, input, output string) (err error) {
	if output == "" {
		return misuse("give --output FILE")
	}
	r, err := recording.Open(input)
	if err != nil {
		return err
	}
	defer r.Close()
	if same(input, output) {
		return misuse("%s cannot be written while it is read", output)
	}
	w, err := recording.Create(output)
	if err != nil {
		return err
	}
	c, err := recording.Convert(w, r)
	if closed := w.Close(); err == nil {
		err = closed
	}
	warn(cmd.ErrOrStderr(), "%d sources, %d batches, %d requests, %d notes, %d replay records; left out: %d bad, %d unknown",
		c.Sources, c.Messages, c.Requests, c.Notes, c.ReplayRequests+c.ReplayReplies, c.Bad, c.Unknown)
	if errors.Is(err, recording.ErrTorn) {
		err = fmt.Errorf("%w: %w", errIncomplete, err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", input, err)
	}
	return nil
}

// same says whether two paths name one file.
func same(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
