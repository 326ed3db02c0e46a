# Everything is made here; "make help" lists what. Needed: Go, a JDK, Maven, Python. The tests with real servers need a Docker
# engine as well, and install and start one when run as root on Debian.

GO ?= go

GOFUMPT     = $(GO) run mvdan.cc/gofumpt@v0.12.0
STATICCHECK = $(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2

VERSION = $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

# The packages that need no server. it's own checker, the replays and what bench computes are tested among them, by name; it/lint
# belongs to check.
UNIT      = $(shell $(GO) list ./... | grep -Ev '/it(/lint|/differential|/bench.*)?$$')
NO_SERVER = ^(TestGolden|TestI5_Re(play|start)From|TestDifferencesAre|TestReportedCases|TestFaultsAre|TestDemo$$|TestChecker|TestCheckWorkload|TestOffsetFile|TestProxy$$)

.DEFAULT_GOAL := help
.PHONY: help build demo test unit it images check bench bench-side bench-smoke soak-vortex soak-sim soak-chaos soak-bigtx soak-differential clean

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build bin/tidemark, one static binary.
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/tidemark ./cmd/tidemark

demo: build ## Run the demo: change events, a kill in a transaction and the exact resume, with nothing else installed.
	bin/tidemark demo

test: unit it ## Run all tests, those with a real MySQL, Kafka and Debezium included.

unit: ## Run only the tests that need no server: unit tests and the replays of recorded binlogs.
	$(GO) test -timeout 10m $(UNIT)
	$(GO) test -timeout 2m -run '$(NO_SERVER)' ./it
	$(GO) test -timeout 1m -skip '^(TestSideBySide|TestSmoke)$$' ./it/bench

it: images ## Run only the tests with real servers, a real Debezium among them.
	$(GO) test -timeout 25m -parallel 4 -count 1 -v -skip '$(NO_SERVER)' ./it
	$(GO) test -timeout 10m -count 1 -v ./it/differential

images: ## Make sure of a Docker engine, the images of MySQL, MariaDB and Kafka, the jars of Debezium and a schema registry, consumers.
	@it/images/engine
	@$(MAKE) --no-print-directory -j8 image/mysql image/kafka image/connect image/mariadb-10.11 image/mariadb-11.8 \
		image/avro-java image/avro-python image/apicurio

image/mariadb-%:
	@it/images/mariadb $* >/dev/null

image/%:
	@it/images/$* >/dev/null

check: ## Check format, vet, staticcheck, modules, imports and comments.
	@files=$$(gofmt -l . && $(GOFUMPT) -l .); [ -z "$$files" ] || { echo "not formatted (run: $(GOFUMPT) -w .):"; echo "$$files"; exit 1; }
	$(GO) vet ./...
	$(STATICCHECK) ./...
	$(GO) mod tidy -diff
	$(GO) test -count 1 ./it/lint

bench: ## Measure what a row costs.
	$(GO) test -run '^$$' -bench . -benchmem ./schema ./offset ./binlog ./emitter ./emitter/internal/producer

bench-side: images ## Measure Tidemark beside Debezium and others on real servers, some hours (docs/benchmarks.md; sizes: it/bench/doc.go).
	$(GO) test -timeout 0 -count 1 -v -run '^TestSideBySide$$' ./it/bench

bench-smoke: images ## Run every workload and tool of bench-side in a tiny size, to prove that they run.
	$(GO) test -timeout 40m -count 1 -v -skip '^TestSideBySide$$' ./it/bench

soak-vortex: images ## Two instances of two connectors, at least and exactly once, for half an hour in which everything goes wrong.
	TIDEMARK_IT_VORTEX=$${TIDEMARK_IT_VORTEX:-1800} $(GO) test -timeout 90m -count 1 -v -run '^TestVortex$$' ./it

soak-sim: ## Simulate 1,000 seeds of faults (SIM_SEEDS=n: so many, SIM_FROM=n: from there), and builds with a broken tracker or transaction, which must be found.
	SIM_SEEDS=$${SIM_SEEDS:-1000} $(GO) test -timeout 60m -count 1 -v -run '^(TestSim|TestBroken.*IsFound)$$' ./it/sim

soak-chaos: images ## Kill Tidemark thirty times under load, with each kind of store.
	TIDEMARK_IT_KILLS=30 TIDEMARK_IT_STORE=topic $(GO) test -timeout 30m -count 1 -v -run 'Chaos$$' ./it
	TIDEMARK_IT_KILLS=30 TIDEMARK_IT_STORE=file $(GO) test -timeout 30m -count 1 -v -run 'Chaos$$' ./it

soak-bigtx: images ## Read one transaction of a million rows over a SIGTERM in its middle.
	TIDEMARK_IT_BIGTX=1000000 $(GO) test -timeout 30m -count 1 -v -run 'TestBigTransaction' ./it

soak-differential: images ## Compare 200,000 records of random SQL with a real Debezium's, in JSON and in Avro, from a new seed.
	TIDEMARK_IT_EVENTS=$${TIDEMARK_IT_EVENTS:-200000} TIDEMARK_IT_SEED=$${TIDEMARK_IT_SEED:-random} $(GO) test -timeout 120m -count 1 -v ./it/differential

clean: ## Remove what was built here (images and jars stay cached).
	rm -rf bin
