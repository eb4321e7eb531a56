package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// newRoot builds the command tree.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "kvscout",
		Short: "Which workers already hold how much of a prompt in their KV cache?",
		Long: `kvscout listens to the KV-cache events of inference engines (vLLM, SGLang, TensorRT-LLM) and answers, for a request,
which workers already hold how much of its prompt, and whether that is exact.

Every flag may also be given as an environment variable: --listen is KVSCOUT_LISTEN, --max-prompt-tokens is
KVSCOUT_MAX_PROMPT_TOKENS. A flag beats its variable; an empty variable is as none. Values of a flag that may be
repeated are separated by ";" in a variable.

Exit codes: 0 done, 1 failed (verify and simulate: an answer was wrong; replay and verify: a recording was incomplete),
2 called wrongly.`,
		Example: `  kvscout serve --source id=w0,engine=vllm,model=qwen3,events=tcp://10.0.0.7:5557,replay=tcp://10.0.0.7:5558
  kvscout score --model qwen3 --tokens ids.json
  kvscout top
  kvscout verify recordings/`,
		Args:              noCommand,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return applyEnv(cmd.Flags()) },
		SilenceUsage:      true,
		SilenceErrors:     true,
		Version:           version(),

		SuggestionsMinimumDistance: 2, // letters that may differ in a name meant
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.SetUsageFunc(usage)
	addGrouped(root, groupServe, "The service:", newServe(), newSnapshot())
	addGrouped(root, groupAsk, "Ask and steer a running one:", newScore(), newWorkers(), newStats(), newTop(), newInspect(), newDump(),
		newReport(), newClear())
	addGrouped(root, groupPlay, "Recordings and proof:", newRecord(), newReplay(), newVerify(), newRender())
	addGrouped(root, groupMeasure, "Without engines:", newSimulate(), newBench())
	root.AddCommand(newVersion())
	return root
}

// noCommand refuses arguments of the root: they are no command.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf(", did you mean %q?", near[0])
	}
	return misuse("unknown command %q%s", args[0], hint)
}

// commandName is a command as called, without the program's name, which begins every error anyway.
func commandName(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}

// noArgs refuses arguments.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return misuse("%s takes no argument, got %q", commandName(cmd), args[0])
	}
	return nil
}

// someArgs asks for at least one argument, which what names.
func someArgs(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return misuse("%s needs at least one %s", commandName(cmd), what)
		}
		return nil
	}
}

// oneArg asks for exactly one argument, which what names.
func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return misuse("%s needs one %s, got %d arguments", commandName(cmd), what, len(args))
		}
		return nil
	}
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    "Print the version of kvscout, the Go version that built it and the platform.",
		Example: "  kvscout version",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "kvscout %s %s %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// release is the version that tools/release.sh gave, empty in other builds.
var release string

// version is that of the release, else what the Go toolchain stamped into the binary.
func version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
