package access

import (
	"maps"
	"slices"
)

// HasRole says whether a method is in the table.
func HasRole(procedure string) bool { _, ok := roles[procedure]; return ok }

// Procedures are those of the table.
func Procedures() []string { return slices.Sorted(maps.Keys(roles)) }

// MaxRemembered bounds the callers that are remembered.
const MaxRemembered = maxRemembered
