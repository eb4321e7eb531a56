package chat_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kvscout/kvscout/render/chat"
	"github.com/kvscout/kvscout/render/pyval"
)

func render(t *testing.T, src string, v chat.Vars, opts ...chat.Option) (string, error) {
	t.Helper()
	tmpl, err := chat.Parse(src, opts...)
	if err != nil {
		return "", err
	}
	return tmpl.Execute(context.Background(), v)
}

// TestCase18_ToolSchemas: key order kept, nothing escaped, Python's separators.
func TestCase18_ToolSchemas(t *testing.T) {
	tool, err := pyval.ParseString(`{"name":"f","description":"temp > 10 & hum < 50 (user's, café)","parameters":{"pattern":"x","include":1.0}}`)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"name": "f", "description": "temp > 10 & hum < 50 (user's, café)", "parameters": {"pattern": "x", "include": 1.0}}`
	if got, err := render(t, "{{ tool|tojson }}", chat.Vars{"tool": tool}); got != want || err != nil {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

// TestCase69_UnknownFilterIsNoPrompt: an error with the name, at load; never an empty text.
func TestCase69_UnknownFilterIsNoPrompt(t *testing.T) {
	if _, err := render(t, "{{ messages|nosuch }}", nil); !errors.Is(err, chat.ErrUnsupported) {
		t.Errorf("%v, want ErrUnsupported", err)
	}
	got, err := render(t, "{% for m in l %}{% if m.startswith('a') %}{% continue %}{% endif %}{{ m.strip() }}{{ l.0 }}{% endfor %}",
		chat.Vars{"l": pyval.NewList("a", " b ")})
	if got != "ba" || err != nil {
		t.Errorf("%q, %v, want \"ba\"", got, err)
	}
}

// TestCase137_DateInThePrompt: the default where it is undefined, and the engine's clock and zone for the function.
func TestCase137_DateInThePrompt(t *testing.T) {
	src := "{{ date_string|default('26 Jul 2024') }} {{ strftime_now('%Y-%m-%d') }}"
	at := time.Date(2026, 1, 31, 23, 59, 59, 0, time.UTC)
	for zone, want := range map[*time.Location]string{time.UTC: "2026-01-31", time.FixedZone("UTC+9", 9*3600): "2026-02-01"} {
		clock := chat.WithClock(func() time.Time { return at.In(zone) })
		if got, err := render(t, src, nil, clock); got != "26 Jul 2024 "+want || err != nil {
			t.Errorf("%s: %q, %v, want %s", zone, got, err, want)
		}
	}
}
