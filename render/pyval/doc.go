// Package pyval holds JSON values as Python holds them.
//
// # Data in and out
//
// In: JSON text, as json.loads of Python takes it. Out: values that keep what Python keeps (order of keys, the
// difference of 1 and 1.0, integers of any size, lone surrogates), and the texts that Python makes of them: str,
// repr, json.dumps. Prompts are made of those texts, so a byte more or less here is a wrong token.
//
// # Values
//
// A Value is one of: None, bool, int64, *big.Int (only what int64 cannot hold), float64, string, *List, *Tuple, *Dict,
// or an Object of another package. A string is UTF-8, except that a lone surrogate (JSON "\ud800") is held in the
// three bytes that UTF-8 would give it, as Python's surrogatepass does. HasSurrogate finds it.
//
// # Invariants
//
//  1. Parse accepts exactly what json.loads accepts, less what Limits forbids: NaN and Infinity are numbers, a raw
//     control character in a string is an error, an integer of more than 4300 digits is an error.
//  2. A Dict keeps insertion order. A repeated key keeps its first place and takes its last value.
//  3. Floats print as the shortest digits that read back, with Python's exponent rules.
//  4. Nothing here panics or recurses without bound, whatever the input.
//  5. Error texts hold no content of the input, only places and kinds.
//
// # Concurrency
//
// Values are plain data: safe to share while nobody writes to them.
//
// # What it is not
//
// It is no Python: no arithmetic, no attributes. Package chat adds what templates need.
package pyval
