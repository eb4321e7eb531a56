// Package dashboard reads what a server tells of itself for people to see.
package dashboard
