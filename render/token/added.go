package token

import (
	"strings"
	"unicode/utf8"
)

// addedToken is a token found in a text before anything else is done to it (tokenizers' added_vocabulary.rs).
type addedToken struct {
	ID         uint32 `json:"id"` // the library gives it anew when it loads the file
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LeftStrip  bool   `json:"lstrip"`
	RightStrip bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// addedTokens are the added tokens of a file. One tree finds those that are looked for in the text as it is, the other
// those in normalized text.
type addedTokens struct {
	tokens          []addedToken
	byContent       map[string]uint32
	raw, normalized *tree
	space, word     *charset // White_Space and \w of Rust's regex crate
}

// Bounds of added tokens. Gemma 3 has 6,415.
const (
	maxAdded       = 1 << 17
	maxAddedLength = 512
)

func newAddedTokens(list []addedToken, model *bpe, norm *normalizers) (*addedTokens, error) {
	if len(list) > maxAdded {
		return nil, unsupported("%d added tokens, over %d", len(list), maxAdded)
	}
	a := &addedTokens{byContent: map[string]uint32{}, raw: newTree(), normalized: newTree()}
	a.space, a.word = newCharset(tables().sets["whitespace"]), newCharset(tables().sets["word"])
	next, ids := uint32(model.vocabLen()), map[uint32]bool{}
	for _, t := range list {
		if t.Content == "" {
			continue
		}
		if _, twice := a.byContent[t.Content]; twice || len(t.Content) > maxAddedLength {
			return nil, unsupported("added token %.40q comes twice, or is longer than %d bytes", t.Content, maxAddedLength)
		}
		// The id is the model's, or the next free one in the order of the file.
		id, ok := model.tokenID(t.Content)
		if !ok {
			id = next
			next++
		}
		if ids[id] {
			return nil, unsupported("added token %.40q has the id of another, %d", t.Content, id)
		}
		ids[id] = true
		t.ID = id
		a.byContent[t.Content] = id
		a.tokens = append(a.tokens, t)
	}
	for i, t := range a.tokens { // special ones first: where two are alike, the first is found
		if t.Special {
			if err := a.insert(uint32(i), norm); err != nil {
				return nil, err
			}
		}
	}
	for i, t := range a.tokens {
		if !t.Special {
			if err := a.insert(uint32(i), norm); err != nil {
				return nil, err
			}
		}
	}
	return a, nil
}

func (a *addedTokens) insert(i uint32, norm *normalizers) error {
	t := &a.tokens[i]
	if !t.Normalized {
		a.raw.insert(t.Content, i)
		return nil
	}
	m := newMatcher(len(t.Content))
	content, err := norm.apply(t.Content, &m)
	if err != nil {
		return err
	}
	if content == "" || m.fuel < 0 {
		return unsupported("added token %.40q is nothing when normalized", t.Content)
	}
	a.normalized.insert(content, i)
	return nil
}

// split gives emit the parts of s in order: text, or an added token with its id. It follows find_matches.
func (a *addedTokens) split(s string, in *tree, emit func(part string, at int, t *addedToken) error) error {
	done := 0
	for from := 0; from < len(s); {
		start, end, i, ok := in.find(s, from)
		if !ok {
			break
		}
		from = end
		t := &a.tokens[i]
		if t.SingleWord && !a.alone(s[:start], s[end:]) {
			continue
		}
		if t.LeftStrip {
			start = max(len(strings.TrimRightFunc(s[:start], a.space.has)), done)
		}
		if t.RightStrip {
			end += a.space.run(s[end:])
		}
		if done < start {
			if err := emit(s[done:start], done, nil); err != nil {
				return err
			}
		}
		if err := emit("", start, t); err != nil {
			return err
		}
		done = end
	}
	if done == len(s) {
		return nil
	}
	return emit(s[done:], done, nil)
}

// alone says whether no word touches what stands between before and after.
func (a *addedTokens) alone(before, after string) bool {
	last, n := utf8.DecodeLastRuneInString(before)
	first, k := utf8.DecodeRuneInString(after)
	return !(n > 0 && a.word.has(last)) && !(k > 0 && a.word.has(first))
}

func (a *addedTokens) size() int64 {
	n := a.raw.size() + a.normalized.size() + a.space.size() + a.word.size()
	for i := range a.tokens {
		n += int64(2*len(a.tokens[i].Content)) + 96
	}
	return n
}

// tree finds words in a text: at the leftmost place the longest one.
type tree struct {
	root  [256]uint32
	nodes []treeNode // node 0 is none
}

// treeNode is one byte behind another. Its siblings are a list.
type treeNode struct {
	child, sibling uint32
	word           uint32 // index + 1 of the word that ends here, or 0
	char           byte
}

func newTree() *tree { return &tree{nodes: make([]treeNode, 1)} }

// insert adds a word that is not empty. The first of equal ones counts.
func (t *tree) insert(word string, index uint32) {
	at := &t.root[word[0]]
	for i := 0; ; {
		if *at == 0 {
			*at = uint32(len(t.nodes)) // before append moves what at points to
			t.nodes = append(t.nodes, treeNode{char: word[i]})
			n := uint32(len(t.nodes) - 1)
			if i++; i == len(word) {
				t.nodes[n].word = index + 1
				return
			}
			at = &t.nodes[n].child
			continue
		}
		n := &t.nodes[*at]
		if n.char != word[i] {
			at = &n.sibling
			continue
		}
		if i++; i == len(word) {
			if n.word == 0 {
				n.word = index + 1
			}
			return
		}
		at = &n.child
	}
}

func (t *tree) find(s string, from int) (start, end int, index uint32, ok bool) {
	for start = from; start < len(s); start++ {
		id := t.root[s[start]]
		if id == 0 {
			continue
		}
		for i := start; ; {
			n := &t.nodes[id]
			if n.char != s[i] {
				if id = n.sibling; id == 0 {
					break
				}
				continue
			}
			i++
			if n.word != 0 {
				end, index, ok = i, n.word-1, true
			}
			if id = n.child; id == 0 || i == len(s) {
				break
			}
		}
		if ok {
			return start, end, index, true
		}
	}
	return 0, 0, 0, false
}

func (t *tree) size() int64 { return int64(len(t.root))*4 + int64(cap(t.nodes))*16 }
