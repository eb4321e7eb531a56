package simulate

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvscout/kvscout/events"
	"github.com/kvscout/kvscout/test/testpython"
)

// The bytes of wire.md 8: V-4 (vLLM maps), S-1 (SGLang arrays) and S-2 (SGLang maps, with rank 0 for nil).
func TestPayloadExamples(t *testing.T) {
	v := []events.Hash{events.HashInt(2164874634404590027), events.HashInt(17270480062156288726)}
	first, second := int64(-3488128144981237669), int64(5674439469042975057)
	s := []events.Hash{events.HashInt(uint64(first)), events.HashInt(uint64(second))}
	removed := func(h events.Hash) events.Event { return events.Event{Kind: events.Removed, Hashes: []events.Hash{h}} }
	for _, c := range []struct {
		name string
		form Form
		list []events.Event
		want string
	}{
		{"V-4", FormVLLM, []events.Event{
			{Kind: events.Stored, Hashes: v, Tokens: span(1, 9), BlockSize: 4, Extras: make([][]events.Extra, 2)},
			removed(v[1]), {Kind: events.Cleared},
		}, "93cb3ff8000000000000938ba474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657392cf1e0b2e028ef071cbcfefad121d154ab2d6b1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f696473980102030405060708aa626c6f636b5f73697a6504a76c6f72615f6964c0a66d656469756da3475055a96c6f72615f6e616d65c0aa65787472615f6b65797392c0c0a967726f75705f69647800b26b765f63616368655f737065635f6b696e64ae66756c6c5f617474656e74696f6e84a474797065ac426c6f636b52656d6f766564ac626c6f636b5f68617368657391cfefad121d154ab2d6a66d656469756da3475055a967726f75705f6964780081a474797065b0416c6c426c6f636b73436c656172656400"},
		{"S-1", FormSGLangArray, []events.Event{
			{Kind: events.Stored, Hashes: s[:1], Tokens: span(1, 5), BlockSize: 4},
			{Kind: events.Stored, Hashes: s[1:], Parent: s[0], HasParent: true, Tokens: span(5, 9), BlockSize: 4},
		}, "93cb3ff80000000000009297ab426c6f636b53746f72656491d3cf97adeedb59e05bc0940102030404c0a347505597ab426c6f636b53746f72656491cf4ebfa8a1f3c34151d3cf97adeedb59e05b940506070804c0a347505500"},
		{"S-2", FormSGLang, []events.Event{
			{Kind: events.Stored, Hashes: s, Tokens: span(1, 9), BlockSize: 4, Salt: "tenant-a"}, removed(s[1]),
		}, "93cb3ff80000000000009288a474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657392d3cf97adeedb59e05bcf4ebfa8a1f3c34151b1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f696473980102030405060708aa626c6f636b5f73697a6504a76c6f72615f6964c0a66d656469756da3475055aa63616368655f73616c74a874656e616e742d6183a474797065ac426c6f636b52656d6f766564ac626c6f636b5f68617368657391cf4ebfa8a1f3c34151a66d656469756da347505500"},
	} {
		if got := hex.EncodeToString(formTraits[c.form].payload(1.5, 0, c.list)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// The first life of an engine with seed 0 announces the hashes of wire.md 2.5.
func TestSeedIsPythonHashSeed(t *testing.T) {
	e := newEngine(t, Config{BlockSize: 4, Blocks: 8})
	serve(t, e, Request{Tokens: span(1, 9)})
	got := decode(t, payloads(e)[0])[0].hashes
	if want := []uint64{2164874634404590027, 17270480062156288726}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("hashes %d, want %d", got, want)
	}
}

// verdict is what peer.py structs says of one payload.
type verdict struct {
	OK     bool
	Why    string
	Shapes [][]string
}

func judge(t *testing.T, lines []string) []verdict {
	t.Helper()
	cmd := exec.Command(testpython.Path(t), filepath.Join("testdata", "peer.py"), "structs")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n"))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var list []verdict
	for line := range bytes.Lines(out) {
		var v verdict
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		list = append(list, v)
	}
	if len(list) != len(lines) {
		t.Fatalf("%d verdicts on %d payloads", len(list), len(lines))
	}
	return list
}

// Invariant 7: the engines' own structs read the simulator's payloads and write the same bytes, as they do with
// recorded ones, and each event has the keys, in their order, of a recorded event.
func TestPayloadsAreTheEngines(t *testing.T) {
	var lines []string
	recordedShapes := map[string]bool{ // an adapter and a salt at once were not recorded from SGLang
		`sglang [BlockStored block_hashes parent_block_hash token_ids block_size lora_id medium cache_salt lora_name]`: true,
	}
	for _, r := range recordings(t) {
		lines = append(lines, r.Form+" "+hex.EncodeToString(r.payload(t)))
	}
	own := len(lines)
	for _, form := range Forms() {
		cfg := DefaultTraffic()
		if !formTraits[form].adapters {
			cfg.Adapters = nil
		}
		e := newEngine(t, Config{Form: form, Blocks: 256, Rank: 3})
		traffic := NewTraffic(1, cfg)
		for range 150 {
			serve(t, e, traffic.Next())
		}
		if err := e.Reset(); err != nil {
			t.Fatal(err)
		}
		serve(t, e, traffic.Next())
		for _, p := range payloads(e) {
			lines = append(lines, string(form)+" "+hex.EncodeToString(p))
		}
	}
	made := map[string]bool{}
	for i, v := range judge(t, lines) {
		if !v.OK {
			t.Fatalf("payload %.120s...: %s", lines[i], v.Why)
		}
		form, _, _ := strings.Cut(lines[i], " ")
		for _, s := range v.Shapes {
			key := form + " " + fmt.Sprint(s)
			if i < own {
				recordedShapes[key] = true
				continue
			}
			if !recordedShapes[key] {
				t.Fatalf("no recorded event looks like %s", key)
			}
			made[key] = true
		}
	}
	for key := range recordedShapes {
		if !made[key] && !strings.HasPrefix(key, "vllm-bytes") {
			t.Errorf("the simulator never made %s", key)
		}
	}
}
