package render

import (
	"errors"
	"strings"
	"testing"
)

// TestNewClient_Case115_ProtocolIsUsed: an unknown protocol is refused at the start, naming the known ones.
func TestNewClient_Case115_ProtocolIsUsed(t *testing.T) {
	for _, protocol := range []string{"", "sglang", "trtllm", "typo", "VLLM-render"} {
		_, err := NewClient(Options{URL: "http://h:1", Protocol: protocol})
		if !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), ProtocolVLLM) {
			t.Errorf("%q: got %v", protocol, err)
		}
	}
	res, err := chat(t, serve(t, answering(200, `{"token_ids":[1]}`)))
	if err != nil || !strings.HasPrefix(res.Renderer, "vllm-render@127.0.0.1:") {
		t.Errorf("renderer %q, %v", res.Renderer, err)
	}
}

func TestNewClient_URL(t *testing.T) {
	for _, url := range []string{"http://h", "https://h:8443/base/", "http://[::1]:8000", "http://10.0.0.1:65535"} {
		if _, err := NewClient(Options{URL: url, Protocol: ProtocolVLLM}); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	for _, url := range []string{
		"", "h:8000", "//h:8000", "ftp://h", "unix:///x", "http://", "http:///path", "http://:8000", "http://h:0",
		"http://h:70000", "http://h?x=1", "http://h?", "http://h#f", "http://user:hunter2@h", "http://user:hunter2@h:x",
		"http://h:80 80", "http://a b",
	} {
		_, err := NewClient(Options{URL: url, Protocol: ProtocolVLLM})
		if !errors.Is(err, ErrOptions) {
			t.Errorf("%q: got %v, want ErrOptions", url, err)
			continue
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the error shows the password: %v", url, err)
		}
	}
}

// Without TLS a bearer token goes over loopback only, unless that is asked for.
func TestNewClient_TokenNeedsTLS(t *testing.T) {
	for _, url := range []string{"http://h:1", "http://10.0.0.1:1", "http://0.0.0.0:1", "http://localhost.h:1", "http://[2001:db8::1]:1"} {
		_, err := NewClient(Options{URL: url, Protocol: ProtocolVLLM, BearerToken: "hunter2"})
		if !errors.Is(err, ErrPlaintextToken) || !errors.Is(err, ErrOptions) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", url, err)
		}
		if _, err := NewClient(Options{URL: url, Protocol: ProtocolVLLM, BearerToken: "hunter2", PlaintextToken: true}); err != nil {
			t.Errorf("%s, asked for: %v", url, err)
		}
	}
	for _, url := range []string{"https://h", "http://127.0.0.1:1", "http://127.8.0.1:1", "http://[::1]:1", "http://localhost:1"} {
		if _, err := NewClient(Options{URL: url, Protocol: ProtocolVLLM, BearerToken: "hunter2"}); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestOptions_Validate(t *testing.T) {
	err := Options{URL: "x", Timeout: -1, MaxTokens: -1, Queue: -1, BearerToken: "hunter2\n"}.Validate()
	if !errors.Is(err, ErrOptions) {
		t.Fatal(err)
	}
	for _, want := range []string{"url", "protocol", "timeout", "max tokens", "queue", "bearer token"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error shows the token: %v", err)
	}
}
