package kubernetes

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/discover"
)

// prefix of the annotations and labels that are settings.
const prefix = "kvscout.io/"

// errSetting is an annotation or a label that cannot be understood.
var errSetting = errors.New("bad setting")

// maxValue bounds the value of a setting in bytes.
const maxValue = 1024

// settings are what annotations and labels say of an object's workers. Zero is not stated.
type settings struct {
	role, model string
	fingerprint string // of the configuration by which the worker renders
	aliases     []string
	port        string // of the engine's HTTP server: a name or a number
	ask         bool   // whether the worker is asked about itself; stated or not
	events      uint16 // port of the event stream of the first rank
	replay      uint16
	ranks       int
	source      events.Source // what is common to all ranks; without endpoints
}

// setters read one value each. Their names are those of the command line's sources, but for endpoints, which are the pod's.
var setters = map[string]func(s *settings, value string) error{
	"role": func(s *settings, v string) error {
		if s.role = discover.RoleOf(map[string]string{prefix + "role": v}); s.role == "" {
			return errors.New("want prefill, decode or both")
		}
		return nil
	},
	"port": func(s *settings, v string) (err error) {
		s.port = v
		_, _, err = parsePort(v)
		return err
	},
	"ask":                func(s *settings, v string) error { return setBool(&s.ask, v) },
	"model":              func(s *settings, v string) error { s.model = v; return nil },
	"aliases":            func(s *settings, v string) error { s.aliases = strings.Split(v, ","); return nil },
	"render-fingerprint": func(s *settings, v string) error { s.fingerprint = v; return nil },
	"engine":             func(s *settings, v string) error { s.source.Engine = events.Engine(v); return nil },
	"version":            func(s *settings, v string) error { s.source.Version = v; return nil },
	"topic":              func(s *settings, v string) error { s.source.Topic = v; return nil },
	"hash-format":        func(s *settings, v string) error { s.source.HashFormat = v; return nil },
	"block-size":         func(s *settings, v string) error { return setCount(&s.source.BlockSize, v, 1<<20) },
	"ranks":              func(s *settings, v string) error { return setCount(&s.ranks, v, events.MaxRanks) },
	"eagle":              func(s *settings, v string) error { return setBool(&s.source.PairKeys, v) },
	"reuse-reports":      func(s *settings, v string) error { return setBool(&s.source.ReuseReports, v) },
	"events-port":        func(s *settings, v string) error { return setNumber(&s.events, v) },
	"replay-port":        func(s *settings, v string) error { return setNumber(&s.replay, v) },
	"speculative": func(s *settings, v string) error {
		if v != "eagle" {
			return errors.New("only eagle is known")
		}
		s.source.SpeculativeEAGLE = true
		return nil
	},
	"unpublished": func(s *settings, v string) error {
		for h := range strings.SplitSeq(v, ",") {
			s.source.Unpublished = append(s.source.Unpublished, events.Hidden(h))
		}
		return nil
	},
}

// readSettings reads an object's settings. An annotation goes before the label of the same name: slices have their
// Service's labels, and none of its annotations. An annotation of our prefix that is none of them is a fault, a label is
// not: it may be there to be selected. All faults are returned, each wrapping errSetting.
func readSettings(annotations, labels map[string]string) (settings, error) {
	s := settings{ask: true}
	var faults []error
	for key := range annotations {
		if name, ours := strings.CutPrefix(key, prefix); ours && setters[name] == nil {
			faults = append(faults, fmt.Errorf("%w: annotation %.100s is unknown", errSetting, key))
		}
	}
	for name, set := range setters {
		value, ok := annotations[prefix+name]
		if !ok {
			if value, ok = labels[prefix+name]; !ok {
				continue
			}
		}
		err := fmt.Errorf("%d bytes, limit %d", len(value), maxValue)
		if len(value) <= maxValue {
			err = set(&s, value)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%w: %s%s=%.100q: %w", errSetting, prefix, name, value, err))
		}
	}
	if len(faults) == 0 {
		_, err := s.sources("w", "127.0.0.1")
		if err != nil {
			faults = append(faults, fmt.Errorf("%w: %w", errSetting, err))
		}
	}
	slices.SortFunc(faults, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) }) // maps have no order
	return s, errors.Join(faults...)
}

// sources are the event streams of a worker at a host: one for each rank, or one without endpoints that speaks of every
// rank that the worker tells.
func (s settings) sources(worker, host string) ([]events.Source, error) {
	src := s.source
	if s.events != 0 {
		src.Events = endpoint(host, s.events)
		if s.replay != 0 {
			src.Replay = endpoint(host, s.replay)
		}
	} else if s.ranks != 0 || s.replay != 0 || !s.ask {
		return nil, fmt.Errorf("%sevents-port is missing: ranks and replay-port belong to it, and a worker that is not asked needs it", prefix)
	}
	check := src
	check.Worker, check.Engine = worker, engineOrAny(src.Engine)
	if err := check.Validate(); err != nil {
		return nil, err
	}
	return src.Ranks(s.ranks)
}

func endpoint(host string, port uint16) string {
	return "tcp://" + net.JoinHostPort(host, strconv.Itoa(int(port)))
}

func setBool(to *bool, v string) (err error) {
	*to, err = strconv.ParseBool(v)
	return err
}

func setCount(to *int, v string, limit int) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > limit {
		return fmt.Errorf("want a number of 1 to %d", limit)
	}
	*to = n
	return nil
}

func setNumber(to *uint16, v string) error {
	n, name, err := parsePort(v)
	if err != nil || name != "" {
		return errors.New("want a port number")
	}
	*to = n
	return nil
}

// parsePort reads a port's number, or else its name.
func parsePort(v string) (number uint16, name string, err error) {
	if n, err := strconv.Atoi(v); err == nil {
		number, err = checkPort(int32(max(min(n, 1<<20), -1)))
		return number, "", err
	}
	if why := validation.IsValidPortName(v); len(why) > 0 {
		return 0, "", fmt.Errorf("%.100q is no port: %s", v, why[0])
	}
	return 0, v, nil
}
