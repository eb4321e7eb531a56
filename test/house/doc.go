// Package house holds the sources to the house rules of CONTRIBUTING.md that can be read from them.
//
// In: every Go file of the repository but what is generated. Out: a failing test for each rule that a place breaks:
//
//  1. Packages import one way: scorer to indexer to events, render alone; generated code only where the API is spoken.
//  2. Each package says in a doc.go what it is; a command may do so in main.go. docs/architecture.md names it.
//  3. Files have fewer than 400 lines, functions fewer than 60. Tests may have longer functions, for their tables.
//  4. Links between pages lead somewhere, and to every page of docs/ leads one.
//  5. A comment at each goroutine's start says who ends it, and one at each lock what it guards.
package house
