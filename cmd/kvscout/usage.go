package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// Groups of commands, in the order of the help.
const (
	groupServe   = "serve"
	groupAsk     = "ask"
	groupPlay    = "play"
	groupMeasure = "measure"
)

// addGrouped adds commands under the heading of their group.
func addGrouped(root *cobra.Command, id, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: id, Title: title})
	for _, c := range commands {
		c.GroupID = id
	}
	root.AddCommand(commands...)
}

// flagGroup is the annotation by which the help puts flags under a heading of their own.
const flagGroup = "kvscout_group"

// groupFlags puts flags under a heading: those of these names and, where a name ends in "*", those that begin so.
func groupFlags(f *pflag.FlagSet, heading string, names ...string) {
	f.VisitAll(func(flag *pflag.Flag) {
		if slices.ContainsFunc(names, func(name string) bool {
			begin, open := strings.CutSuffix(name, "*")
			return flag.Name == name || open && strings.HasPrefix(flag.Name, begin)
		}) {
			_ = f.SetAnnotation(flag.Name, flagGroup, []string{heading}) // it errs for flags that are not there
		}
	})
}

// groupServeFlags puts the settings of the server under headings; what is left are those that everyone may need.
func groupServeFlags(f *pflag.FlagSet) {
	groupFlags(f, "Workers", "worker-*", "bind-peer", "config-poll", "health-every", "stale-after", "keep-on-gap", "ready-grace")
	groupFlags(f, "Workers in Kubernetes", "kube*")
	groupFlags(f, "Rendering", "render*", "strip-field", "tenant-header", "trust-caller-tokens", "fingerprint-mismatch")
	groupFlags(f, "Security", "tls-*", "callers", "cors-origin")
	groupFlags(f, "Limits", "max-*")
	groupFlags(f, "Weights of tiers", "weight-*")
	groupFlags(f, "Operators", "admin-listen", "log-*", "block-profile-rate", "mutex-profile-fraction", "otlp-*", "trace*")
	groupFlags(f, "Log shared with other servers", "nats*", "ingest", "replica")
}

// usage writes how a command is called: the part of its help behind the description.
func usage(cmd *cobra.Command) error {
	w := cmd.OutOrStderr()
	fmt.Fprintf(w, "Usage:\n")
	if cmd.Runnable() && cmd.HasParent() {
		fmt.Fprintf(w, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s COMMAND [flags]\n", cmd.CommandPath())
	}
	if cmd.HasExample() {
		fmt.Fprintf(w, "\nExamples:\n%s\n", cmd.Example)
	}
	for _, g := range cmd.Groups() {
		usageCommands(w, cmd, g.Title, g.ID)
	}
	title := "Commands:"
	if len(cmd.Groups()) > 0 {
		title = "More:"
	}
	usageCommands(w, cmd, title, "")
	usageFlags(w, cmd, columnsOf(cmd.Root().OutOrStdout()))
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\n\"%s COMMAND --help\" teaches each.\n", cmd.CommandPath())
	}
	return nil
}

func usageCommands(w io.Writer, cmd *cobra.Command, title, group string) {
	first := true
	for _, c := range cmd.Commands() {
		if c.GroupID != group || !c.IsAvailableCommand() && c.Name() != "help" {
			continue
		}
		if first {
			fmt.Fprintf(w, "\n%s\n", title)
			first = false
		}
		fmt.Fprintf(w, "  %-*s  %s\n", cmd.NamePadding(), c.Name(), c.Short)
	}
}

// usageFlags lists the flags without a heading first, then those of each heading.
func usageFlags(w io.Writer, cmd *cobra.Command, columns int) {
	var headings []string
	groups := make(map[string]*pflag.FlagSet)
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		heading := "Flags"
		if h := f.Annotations[flagGroup]; len(h) > 0 {
			heading = h[0]
		}
		if groups[heading] == nil {
			groups[heading] = pflag.NewFlagSet(heading, pflag.ContinueOnError)
			headings = append(headings, heading)
		}
		groups[heading].AddFlag(f)
	})
	slices.SortFunc(headings, func(a, b string) int {
		if (a == "Flags") != (b == "Flags") {
			return map[bool]int{true: -1, false: 1}[a == "Flags"]
		}
		return strings.Compare(a, b)
	})
	for _, h := range headings {
		fmt.Fprintf(w, "\n%s:\n%s", h, groups[h].FlagUsagesWrapped(columns))
	}
}

// columnsOf is the width of the terminal that w is, 0 if it is none.
func columnsOf(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil {
			return n
		}
	}
	return 0
}
