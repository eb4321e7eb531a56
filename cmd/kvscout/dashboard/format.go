package dashboard

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// short shows a number in at most 5 characters: 999, 1.2k, 123k, 1.2M.
func short(v float64) string {
	if v < 0 || math.IsNaN(v) {
		return "-"
	}
	if v == 0 {
		return "0"
	}
	v = max(v, 0.1)
	for _, unit := range []string{"", "k", "M", "G", "T"} {
		if v < 999.5 {
			return digits(v) + unit
		}
		v /= 1000
	}
	return ">999T"
}

// digits shows a number under 1000 by at most three characters.
func digits(v float64) string {
	if v < 9.95 {
		return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

func count(n uint64) string { return short(float64(n)) }

// perSecond shows a rate with its unit, "-" where none is known.
func perSecond(r rate) string {
	if !r.known {
		return "-"
	}
	return short(r.v) + "/s"
}

// bytesText shows an amount of memory.
func bytesText(n uint64) string {
	v := float64(n)
	for _, unit := range []string{"B", "KiB", "MiB", "GiB"} {
		if v < 1024 {
			return digits(v) + " " + unit
		}
		v /= 1024
	}
	return fmt.Sprintf("%.1f TiB", v)
}

// brief shows a duration in at most 6 characters: 870ns, 12us, 3.4ms, 1.2s, 3m20s, 4h10m, 12d.
func brief(d time.Duration) string {
	switch {
	case d < 0:
		return "-"
	case d == 0:
		return "0s"
	case d < time.Microsecond:
		return fmt.Sprintf("%dns", d)
	case d < time.Millisecond-500*time.Nanosecond:
		return unitText(d, time.Microsecond, "us")
	case d < time.Second-500*time.Microsecond:
		return unitText(d, time.Millisecond, "ms")
	case d < time.Minute-500*time.Millisecond:
		return unitText(d, time.Second, "s")
	}
	d = d.Round(time.Second)
	switch {
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	case d < 10_000*24*time.Hour:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	default:
		return ">9999d"
	}
}

func unitText(d, unit time.Duration, name string) string {
	return digits(float64(d)/float64(unit)) + name
}

// secondsText shows seconds that a message states; absent is "-".
func secondsText(s *float64) string {
	if s == nil {
		return "-"
	}
	return brief(durationOf(*s))
}

// durationOf is seconds as a duration, within what one can hold.
func durationOf(s float64) time.Duration {
	const most = 100 * 365 * 24 * 3600
	if !(s > 0) {
		return 0
	}
	return time.Duration(min(s, most) * float64(time.Second))
}

// percentText shows a share.
func percentText(p float64) string {
	switch {
	case p > 0.99 && p < 1:
		return strconv.FormatFloat(math.Floor(1000*p)/10, 'f', 1, 64) + "%" // never 100 for less
	case p > 0 && p < 0.01:
		return strconv.FormatFloat(max(0.1, 100*p), 'f', 1, 64) + "%" // never 0 for more
	}
	return strconv.FormatFloat(100*p, 'f', 0, 64) + "%"
}

// plural is "1 source", "2 sources".
func plural(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return count(n) + " " + what + "s"
}

// countsText lists counters, the largest first; "none" without any.
func countsText(m map[string]uint64) string {
	if len(m) == 0 {
		return "none"
	}
	names := slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		if m[a] != m[b] {
			if m[a] > m[b] {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for _, name := range names {
		parts = append(parts, clean(name)+" "+count(m[name]))
	}
	return strings.Join(parts, ", ")
}

// word is an enum value as people read it: TIER_DEVICE is device.
func word(value fmt.Stringer, prefix string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(value.String(), prefix)), "_", " ")
}

// spark draws values as a line of bars, the newest at the right, within width.
func spark(values []float64, width int) string {
	bars := []rune("▁▂▃▄▅▆▇█")
	if len(values) > width {
		values = values[len(values)-max(0, width):]
	}
	var top float64
	for _, v := range values {
		top = max(top, v)
	}
	var b strings.Builder
	for _, v := range values {
		i := 0
		if top > 0 && v > 0 {
			i = min(len(bars)-1, int(v/top*float64(len(bars)-1)+0.5))
		}
		b.WriteRune(bars[i])
	}
	return b.String()
}
