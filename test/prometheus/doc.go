// Package prometheus tests deploy/prometheus and deploy/grafana by Prometheus' own parser, engine and rules. It is a module
// of its own, so that the product does not depend on Prometheus. `make test-prometheus` runs it.
package prometheus
