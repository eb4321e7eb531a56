package chat

import "github.com/kvscout/kvscout/render/pyval"

// node is a part of the tree. Its children come in the order in which Jinja's nodes list them, because detection of
// the content format and of free names follows that order.
type node interface {
	children() []node
}

// expr is a node with a value.
type expr interface {
	node
	eval(st *state, env *env) (pyval.Value, error)
}

// stmt is a node that is executed for what it writes or sets.
type stmt interface {
	node
	exec(st *state, env *env) error
}

// nameUse tells what a name is there for.
type nameUse uint8

const (
	useLoad nameUse = iota
	useStore
	useParam
)

// ref is the place of a variable: so many environments up, and the slot in it.
type ref struct{ up, slot int }

type (
	constExpr struct{ value pyval.Value }
	nameExpr  struct {
		name string
		use  nameUse
		ref  ref
	}
	// nsRef is "ns.attr" as the target of an assignment.
	nsRef struct {
		name, attr string
		ref        ref
	}
	tupleExpr struct {
		items []expr
		store bool
	}
	listExpr struct{ items []expr }
	dictExpr struct{ keys, values []expr }
	condExpr struct {
		test, then, otherwise expr // otherwise may be nil
		line                  int
	}
	binaryExpr struct {
		op          string
		left, right expr
		line        int
	}
	concatExpr struct{ items []expr }
	logicExpr  struct {
		or          bool
		left, right expr
	}
	notExpr   struct{ operand expr }
	unaryExpr struct {
		op      string
		operand expr
		line    int
	}
	compareExpr struct {
		first expr
		ops   []compareOp
		line  int
	}
	compareOp struct {
		op    string
		right expr
	}
	attrExpr struct {
		object expr
		name   string
		line   int
	}
	itemExpr struct {
		object, key expr
		line        int
	}
	sliceExpr struct{ start, stop, step expr } // each may be nil; only as the key of an itemExpr
	callExpr  struct {
		callee expr
		args   callArgs
		line   int
	}
	filterExpr struct {
		object expr // nil in a filter block: the text of the block
		name   string
		fn     filterFunc
		args   callArgs
		line   int
	}
	testExpr struct {
		object expr
		name   string
		fn     testFunc
		args   callArgs
		line   int
	}
)

// callArgs are the arguments of a call as they are written.
type callArgs struct {
	args     []expr
	kwargs   []keyword
	star     expr // *args, or nil
	starStar expr // **kwargs, or nil
}

type keyword struct {
	name  string
	value expr
}

type (
	outputStmt struct {
		items []expr // data is a constExpr of a string
		line  int
	}
	forStmt struct {
		target     expr
		testTarget expr // the target in the frame of the test
		iter       expr
		body, orIf []stmt
		test       expr // nil without a filter
		recursive  bool
		extended   bool // the body uses "loop"
		frame      *frame
		testFrame  *frame
		elseFrame  *frame
		loopSlot   int
		line       int
	}
	ifStmt struct {
		test      expr
		body      []stmt
		elifs     []*ifStmt
		otherwise []stmt
		line      int
	}
	setStmt struct {
		target, value expr
		line          int
	}
	setBlockStmt struct {
		target expr
		filter *filterExpr // nil without a filter
		body   []stmt
		frame  *frame
		line   int
	}
	withStmt struct {
		targets, values []expr
		body            []stmt
		frame           *frame
		line            int
	}
	filterBlockStmt struct {
		filter *filterExpr
		body   []stmt
		frame  *frame
		line   int
	}
	macroStmt struct {
		name     string
		target   ref
		args     []*nameExpr
		defaults []expr // of the last arguments
		body     []stmt
		info     macroInfo
		line     int
	}
	// callBlockStmt is {% call %}, and {% generation %} with no call.
	callBlockStmt struct {
		call     *callExpr // nil for {% generation %}
		args     []*nameExpr
		defaults []expr
		body     []stmt
		info     macroInfo
		line     int
	}
	breakStmt    struct{}
	continueStmt struct{}
)

// macroInfo is what the body of a macro needs; slots of special names are -1 if it does not use them.
type macroInfo struct {
	frame                   *frame
	params                  []int // slots of the arguments
	caller, kwargs, varargs int
	explicitCaller          bool
}

// template is the root.
type root struct {
	body  []stmt
	frame *frame
}

func (n *constExpr) children() []node    { return nil }
func (n *nameExpr) children() []node     { return nil }
func (n *nsRef) children() []node        { return nil }
func (n *tupleExpr) children() []node    { return exprs(n.items...) }
func (n *listExpr) children() []node     { return exprs(n.items...) }
func (n *notExpr) children() []node      { return exprs(n.operand) }
func (n *unaryExpr) children() []node    { return exprs(n.operand) }
func (n *binaryExpr) children() []node   { return exprs(n.left, n.right) }
func (n *logicExpr) children() []node    { return exprs(n.left, n.right) }
func (n *concatExpr) children() []node   { return exprs(n.items...) }
func (n *condExpr) children() []node     { return exprs(n.test, n.then, n.otherwise) }
func (n *attrExpr) children() []node     { return exprs(n.object) }
func (n *itemExpr) children() []node     { return exprs(n.object, n.key) }
func (n *sliceExpr) children() []node    { return exprs(n.start, n.stop, n.step) }
func (n *callExpr) children() []node     { return append(exprs(n.callee), n.args.children()...) }
func (n *filterExpr) children() []node   { return append(exprs(n.object), n.args.children()...) }
func (n *testExpr) children() []node     { return append(exprs(n.object), n.args.children()...) }
func (n *breakStmt) children() []node    { return nil }
func (n *continueStmt) children() []node { return nil }
func (n *outputStmt) children() []node   { return exprs(n.items...) }
func (n *setStmt) children() []node      { return exprs(n.target, n.value) }
func (n *root) children() []node         { return stmts(n.body) }

func (n *dictExpr) children() []node {
	var c []node
	for i := range n.keys {
		c = append(c, n.keys[i], n.values[i])
	}
	return c
}

func (n *compareExpr) children() []node {
	c := exprs(n.first)
	for _, op := range n.ops {
		c = append(c, op.right)
	}
	return c
}

func (a callArgs) children() []node {
	c := exprs(a.args...)
	for _, k := range a.kwargs {
		c = append(c, k.value)
	}
	return append(c, exprs(a.star, a.starStar)...)
}

func (n *forStmt) children() []node {
	c := exprs(n.target, n.iter)
	c = append(append(c, stmts(n.body)...), stmts(n.orIf)...)
	return append(c, exprs(n.test)...)
}

func (n *ifStmt) children() []node {
	c := append(exprs(n.test), stmts(n.body)...)
	for _, e := range n.elifs {
		c = append(c, e)
	}
	return append(c, stmts(n.otherwise)...)
}

func (n *setBlockStmt) children() []node {
	c := exprs(n.target)
	if n.filter != nil {
		c = append(c, n.filter)
	}
	return append(c, stmts(n.body)...)
}

func (n *withStmt) children() []node {
	return append(append(exprs(n.targets...), exprs(n.values...)...), stmts(n.body)...)
}

func (n *filterBlockStmt) children() []node { return append(stmts(n.body), n.filter) }

func (n *macroStmt) children() []node {
	return append(append(params(n.args), exprs(n.defaults...)...), stmts(n.body)...)
}

func (n *callBlockStmt) children() []node {
	var c []node
	if n.call != nil {
		c = append(c, n.call)
	}
	return append(append(append(c, params(n.args)...), exprs(n.defaults...)...), stmts(n.body)...)
}

// exprs leaves out what is nil.
func exprs(list ...expr) []node {
	c := make([]node, 0, len(list))
	for _, e := range list {
		if e != nil {
			c = append(c, e)
		}
	}
	return c
}

func stmts(list []stmt) []node {
	c := make([]node, len(list))
	for i, s := range list {
		c[i] = s
	}
	return c
}

func params(list []*nameExpr) []node {
	c := make([]node, len(list))
	for i, n := range list {
		c[i] = n
	}
	return c
}

// walk visits n and what is below it, parents first; visit says whether to go on below a node.
func walk(n node, visit func(node) bool) {
	if !visit(n) {
		return
	}
	for _, c := range n.children() {
		walk(c, visit)
	}
}
