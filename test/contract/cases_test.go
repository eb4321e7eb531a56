//lint:file-ignore SA1019 the old version of reflection is served too, for clients that know no other

package contract

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	alphapb "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/durationpb"

	kvscoutv1 "github.com/kvscout/kvscout/gen/kvscout/v1"
)

// outcome is what became of a call, as its caller can read it.
type outcome struct {
	messages []proto.Message
	code     string // of Connect, "invalid_argument"; empty if it succeeded
	reason   string // of ErrorInfo in domain kvscout
}

// speaker makes calls as one client in one protocol. After take messages of a stream it hangs up; 0 is never.
type speaker interface {
	call(t *testing.T, m protoreflect.MethodDescriptor, take int, in ...proto.Message) outcome
}

// refusal is a call that is refused.
type refusal struct {
	in           proto.Message
	code, reason string
}

// rpc is the case of one method.
type rpc struct {
	name string // full name of the method
	in   func(*day) []proto.Message
	take int // answers wanted of a stream without an end; 0 is all
	// check says what is wrong with the answers.
	check func(*day, []proto.Message) error
	// refused is left out where nothing that can be read is refused.
	refused *refusal
}

// day is what later calls need to know of earlier ones.
type day struct{ scoreID string }

func one(m proto.Message) func(*day) []proto.Message {
	return func(*day) []proto.Message { return []proto.Message{m} }
}

// ask checks a single answer.
func ask[T proto.Message](ok func(*day, T) bool) func(*day, []proto.Message) error {
	return func(d *day, got []proto.Message) error {
		if len(got) != 1 {
			return fmt.Errorf("%d answers, want one: %v", len(got), got)
		}
		if m, is := got[0].(T); !is || !ok(d, m) {
			return fmt.Errorf("wrong answer: %v", got[0])
		}
		return nil
	}
}

// tokens 1 to 9, of which worker w0 holds 1 to 8 in blocks of 4.
func tokens() *kvscoutv1.Tokens {
	return &kvscoutv1.Tokens{Packed: []byte("\x01\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00\x04\x00\x00\x00\x05\x00\x00\x00\x06\x00\x00\x00\x07\x00\x00\x00\x08\x00\x00\x00\x09\x00\x00\x00")}
}

func batch() *kvscoutv1.RawBatch {
	payload, err := msgpack.Marshal([]any{1.5, []any{[]any{"BlockStored", []int{1, 2}, nil, []int{1, 2, 3, 4, 5, 6, 7, 8}, 4, nil, "GPU"}}})
	if err != nil {
		panic(err)
	}
	return &kvscoutv1.RawBatch{Payload: payload}
}

func rated(r *kvscoutv1.ScoreResponse) bool {
	return r.GetPromptTokens() == 9 && len(r.GetWorkers()) == 1 && r.GetWorkers()[0].GetHeldTokens() == 8 &&
		r.GetWorkers()[0].GetKnown() && r.GetWorkers()[0].GetBound().GetKind() == kvscoutv1.BoundKind_BOUND_KIND_EXACT
}

const (
	scores = "kvscout.v1.ScoreService."
	index  = "kvscout.v1.IndexService."
)

// cases are a router's day, in this order: each call finds what those before have done.
func cases() []rpc {
	return slices.Concat(registering(), scoring(), looking(), forgetting(), standard())
}

func registering() []rpc {
	spec := &kvscoutv1.WorkerSpec{WorkerId: "w0", Model: "m", Engine: "vllm", BlockSize: 4}
	return []rpc{
		{
			name: index + "RegisterWorker", in: one(&kvscoutv1.RegisterWorkerRequest{Worker: spec}),
			check: ask(func(_ *day, m *kvscoutv1.RegisterWorkerResponse) bool {
				return m.GetWorker().GetSpec().GetBlockSize() == 4 && len(m.GetWorker().GetSources()) == 1
			}),
			refused: &refusal{new(kvscoutv1.RegisterWorkerRequest), "invalid_argument", "BAD_WORKER"},
		},
		{
			name: index + "Publish", in: one(&kvscoutv1.PublishRequest{WorkerId: "w0", Batches: []*kvscoutv1.RawBatch{batch()}}),
			check: ask(func(_ *day, m *kvscoutv1.PublishResponse) bool {
				return m.GetApplied() == 1 && len(m.GetRejected()) == 0 && m.NextSequence != nil && m.GetNextSequence() == 1
			}),
			refused: &refusal{&kvscoutv1.PublishRequest{WorkerId: "nobody"}, "not_found", "UNKNOWN_WORKER"},
		},
	}
}

func scoring() []rpc {
	good := &kvscoutv1.ScoreRequest{Id: "a", Model: "m", Tokens: tokens(), Remember: true}
	return []rpc{
		{
			name: scores + "Score", in: one(good),
			check: ask(func(d *day, m *kvscoutv1.ScoreResponse) bool {
				d.scoreID = m.GetScoreId()
				return d.scoreID != "" && rated(m)
			}),
			refused: &refusal{&kvscoutv1.ScoreRequest{Model: "other", Tokens: tokens()}, "not_found", "UNKNOWN_MODEL"},
		},
		{
			name: scores + "ScoreBatch", in: one(&kvscoutv1.ScoreBatchRequest{Requests: []*kvscoutv1.ScoreRequest{good, {Id: "b"}}}),
			check: ask(func(_ *day, m *kvscoutv1.ScoreBatchResponse) bool {
				r := m.GetResults()
				return len(r) == 2 && r[0].GetId() == "a" && rated(r[0].GetResponse()) && r[1].GetError().GetReason() == "NO_PROMPT"
			}),
			refused: &refusal{new(kvscoutv1.ScoreBatchRequest), "invalid_argument", "NO_REQUESTS"},
		},
		{ // what is wrong with a request is in its result; the stream itself refuses nothing that can be read
			name: scores + "ScoreStream",
			in: func(*day) []proto.Message {
				return []proto.Message{&kvscoutv1.ScoreStreamRequest{Request: good}, new(kvscoutv1.ScoreStreamRequest)}
			},
			check: func(_ *day, got []proto.Message) error {
				var right, refused int
				for _, m := range got {
					r := m.(*kvscoutv1.ScoreStreamResponse).GetResult()
					if r.GetId() == "a" && rated(r.GetResponse()) {
						right++
					} else if r.GetError().GetReason() == "NO_PROMPT" {
						refused++
					}
				}
				if len(got) != 2 || right != 1 || refused != 1 {
					return fmt.Errorf("got %v", got)
				}
				return nil
			},
		},
		{
			name: scores + "ReportRouted",
			in: func(d *day) []proto.Message {
				return []proto.Message{&kvscoutv1.ReportRoutedRequest{WorkerId: "w0", ScoreId: d.scoreID, Ttl: durationpb.New(time.Minute)}}
			},
			check:   ask(func(_ *day, m *kvscoutv1.ReportRoutedResponse) bool { return m.GetCreditedTokens() == 8 }),
			refused: &refusal{&kvscoutv1.ReportRoutedRequest{WorkerId: "w0"}, "invalid_argument", "NO_PROMPT"},
		},
		{
			name: scores + "ReportOutcome",
			in: func(d *day) []proto.Message {
				return []proto.Message{&kvscoutv1.ReportOutcomeRequest{WorkerId: "w0", ScoreId: d.scoreID, PromptTokens: 9, CachedTokens: 8}}
			},
			check: ask(func(_ *day, m *kvscoutv1.ReportOutcomeResponse) bool {
				return m.GetPredictedTokens() == 8 && m.GetAccuracy().GetEqual() == 1
			}),
			refused: &refusal{&kvscoutv1.ReportOutcomeRequest{WorkerId: "w0", ScoreId: "none", PromptTokens: 9}, "not_found", "UNKNOWN_SCORE"},
		},
		{
			name: "kvscout.v1.RenderService.Render",
			in: one(&kvscoutv1.RenderRequest{Model: "m", HttpRequest: &kvscoutv1.HttpRequest{
				Path: "/v1/completions", Body: []byte(`{"model": "m", "prompt": "héllo"}`),
			}}),
			check: ask(func(_ *day, m *kvscoutv1.RenderResponse) bool {
				return len(m.GetPrompts()) == 1 && string(m.GetPrompts()[0].GetTokens().GetPacked()) == "\x07\x00\x00\x00\x08\x00\x00\x00\x09\x00\x00\x00"
			}),
			refused: &refusal{&kvscoutv1.RenderRequest{Model: "m"}, "invalid_argument", "NO_PROMPT"},
		},
	}
}

func looking() []rpc {
	return []rpc{
		{
			name: index + "ListWorkers", in: one(new(kvscoutv1.ListWorkersRequest)),
			check: ask(func(_ *day, m *kvscoutv1.ListWorkersResponse) bool {
				return len(m.GetWorkers()) == 1 && m.GetWorkers()[0].GetSpec().GetWorkerId() == "w0"
			}),
			refused: &refusal{&kvscoutv1.ListWorkersRequest{Role: 99}, "invalid_argument", "BAD_ROLE"},
		},
		{ // nothing of it can be refused
			name: index + "GetStats", in: one(new(kvscoutv1.GetStatsRequest)),
			check: ask(func(_ *day, m *kvscoutv1.GetStatsResponse) bool {
				return m.GetStats().GetHolderBlocks() == 2 && m.GetStats().GetScore().GetErrors()["NO_PROMPT"] > 0
			}),
		},
		{
			name: index + "StreamStats", in: one(&kvscoutv1.StreamStatsRequest{Interval: durationpb.New(10 * time.Millisecond)}), take: 2,
			check: func(_ *day, got []proto.Message) error {
				if len(got) != 2 || got[1].(*kvscoutv1.StreamStatsResponse).GetStats().GetHolderBlocks() != 2 {
					return fmt.Errorf("got %v", got)
				}
				return nil
			},
			refused: &refusal{&kvscoutv1.StreamStatsRequest{Interval: durationpb.New(-time.Second)}, "invalid_argument", "BAD_INTERVAL"},
		},
		{
			name: index + "Inspect", in: one(&kvscoutv1.InspectRequest{Prompt: &kvscoutv1.PromptTarget{Model: "m", Tokens: tokens()}}),
			check: ask(func(_ *day, m *kvscoutv1.InspectResponse) bool {
				h := m.GetPrompt().GetHolders()
				return len(h) == 1 && h[0].GetWorkerId() == "w0" && h[0].GetRuns()[0].GetBlocks() == 2
			}),
			refused: &refusal{new(kvscoutv1.InspectRequest), "invalid_argument", "NO_TARGET"},
		},
		{
			name: index + "Dump", in: one(new(kvscoutv1.DumpRequest)),
			check: ask(func(_ *day, m *kvscoutv1.DumpResponse) bool {
				return m.GetWorkerId() == "w0" && len(m.GetBlocks()) == 2 && m.GetBlocks()[0].GetBlockSize() == 4
			}),
			refused: &refusal{&kvscoutv1.DumpRequest{Worker: &kvscoutv1.WorkerTarget{WorkerId: "nobody"}}, "not_found", "UNKNOWN_WORKER"},
		},
	}
}

func forgetting() []rpc {
	return []rpc{
		{
			name: index + "Clear", in: one(&kvscoutv1.ClearRequest{Worker: &kvscoutv1.WorkerTarget{WorkerId: "w0"}}),
			check:   ask(func(_ *day, m *kvscoutv1.ClearResponse) bool { return m.GetSources() == 1 && m.GetBlocks() == 2 }),
			refused: &refusal{new(kvscoutv1.ClearRequest), "invalid_argument", "NO_TARGET"},
		},
		{
			name: index + "ResetWorker", in: one(&kvscoutv1.ResetWorkerRequest{WorkerId: "w0"}),
			check:   ask(func(_ *day, m *kvscoutv1.ResetWorkerResponse) bool { return m.GetKnown() }),
			refused: &refusal{new(kvscoutv1.ResetWorkerRequest), "invalid_argument", "BAD_WORKER"},
		},
		{
			name: index + "DeregisterWorker", in: one(&kvscoutv1.DeregisterWorkerRequest{WorkerId: "w0"}),
			check:   ask(func(_ *day, m *kvscoutv1.DeregisterWorkerResponse) bool { return m.GetKnown() }),
			refused: &refusal{new(kvscoutv1.DeregisterWorkerRequest), "invalid_argument", "BAD_WORKER"},
		},
	}
}

// standard are the services that every gRPC server may have.
func standard() []rpc {
	listed := func(names []string) error {
		for _, want := range []string{"kvscout.v1.ScoreService", "kvscout.v1.IndexService", "kvscout.v1.RenderService", "grpc.health.v1.Health"} {
			if !slices.Contains(names, want) {
				return fmt.Errorf("%s is not in %v", want, names)
			}
		}
		return nil
	}
	return []rpc{
		{
			name: "grpc.health.v1.Health.Check", in: one(&healthpb.HealthCheckRequest{Service: "kvscout.v1.ScoreService"}),
			check: ask(func(_ *day, m *healthpb.HealthCheckResponse) bool {
				return m.GetStatus() == healthpb.HealthCheckResponse_SERVING
			}),
			refused: &refusal{&healthpb.HealthCheckRequest{Service: "nobody"}, "not_found", ""},
		},
		{
			name: "grpc.health.v1.Health.List", in: one(&healthpb.HealthListRequest{}),
			check: ask(func(_ *day, m *healthpb.HealthListResponse) bool {
				all, one := m.GetStatuses()[""], m.GetStatuses()["kvscout.v1.IndexService"]
				return all.GetStatus() == healthpb.HealthCheckResponse_SERVING && one.GetStatus() == healthpb.HealthCheckResponse_SERVING
			}),
		},
		{
			name: "grpc.health.v1.Health.Watch", in: one(&healthpb.HealthCheckRequest{Service: "kvscout.v1.IndexService"}), take: 1,
			check: ask(func(_ *day, m *healthpb.HealthCheckResponse) bool {
				return m.GetStatus() == healthpb.HealthCheckResponse_SERVING
			}),
			refused: &refusal{&healthpb.HealthCheckRequest{Service: "nobody"}, "not_found", ""},
		},
		{
			name: "grpc.reflection.v1.ServerReflection.ServerReflectionInfo",
			in:   one(&reflectionpb.ServerReflectionRequest{MessageRequest: new(reflectionpb.ServerReflectionRequest_ListServices)}),
			check: func(_ *day, got []proto.Message) error {
				var names []string
				for _, m := range got {
					for _, s := range m.(*reflectionpb.ServerReflectionResponse).GetListServicesResponse().GetService() {
						names = append(names, s.GetName())
					}
				}
				return listed(names)
			},
		},
		{
			name: "grpc.reflection.v1alpha.ServerReflection.ServerReflectionInfo",
			in:   one(&alphapb.ServerReflectionRequest{MessageRequest: new(alphapb.ServerReflectionRequest_ListServices)}),
			check: func(_ *day, got []proto.Message) error {
				var names []string
				for _, m := range got {
					for _, s := range m.(*alphapb.ServerReflectionResponse).GetListServicesResponse().GetService() {
						names = append(names, s.GetName())
					}
				}
				return listed(names)
			},
		},
	}
}

// descriptor is a method by its full name.
func descriptor(t *testing.T, name string) protoreflect.MethodDescriptor {
	t.Helper()
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return d.(protoreflect.MethodDescriptor)
}

// walk goes through all cases with a speaker. unable says of methods that the speaker's protocol cannot carry what becomes of
// them instead.
func walk(t *testing.T, s speaker, unable func(*testing.T, protoreflect.MethodDescriptor) bool) {
	d := new(day)
	for _, c := range cases() {
		m := descriptor(t, c.name)
		if unable != nil && unable(t, m) {
			continue
		}
		if c.refused != nil {
			got := s.call(t, m, 0, c.refused.in)
			if got.code != c.refused.code || got.reason != c.refused.reason || len(got.messages) > 0 {
				t.Errorf("%s: refused with code %q, reason %q, %d messages; want %q, %q", c.name, got.code, got.reason, len(got.messages), c.refused.code, c.refused.reason)
			}
		}
		got := s.call(t, m, c.take, c.in(d)...)
		if c.take > 0 && len(got.messages) > c.take { // sent before the caller had hung up
			got.messages = got.messages[:c.take]
		}
		if got.code != "" {
			t.Errorf("%s: %s, reason %q", c.name, got.code, got.reason)
		} else if err := c.check(d, got.messages); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// path is where a method is served.
func path(m protoreflect.MethodDescriptor) string {
	return string(m.Parent().FullName()) + "/" + string(m.Name())
}

// output is an empty answer of a method.
func output(m protoreflect.MethodDescriptor) proto.Message {
	mt, err := protoregistry.GlobalTypes.FindMessageByName(m.Output().FullName())
	if err != nil {
		panic(err)
	}
	return mt.New().Interface()
}

// snake is a code as Connect writes it.
func snake(code string) string { return strings.ToLower(code) }
