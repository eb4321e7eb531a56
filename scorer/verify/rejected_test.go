package verify

import (
	"context"
	"io"
	"path/filepath"
	"testing"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/events/recording"
)

// A healthy engine's stream, heard from its start, leaves nothing to reject: no event, no removal of what is not known,
// no orphan. Only vllm-0.32-base was joined late.
func TestRecordings_NothingRejected(t *testing.T) {
	for name := range recorded {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(recordings, name+".kvrec")
			complete, err := histories(path)
			if err != nil {
				t.Fatal(err)
			}
			r, err := recording.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			p := newPlayer(Options{}, complete)
			for {
				rec, err := r.Next()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if err := p.play(context.Background(), rec); err != nil {
					t.Fatal(err)
				}
			}
			for id, f := range p.feeds {
				s := f.writer.Ledger().Stats()
				for reason, n := range s.Rejected {
					if n > 0 && complete[id] {
						t.Errorf("%s: %d %v", id, n, events.Reason(reason))
					}
				}
				if s.OrphanStores+s.OrphansDropped > 0 || s.Gaps > 0 {
					t.Errorf("%s: %d orphans, %d gaps", id, s.OrphanStores+s.OrphansDropped, s.Gaps)
				}
			}
		})
	}
}
