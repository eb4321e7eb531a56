// Package chat renders chat templates of Hugging Face models exactly as transformers does.
//
// # Data in and out
//
// In: the source of a template (chat_template.jinja, or the chat_template of tokenizer_config.json), and variables as
// package pyval holds them. Out: the text of the prompt, byte for byte what transformers' environment gives: Jinja 3.1,
// ImmutableSandboxedEnvironment, trim_blocks, lstrip_blocks, loop controls, the generation tag, tojson, raise_exception,
// strftime_now.
//
//	source -> lex -> parse -> resolve: names to places -> Template -> Execute(vars) -> text
//
// Files follow Jinja's: lexer and literal, parse*, scope and resolve (idtracking), exec and eval (what Jinja compiles to
// Python), attr, arith, compare, methods* and str* (Python's own), filter*, tests, globals, detect (what engines find
// out about a template).
//
// # Invariants
//
//  1. Exact or refused (rule 14). What Jinja would render in another way is ErrUnsupported: at load for filters, tests,
//     tags and methods that we do not have, when it happens for what only then is seen (text with an address in it).
//  2. What fails in Jinja fails here: undefined values, types, the sandbox. errors.Is tells ErrTemplate, and ErrRaised for
//     raise_exception.
//  3. Names are resolved as Jinja does at compile time: a set inside of a loop does not leak, one inside of an if does,
//     macros see what stands around their definition.
//  4. A hostile template ends: steps, bytes made, length of each text and list, calls, nesting and generators are bounded,
//     and it neither panics nor recurses without bound (rule 17).
//  5. Error texts name what the template says, never what the request says. Error.Message has the words of
//     raise_exception, which may quote the request: not for logs.
//
// # Concurrency
//
// A Template is immutable: any number of goroutines may execute it. Values that are given to Execute are only read.
//
// # What it is not
//
// It is no general Jinja: no inheritance, no imports, no autoescape. It does not prepare messages (package profile does)
// and makes no tokens.
package chat
