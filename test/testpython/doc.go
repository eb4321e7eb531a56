// Package testpython finds the Python that tests run: in KVSCOUT_PYTHON, else in .venv at the repository's root, which `make
// .venv` makes with the packages of test/requirements.txt.
//
// Invariant: without one a test fails, since to skip it would prove nothing.
//
// It is for tests alone. Its functions may be called concurrently.
package testpython
