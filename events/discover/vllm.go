package discover

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// vllmSource is what vLLM's GET /kv_event_sources tells of one rank.
type vllmSource struct {
	Rank     *int   `json:"data_parallel_rank"`
	Endpoint string `json:"endpoint"`
	Replay   string `json:"replay_endpoint"`
	Topic    string `json:"topic"`
	// Enabled and Publisher are in the object form only, which tells of ranks that publish nothing too.
	Enabled   *bool  `json:"enable_kv_cache_events"`
	Publisher string `json:"publisher"`
}

// vllmAnswer is the whole answer: a list (vllm-project/vllm#55844), or, in vLLM 0.32, an object of each rank's publisher
// configuration by rank (EngineCoreClient.get_kv_event_sources), empty while no rank is ready.
type vllmAnswer []vllmSource

// UnmarshalJSON reads both forms.
func (s *vllmAnswer) UnmarshalJSON(text []byte) error {
	if !bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) {
		return json.Unmarshal(text, (*[]vllmSource)(s))
	}
	var byRank map[string]vllmSource
	if err := json.Unmarshal(text, &byRank); err != nil {
		return err
	}
	*s = nil
	for key, source := range byRank {
		rank, err := strconv.Atoi(key)
		if err != nil {
			return fmt.Errorf("%.20q is no rank", key)
		}
		if source.Enabled != nil && !*source.Enabled || source.Publisher != "" && source.Publisher != "zmq" {
			continue // its events go nowhere
		}
		source.Rank = &rank
		*s = append(*s, source)
	}
	slices.SortFunc(*s, func(a, b vllmSource) int { return cmp.Compare(*a.Rank, *b.Rank) })
	return nil
}
