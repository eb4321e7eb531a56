//go:build hftokenizers

package local

import "github.com/kvscout/kvscout/render/token/hf"

func init() {
	second = func(tokenizerJSON []byte) (encoder, error) { return hf.Parse(tokenizerJSON) }
}
