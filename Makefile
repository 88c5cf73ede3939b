# What a contributor runs. `make check` is what a change must pass.

LINT = go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
FUZZTIME ?= 10s

.PHONY: build check fmt lint test race long fuzz bench

build:
	go build -o tine ./cmd/tine

check: lint test race

fmt:
	gofmt -l -w .

lint:
	go vet ./...
	$(LINT) run ./...

test:
	go test ./...

race:
	go test -race -short ./...

# What only shows itself sometimes, tried often: servers that are killed, concurrent histories.
long:
	go test ./test -run 'KilledServers|Linearizable' -count=1 -timeout 20m -v -tine.kills 60 -tine.rounds 100

# Each fuzz target for FUZZTIME. A find is kept under the package's testdata/fuzz.
fuzz:
	./test/fuzz.sh $(FUZZTIME)

# The figures that Tine promises, each against its measure in the same run.
bench:
	go test ./test/bench -run '^$$' -bench '^BenchmarkIs|Heap' -benchtime 1x -timeout 20m
	go test ./test/bench -run '^$$' -bench BeforeTheStore -benchmem
	go test ./api -run '^$$' -bench PerKey -benchmem
