// Package hub reads a model's directory as Hugging Face's transformers reads it: which tokenizer it makes of the files,
// which special tokens there are, which chat templates.
//
// # Data in and out
//
// In: a directory with tokenizer.json, tokenizer_config.json, chat_template.jinja and the like. Out: a Model: the text of
// the tokenizer.json that describes what transformers really runs, names and texts of special tokens, templates by name.
//
// The tokenizer is the catch. transformers 5 takes tokenizer.json as it stands only for some classes; classes such as
// LlamaTokenizer and Qwen2Tokenizer take the vocabulary and the merges of it and build the rest by themselves. DeepSeek
// V3's files name LlamaTokenizerFast: without a config.json that says better, an engine then drops every blank, and an
// exact renderer must, too.
//
// # Invariants
//
//  1. Model.Tokenizer describes the tokenizer that transformers (the version in classes.json) builds, or Open errs.
//  2. What cannot be told is ErrUnsupported with the name of what it is: code of the model's own, tekken.json, a class that
//     builds a tokenizer in a way that is not known here.
//  3. Every file is bounded before it is read.
//
// # Concurrency
//
// Functions share nothing; a Model is not changed after Open.
//
// # What it is not
//
// It runs no tokenizer and no template, and downloads nothing.
package hub
