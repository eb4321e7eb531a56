package dashboard

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// Rates are over the server's time, whatever the network's delays; a counter that fell began anew.
func TestNext_Rates(t *testing.T) {
	at := func(up time.Duration, stored, scored uint64, sources ...string) *kvscoutv1.Stats {
		s := &kvscoutv1.Stats{Uptime: durationpb.New(up), Score: &kvscoutv1.ScoreStats{Latency: &kvscoutv1.LatencyStats{
			Buckets: []*kvscoutv1.LatencyBucket{{LowerSeconds: 1, UpperSeconds: 2, Count: scored}}}}}
		for _, id := range sources {
			s.Sources = append(s.Sources, &kvscoutv1.SourceStats{WorkerId: id, StoredEvents: stored, Rejected: map[string]uint64{"x": stored / 2}})
		}
		return s
	}
	a := next(nil, at(10*time.Second, 100, 50, "a"), began)
	if a.scores.known || a.sources[0].stored.known {
		t.Errorf("the first answer has rates: %+v", a.sources[0])
	}
	b := next(a, at(12*time.Second, 160, 90, "a", "new"), began.Add(time.Hour))
	if s := b.sources[0]; s.stored != (rate{30, true}) || s.rejected != (rate{15, true}) || b.scores != (rate{20, true}) {
		t.Errorf("stored %v, rejected %v, scores %v", s.stored, s.rejected, b.scores)
	}
	if b.sources[1].stored.known || b.all.stored != (rate{30, true}) {
		t.Errorf("a source that was not there before: %v, all: %v", b.sources[1].stored, b.all.stored)
	}
	c := next(b, at(13*time.Second, 10, 91, "a"), began) // registered again
	if got := c.sources[0].stored; got != (rate{10, true}) {
		t.Errorf("a counter that fell: %v", got)
	}
	d := next(c, at(time.Second, 5, 1, "a"), began) // another process
	if d.scores.known || d.sources[0].stored.known || len(d.history) != 1 {
		t.Errorf("another process: scores %v, stored %v, %d points", d.scores, d.sources[0].stored, len(d.history))
	}
	for i := range 3 * maxHistory {
		d = next(d, at(time.Duration(2+i)*time.Second, 5, uint64(1+i), "a"), began)
	}
	if recent, span := d.recent(); len(d.history) != maxHistory || recent.Total() != window || span != window*time.Second {
		t.Errorf("%d points, %d calls over %v", len(d.history), recent.Total(), span)
	}
}

func TestFormat(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.01: "0.1", 0.04: "0.1", 1: "1", 5.998: "6", 9.5: "9.5", 9.97: "10", 42.4: "42", 999: "999", 999.6: "1k", 1234: "1.2k",
		99_949: "100k", 1_250_000: "1.2M", 3e9: "3G", 4.4e12: "4.4T", 1e16: ">999T", -1: "-",
	} {
		if got := short(v); got != want {
			t.Errorf("short(%v) = %q, want %q", v, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		0: "0s", 870: "870ns", 12_340: "12us", 999_600: "1ms", 3_440_000: "3.4ms", 1_250_000_000: "1.2s", 59_700_000_000: "1m00s",
		time.Hour: "1h00m", 49 * time.Hour: "2d", -1: "-", 1 << 62: ">9999d",
	} {
		if got := brief(d); got != want {
			t.Errorf("brief(%d) = %q, want %q", d, got, want)
		}
	}
	for p, want := range map[float64]string{0: "0%", 0.0001: "0.1%", 0.5: "50%", 0.9999: "99.9%", 1: "100%"} {
		if got := percentText(p); got != want {
			t.Errorf("percentText(%v) = %q, want %q", p, got, want)
		}
	}
	if got := spark([]float64{9, 0, 1, 4, 8}, 4); got != "▁▂▅█" {
		t.Errorf("spark = %q", got)
	}
	if got := ends("vllm-decode-7f9c-x2k9p", 11); got != "vllm-…x2k9p" {
		t.Errorf("ends = %q", got)
	}
}

// The stream is begun again whenever it breaks, less and less often, until it works; and when it falls silent.
func TestFollow(t *testing.T) { synctest.Test(t, testFollow) }

func testFollow(t *testing.T) {
	broken := errors.New("broken")
	calls := 0
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream := func(ctx context.Context, _ time.Duration, take func(*kvscoutv1.Stats)) error {
		switch calls++; calls {
		case 1, 2:
			return broken
		case 3:
			take(&kvscoutv1.Stats{})
			return nil
		case 4:
			<-ctx.Done() // silent
			return ctx.Err()
		default:
			cancel()
			return ctx.Err()
		}
	}
	var got []error
	var waits []time.Duration
	opts := Options{Interval: time.Second, Timeout: time.Minute, Stream: stream}
	follow(ctx, opts, func(msg any) {
		switch msg := msg.(type) {
		case answerMsg:
			got = append(got, nil)
		case lostMsg:
			got, waits = append(got, msg.err), append(waits, msg.again.Sub(msg.at))
		}
	})
	if want := []error{broken, broken, nil, errEnded, errSilent}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if want := []time.Duration{firstRetry, 2 * firstRetry, firstRetry, 2 * firstRetry}; !slices.Equal(waits, want) {
		t.Errorf("waits %v, want %v", waits, want)
	}
}
