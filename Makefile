# Everything a contributor runs. CONTRIBUTING.md says more.

# By version and not through go.mod: its dependencies would become the module's.
GOLANGCI_LINT = go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

.PHONY: help test full race lint api ci

help:
	@echo 'make test   the tests, with cgo and without; on a real Apache Kafka too where Java and Maven are there'
	@echo 'make full   the tests with every client on every broker: an hour or two'
	@echo 'make race   the tests with the race detector'
	@echo 'make lint   formatting, go vet, golangci-lint, shellcheck'
	@echo 'make api    writes docs/api.txt, what the packages export'
	@echo 'make ci     what CI runs (it installs what is missing)'

test:
	@scripts/test

full:
	@scripts/test full

race:
	@scripts/test race

lint:
	@scripts/lint "$(GOLANGCI_LINT)"

api:
	@go test ./internal/house -run '^TestAPI$$' -count=1 -args -update-api

ci:
	@.ci/run
