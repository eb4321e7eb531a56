package main

import (
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const envPrefix = "KVSCOUT_"

// envName is the variable of a flag.
func envName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fileKey is the key of a flag in the file of --config.
func fileKey(flag string) string { return strings.ReplaceAll(flag, "-", "_") }

// notSettings are flags that only make sense on the command line.
var notSettings = map[string]bool{"help": true, "version": true}

// applyEnv gives every flag that was not given the value of its variable.
func applyEnv(flags *pflag.FlagSet) error {
	var faults []error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || notSettings[f.Name] {
			return
		}
		name := envName(f.Name)
		value := os.Getenv(name)
		if value == "" {
			return
		}
		values := []string{value}
		if repeatable(f) {
			values = strings.Split(value, ";")
		}
		if err := setFlag(flags, f, values); err != nil {
			faults = append(faults, misuse("variable %s: %w", name, err))
		}
	})
	return errors.Join(faults...)
}

// warnUnknown tells of variables that are no setting.
func warnUnknown(log *slog.Logger, root *cobra.Command) {
	for _, name := range unknownVariables(root) {
		log.Warn("variable is no setting of any command", "name", name)
	}
}

// unknownVariables are the KVSCOUT_ variables that are a flag of no command: mistyped, or somebody else's.
func unknownVariables(root *cobra.Command) []string {
	known := make(map[string]bool)
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known[envName(f.Name)] = true })
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(root)
	var out []string
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, envPrefix) && value != "" && !known[name] {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func repeatable(f *pflag.Flag) bool {
	_, ok := f.Value.(pflag.SliceValue)
	return ok
}

// setFlag sets f as if it had been given once for each value. It does not repeat a value that may be a secret.
func setFlag(flags *pflag.FlagSet, f *pflag.Flag, values []string) error {
	for _, v := range values {
		if err := flags.Set(f.Name, v); err != nil {
			if secretFlags[f.Name] {
				return errors.New("bad value")
			}
			return err
		}
	}
	return nil
}

// secretFlags are flags whose values are never shown.
var secretFlags = map[string]bool{"cache-salt": true, "extra-key": true, "header": true}
