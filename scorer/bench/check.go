package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// ErrWrong is an answer that is not the right one.
var ErrWrong = errors.New("wrong answer")

// wholeEvery is how often an answer is checked whole.
const wholeEvery = 64

// wholly says whether a caller's n-th answer is checked whole: the first of each prompt, and each 64th.
func wholly(n, prompts int) bool { return n < prompts || n%wholeEvery == 0 }

func compact(text []byte) ([]byte, error) {
	var out bytes.Buffer
	err := json.Compact(&out, text)
	return out.Bytes(), err
}

// Check looks at the whole answer to prompt p.
func (w *Workload) Check(p int, res *kvscoutv1.ScoreResponse) error {
	if int(res.GetPromptTokens()) != w.Tokens() || len(res.GetWorkers()) != w.Workers+w.Writers {
		return fmt.Errorf("%w: %d tokens, %d workers; want %d and %d", ErrWrong, res.GetPromptTokens(), len(res.GetWorkers()), w.Tokens(), w.Workers+w.Writers)
	}
	got := make(map[string]*kvscoutv1.WorkerScore, w.Workers)
	for _, s := range res.GetWorkers() {
		got[s.GetWorkerId()] = s
	}
	for i := range w.Workers {
		s, held := got[w.Worker(i)], w.Held(p, i)
		score := float64(held) / float64(w.Tokens())
		if int(s.GetHeldTokens()) != held || math.Abs(s.GetScore()-score) > 1e-9 {
			return fmt.Errorf("%w: %s holds %d and scores %v; want %d and %v", ErrWrong, w.Worker(i), s.GetHeldTokens(), s.GetScore(), held, score)
		}
	}
	return w.best(p, res.GetWorkers()[0].GetWorkerId(), int(res.GetWorkers()[0].GetHeldTokens()))
}

// best compares the first worker of an answer.
func (w *Workload) best(p int, id string, held int) error {
	want := w.Best(p)
	if id != w.Worker(want) || held != w.Held(p, want) {
		return fmt.Errorf("%w: %q is the best with %d, want %q with %d", ErrWrong, id, held, w.Worker(want), w.Held(p, want))
	}
	return nil
}

// checkMessage looks at the answer of call n, decoded: whole or at its first worker.
func (w *Workload) checkMessage(n int, m proto.Message, whole bool) error {
	switch m := m.(type) {
	case *kvscoutv1.ScoreResponse:
		return w.checkOne(n%len(w.Prompts), m, whole)
	case *kvscoutv1.ScoreBatchResponse:
		for i, r := range m.GetResults() {
			if e := r.GetError(); e != nil {
				return Refusal(e.GetReason())
			}
			if err := w.checkOne((n+i)%len(w.Prompts), r.GetResponse(), whole); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("%w: a %T", ErrWrong, m)
}

func (w *Workload) checkOne(p int, res *kvscoutv1.ScoreResponse, whole bool) error {
	switch {
	case whole:
		return w.Check(p, res)
	case len(res.GetWorkers()) == 0:
		return fmt.Errorf("%w: no worker", ErrWrong)
	}
	return w.best(p, res.GetWorkers()[0].GetWorkerId(), int(res.GetWorkers()[0].GetHeldTokens()))
}

// checkBytes looks at the answer of call n as it came. Its first worker is found without decoding the others.
func (w *Workload) checkBytes(n int, body []byte, whole bool, f Form, protocol Protocol) error {
	if f.Batch > 0 || whole {
		m := f.answer()
		decode := proto.Unmarshal
		if protocol == ProtocolJSON {
			decode = protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal
		}
		if err := decode(body, m); err != nil {
			return fmt.Errorf("%w: %w", ErrWrong, err)
		}
		return w.checkMessage(n, m, whole)
	}
	first := firstWorker
	if protocol == ProtocolJSON {
		first = firstWorkerJSON
	}
	id, held := first(body)
	return w.best(n%len(w.Prompts), string(id), held)
}

// answer is an empty answer of the form's method.
func (f Form) answer() proto.Message {
	if f.Batch > 0 {
		return new(kvscoutv1.ScoreBatchResponse)
	}
	return new(kvscoutv1.ScoreResponse)
}

// firstWorker finds worker_id and held_tokens of the first worker of an encoded ScoreResponse.
func firstWorker(body []byte) (id []byte, held int) {
	worker, _ := field(body, 1)
	id, _ = field(worker, 1)
	_, number := field(worker, 4)
	return id, int(number)
}

// field is the first field of that number, as bytes or as a number.
func field(b []byte, want protowire.Number) ([]byte, uint64) {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, 0
		}
		b = b[n:]
		if number == want && kind == protowire.BytesType {
			v, _ := protowire.ConsumeBytes(b)
			return v, 0
		}
		if number == want && kind == protowire.VarintType {
			v, _ := protowire.ConsumeVarint(b)
			return nil, v
		}
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return nil, 0
		}
		b = b[n:]
	}
	return nil, 0
}

// firstWorkerJSON does so in JSON, whatever its spaces.
func firstWorkerJSON(body []byte) (id []byte, held int) {
	_, body, _ = bytes.Cut(body, []byte(`"workers"`))
	id = bytes.Trim(valueOf(body, `"workerId"`), `"`)
	held, _ = strconv.Atoi(string(valueOf(body, `"heldTokens"`)))
	return id, held
}

// valueOf is what follows the first such name, up to a comma or the end of the object.
func valueOf(body []byte, name string) []byte {
	_, rest, ok := bytes.Cut(body, []byte(name))
	end := bytes.IndexAny(rest, ",}")
	if !ok || end < 0 {
		return nil
	}
	return bytes.Trim(rest[:end], ": \n\t")
}
