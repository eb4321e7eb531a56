package pyval

import (
	"errors"
	"math/big"
)

// Value is a Python value; the package comment lists its types.
type Value = any

// None is Python's None.
type None struct{}

// List is a Python list.
type List struct{ Items []Value }

// Tuple is a Python tuple.
type Tuple struct{ Items []Value }

// Object is a value of another package.
type Object interface {
	// PyType names the type as Python would in an error.
	PyType() string
	// PyStr is str(value), PyRepr is repr(value). They err where the text cannot be known.
	PyStr() (string, error)
	PyRepr() (string, error)
	// PyTruth is bool(value).
	PyTruth() bool
	// PyEqual is value == other.
	PyEqual(other Value) bool
}

// ErrType is what Python raises as TypeError: an operation that the types do not have.
var ErrType = errors.New("type error")

// NewList makes a list of the items.
func NewList(items ...Value) *List { return &List{Items: items} }

// NewTuple makes a tuple of the items.
func NewTuple(items ...Value) *Tuple { return &Tuple{Items: items} }

// Int is a big integer in its normal form: int64 where that holds it.
func Int(b *big.Int) Value {
	if b.IsInt64() {
		return b.Int64()
	}
	return b
}

// TypeName is type(v).__name__.
func TypeName(v Value) string {
	switch v := v.(type) {
	case None:
		return "NoneType"
	case bool:
		return "bool"
	case int64, *big.Int:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case *List:
		return "list"
	case *Tuple:
		return "tuple"
	case *Dict:
		return "dict"
	case Object:
		return v.PyType()
	}
	return "object"
}

// Truth is bool(v).
func Truth(v Value) bool {
	switch v := v.(type) {
	case None:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case *big.Int:
		return v.Sign() != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case *List:
		return len(v.Items) > 0
	case *Tuple:
		return len(v.Items) > 0
	case *Dict:
		return v.Len() > 0
	case Object:
		return v.PyTruth()
	}
	return true
}
