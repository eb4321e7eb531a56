package contract

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kvscout/kvscout/test/testpython"
)

// grpcio is Python's gRPC, in a process that lives as long as the test.
type grpcio struct {
	in  io.Writer
	out *bufio.Scanner
	// methods are those that the server tells by reflection.
	methods []string
}

func startPython(t *testing.T, addr string) *grpcio {
	t.Helper()
	cmd := exec.Command(testpython.Path(t), filepath.Join("testdata", "call.py"), addr)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	p := &grpcio{in: in, out: bufio.NewScanner(out)}
	p.out.Buffer(nil, 64<<20)
	p.read(t, &p.methods)
	return p
}

func (p *grpcio) read(t *testing.T, v any) {
	t.Helper()
	if !p.out.Scan() {
		t.Fatalf("Python ended: %v", p.out.Err())
	}
	if err := json.Unmarshal(p.out.Bytes(), v); err != nil {
		t.Fatalf("%v in %q", err, p.out.Bytes())
	}
}

func (p *grpcio) call(t *testing.T, m protoreflect.MethodDescriptor, take int, in ...proto.Message) (out outcome) {
	t.Helper()
	order := struct {
		Method   string   `json:"method"`
		Take     int      `json:"take"`
		Requests [][]byte `json:"requests"`
	}{Method: string(m.FullName()), Take: take}
	for _, message := range in {
		b, err := proto.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		order.Requests = append(order.Requests, b)
	}
	line, err := json.Marshal(order)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Answers [][]byte
		Code    string
		Details []struct {
			Type  string
			Value []byte
		}
	}
	p.read(t, &got)
	for _, b := range got.Answers {
		out.messages = append(out.messages, form{}.decode(t, b, m))
	}
	out.code = got.Code
	for _, d := range got.Details {
		if d.Type == "google.rpc.ErrorInfo" {
			out.reason = reason(t, d.Value)
		}
	}
	return out
}

// gRPC by Python's grpcio, which knows only the address.
func TestPython(t *testing.T) {
	t.Parallel()
	walk(t, startPython(t, serve(t)), nil)
}

// Every RPC that the server tells of has a case.
func TestEveryRPCHasACase(t *testing.T) {
	t.Parallel()
	var have []string
	for _, c := range cases() {
		have = append(have, c.name)
	}
	slices.Sort(have)
	if diff := cmp.Diff(startPython(t, serve(t)).methods, have); diff != "" {
		t.Errorf("RPCs of the server against cases (-server +cases):\n%s", diff)
	}
}
