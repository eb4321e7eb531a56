package events

import "github.com/google/go-cmp/cmp/cmpopts"

// asEmpty takes nil and empty slices for equal.
var asEmpty = cmpopts.EquateEmpty()
