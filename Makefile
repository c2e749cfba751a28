# Targets of poolsweep. `make demo` and `make test` need Go and make, nothing
# else: a server is looked for on PATH and else installed (.ci/server).

GO ?= go
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME ?= 20s

.PHONY: build test race lint fuzz bench demo

build: ## bin/poolsweep, static
	CGO_ENABLED=0 $(GO) build -o bin/poolsweep ./cmd/poolsweep

# A test whose name ends in InRealTime holds a formula against the clock: it
# runs after the others, and alone.
test: server
	$(GO) test -skip 'InRealTime$$' ./...
	$(GO) test -p 1 -run 'InRealTime$$' ./...

race: server ## the same under the race detector: three times as long, so not in CI
	$(GO) test -race ./...

lint:
	@test -z "$$(gofmt -l .)" || { gofmt -l . && exit 1; }
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...

fuzz: ## every fuzz target for FUZZTIME
	.ci/fuzz $(FUZZTIME)

bench: server build ## functions first, then poolsweep beside redis-benchmark
	$(GO) test -run '^$$' -bench . ./...

demo: ## ends within two minutes on a fresh machine: built without the fleet, swept shorter than the default
	@$(MAKE) -j2 server bin/poolsweep-demo
	bin/poolsweep-demo run --embedded -t get -c 1,2,5,10:50:10 --duration 600ms --slices 2 --budget 20s

.PHONY: bin/poolsweep-demo
bin/poolsweep-demo:
	CGO_ENABLED=0 GOGC=400 $(GO) build -tags nofleet -ldflags='-s -w' -o $@ ./cmd/poolsweep

.PHONY: server
server:
	@.ci/server
