package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"golang.org/x/term"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/kvscout/kvscout/cmd/kvscout/dashboard"
)

// protoJSON writes one message as one line of its standard JSON form, zeros included.
func protoJSON(w io.Writer, m proto.Message) error {
	data, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m)
	if err != nil {
		return err
	}
	var line bytes.Buffer
	if err := json.Compact(&line, data); err != nil { // protojson varies its spaces on purpose
		return err
	}
	line.WriteByte('\n')
	_, err = line.WriteTo(w)
	return err
}

// table writes aligned columns.
type table struct{ tab *tabwriter.Writer }

// newTable begins a table with its header.
func newTable(w io.Writer, columns ...any) *table {
	t := &table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	t.row(columns...)
	return t
}

func (t *table) row(cells ...any) {
	for i, c := range cells {
		if i > 0 {
			fmt.Fprint(t.tab, "\t")
		}
		fmt.Fprint(t.tab, dashboard.Printable(fmt.Sprint(c))) // ids and faults are others' words
	}
	fmt.Fprintln(t.tab)
}

func (t *table) flush() error { return t.tab.Flush() }

// orDash shows that there is nothing.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// percent is part of whole, "-" of nothing.
func percent(part, whole int) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(whole))
}

// seconds shows an age or a duration in a few characters.
func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(10 * time.Millisecond).String()
}

// isTerminal says whether w shows to a person.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
