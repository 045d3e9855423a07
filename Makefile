# Needs Go and make. A C compiler is optional: it turns the race detector on.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

GOLANGCI_LINT_VERSION := v2.15.0
GOFUMPT_VERSION       := v0.12.0
GOVULNCHECK_VERSION   := v1.8.0

# Where make install puts the programs, and packages before they are unpacked
PREFIX  ?= /usr/local
DESTDIR ?=

# Packages to test, and more flags: make test PKG=./internal/events ARGS='-v -run Turn'
PKG  ?= ./...
ARGS ?=

# Fault and soak tests to leave out: make test-faults SKIP='FaultFleet|FaultCluster'
SKIP ?= ^$$
export SKIP

# tested lists the packages with a test of such a name: a package to test is linked, four seconds each.
tested = $(sort $(shell grep -rlE --include='*_test.go' '^func ($(1))' client deploy internal | xargs -n 1 dirname | sed 's|^|./|'))

# Where the fault tests are
FAULTY = $(call tested,TestFault)

# How long the kills of make soak go on
SOAK ?= 30m
export SOAK

# The quick tests that make reliability reads figures from
SHOWN   = TestDamagedFile|TestFromSnapshotAndFromZero|TestGolden|TestKillNoticesIgnoredMarker|TestMutatedSnapshots|TestOneNameOneWorker|TestPoison|TestSimulationNotices|TestSyncSimulationNotices|TestSyncSimulation|TestAgentsIdleReaders|TestSquattedIDs|TestControlLookalikes|TestPlantedHeadersLastInPartition|TestPartitionFailsAlone|TestSlowTextsStopNoOtherTenant|TestAmplification|TestEditsAreBounded|TestOutcomesNeverFull|TestNothingPinned|TestUserSpeaksAlone|TestUserSpeaksAloneHeldOut
SHOWING = $(call tested,$(SHOWN))
READ   ?=

# Packages to fuzz, and the time for each target: a minute, 10 s with the fault tests
FUZZED   := ./internal/events ./internal/events/codec ./internal/events/media ./internal/compaction ./internal/overflow ./internal/policyfile ./internal/ops/sqlite ./internal/ops/transcript
FUZZTIME ?=
export FUZZTIME

# Settings of the demo: make demo SESSIONS=200 JSON=1 KEEP=1
SESSIONS ?=
JSON     ?=
KEEP     ?=
export SESSIONS JSON KEEP

# A tool's file name carries its version and Go's, so a change of either builds
# it again: a linter built with an older Go refuses the code of a newer one.
GO_VERSION = $(firstword $(shell go env GOVERSION))
TOOLS     := $(CURDIR)/.tools
tool       = $(TOOLS)/$(1)-$(2)-$(GO_VERSION)

GOLANGCI_LINT = $(call tool,golangci-lint,$(GOLANGCI_LINT_VERSION))
GOFUMPT       = $(call tool,gofumpt,$(GOFUMPT_VERSION))
GOVULNCHECK   = $(call tool,govulncheck,$(GOVULNCHECK_VERSION))

# The version comes from here, not from Go's own reading of the repository,
# which is an error where git does not trust the directory's owner.
VERSION     = $(shell git describe --always --dirty 2>/dev/null || echo dev)
#
# -s -w leave out symbols for debuggers, a third of the size; stack traces keep names and lines.
# Without -trimpath what the tests compiled is not compiled again; the image has it.
BUILD_FLAGS = -buildvcs=false -ldflags "-s -w -X main.version=$(VERSION)"

##@ Use

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/worker and bin/publisher
	@echo "build $(VERSION): bin/worker bin/publisher" >&2
	@mkdir -p bin
	@go build $(BUILD_FLAGS) -o bin/ ./cmd/worker ./cmd/publisher

# Parts of docs/ and deploy/ that stay out: tests, and secrets that setup and people put there.
NOT_INSTALLED = '*.go' testdata validate check certs passwords secrets .env .gitignore

# The programs know the name they are called by, and print it in what is installed.
.PHONY: install
install: build ## Install programs, manuals, completion, the systemd unit, docs and deploy (PREFIX=/usr/local, DESTDIR=)
	@umask 022; set -e; to='$(DESTDIR)$(PREFIX)'; \
	mkdir -p "$$to/bin" "$$to/share/man/man1" "$$to/share/bash-completion/completions" "$$to/share/zsh/site-functions" \
		"$$to/share/fish/vendor_completions.d" "$$to/share/doc/compactd" "$$to/lib/systemd/system"; \
	for p in compactd-worker compactd-publisher; do \
		install -m 755 bin/$${p#compactd-} "$$to/bin/$$p"; \
		env -i "$$to/bin/$$p" man >"$$to/share/man/man1/$$p.1"; \
		env -i "$$to/bin/$$p" completion bash >"$$to/share/bash-completion/completions/$$p"; \
		env -i "$$to/bin/$$p" completion zsh >"$$to/share/zsh/site-functions/_$$p"; \
		env -i "$$to/bin/$$p" completion fish >"$$to/share/fish/vendor_completions.d/$$p.fish"; \
	done; \
	install -m 644 $(wildcard *.md) LICENSE "$$to/share/doc/compactd"; \
	tar -c $(addprefix --exclude=,$(NOT_INSTALLED)) docs deploy examples/sessions | tar -x --no-same-owner -C "$$to/share/doc/compactd"; \
	chmod -R u=rwX,go=rX "$$to/share/doc/compactd"; \
	sed 's|/usr/local/bin|$(PREFIX)/bin|' deploy/systemd/compactd-worker.service >"$$to/lib/systemd/system/compactd-worker.service"; \
	echo "installed below $$to" >&2

.PHONY: demo
demo: build ## Run a worker and a fleet of agents (SESSIONS=n, JSON=1, KEEP=1)
	@scripts/demo

.PHONY: release
release: ## Build dist/ from the newest commit: archives, packages, image, formula, checksums, bills of materials
	@cd $(RELEASE_MODULE) && go run . -from ../.. $(ARGS)

.PHONY: test-release
test-release: ## Build the release twice, compare the sums, install and start each file (ARGS=-short: once, for this platform)
	cd $(RELEASE_MODULE) && go test -count=1 -timeout 30m -v $(ARGS) ./...

##@ Test

# Packages without goroutines of their own, and those whose goroutines others have too:
# the measuring tools, whole workers, and the scripts of the commands, which start hundreds of
# processes. The race detector makes them five times slower, so make race runs them under it.
PLAIN = ./cmd/... ./deploy/... ./docs ./examples/... ./scripts ./tools/... ./internal/align ./internal/compaction/... \
	./internal/disk ./internal/events/... ./internal/exact ./internal/overflow ./internal/policyfile ./internal/stored \
	$(addprefix ./internal/ops/,access cli/... diff facts named sqlite term transcript units whatif) \
	./internal/summarize $(addprefix ./internal/summarize/,attached claim extract llm sanitize snippet summarizetest) \
	./internal/testkit/tags ./internal/tokens $(addprefix ./internal/worker/,decide rank scenarios)

# The same for tests of these names: servers in fake time, simulations, children that are
# killed, thousands of turns, megabytes of text.
SLOW = TestAgentsIdle|TestAgentsSlow|TestAgreesWithWorker|TestCommitLimits|TestContextPages|TestDamagedFile|TestFewUndecided|TestGateways|TestGetLog|TestKill|TestLargeTree|TestLargestBody|TestLeaseEnds|TestManyStreams|TestMessagesOmitted|TestPlanted|TestReaderFetchesTooLarge|TestRecall|TestReplayDiffers|TestRewindsInLoop|TestSimulation|TestStoreIsAMap|TestSyncFits|TestSyncLargeMedia|TestSyncManyMedia

# Without what debuggers need, a test links in two thirds of the time. make lint vets.
TEST = go test -timeout 30m -vet=off -ldflags=-w $(ARGS)

# A process with the race detector sleeps a second before it ends.
test race: export GORACE = atexit_sleep_ms=10

# In its directory, examples/clients shows what its tests print: the agents that were run,
# and those that this machine cannot run.
.PHONY: test
test: ## Run the tests, with -race where a C compiler is found (PKG=, ARGS=)
	@race=; \
	if go build -race runtime/cgo 2>/dev/null; then race=-race; echo "test: -race is on, where there are goroutines"; \
	else echo "test: -race is off (it needs a C compiler and CGO_ENABLED=1)"; fi; \
	if [ "$(PKG)" != ./... ]; then exec $(TEST) $$race $(PKG); fi; \
	plain=$$(go list $(PLAIN)); \
	$(TEST) $$race -skip '^($(SLOW))' $$(go list ./... | grep -vxF "$$plain") & raced=$$!; status=0; \
	slow=$$(go list $(call tested,$(SLOW)) | grep -vxF "$$plain"); \
	$(TEST) -run '^($(SLOW))' $$slow || status=1; \
	$(TEST) $$(echo "$$plain" | grep -v '/examples/clients$$') || status=1; \
	(cd examples/clients && $(TEST)) || status=1; \
	wait $$raced || status=1; \
	exit $$status

.PHONY: race
race: ## Run every test with the race detector (PKG=, ARGS=; 15 minutes)
	$(TEST) -race -timeout 30m $(PKG)

.PHONY: stress
stress: ## Run make test three times beside four busy processes, then its slowest tests 50 times (ARGS='-times 10')
	@go run ./tools/stress $(ARGS)

.PHONY: test-dialects
test-dialects: ## Translate all real sessions into every dialect, and compact them (COMPACTD_SESSIONS=, COMPACTD_MORE_SESSIONS=)
	@go test ./internal/compaction -count=1 -timeout 20m -run '^TestDialects$$' -v -args -dialects >.dialects.out || { cat .dialects.out; rm .dialects.out; exit 1; }
	@grep -E '^dialects |SKIPPED' .dialects.out; rm .dialects.out

.PHONY: test-faults
test-faults: ## Run the fault tests: crashes, cuts, lost power, lost nodes, full disks; then fuzz (10 minutes)
	@scripts/figures test-faults $(MAKE) --no-print-directory fault-tests

.PHONY: fault-tests
fault-tests:
	go test -tags faults -count=1 -timeout 45m -parallel 4 $(ARGS) $(FAULTY) -run 'Fault' -skip '$(SKIP)'
	@FUZZTIME=$(or $(FUZZTIME),10s) scripts/fuzz $(FUZZED)

.PHONY: soak
soak: ## Run the long tests: kills for SOAK=30m, power loss, memory, frozen owners; fuzz a minute each
	@scripts/figures soak scripts/soak $(FUZZED)

.PHONY: models
models: ## Refresh the windows and prices of models from models.dev (FROM=api.json)
	go run ./tools/models $(if $(FROM),-from $(FROM))

.PHONY: reliability
reliability: ## Run all of it and write docs/reliability.txt (READ=1: from the last runs)
	@if [ -z "$(READ)" ]; then \
		scripts/figures test go test -count=1 $(SHOWING) -run '^($(SHOWN))$$'; \
		$(MAKE) --no-print-directory test-faults; \
		$(MAKE) --no-print-directory soak; \
	fi; go run ./tools/reliability .reliability/*.txt

.PHONY: fuzz
fuzz: ## Run every fuzz target for a minute (FUZZTIME=10s)
	@scripts/fuzz $(FUZZED) ./internal/worker/scenarios

# Modules of their own: the official SDKs of providers would be most of every build.
SDK_MODULES = internal/summarize/provider/sdktest examples/agents

# The same for the scanner that the rules of redaction come from
RULES_MODULE = tools/gitleaks

# The same for the tests in a browser
BROWSER_MODULE = console/browser

# The same for what makes packages and images
RELEASE_MODULE = tools/release

MODULES = $(SDK_MODULES) $(RULES_MODULE) $(BROWSER_MODULE) $(RELEASE_MODULE)

.PHONY: sdk-test
sdk-test: ## Compare model providers with their official SDKs, and test the agents on those
	@for m in $(SDK_MODULES); do (cd $$m && go test $(ARGS) ./...) || exit 1; done

.PHONY: clients
clients: ## Run agents on SDKs and other clients, none left out for want of Node, and write docs/clients.txt
	@scripts/check-clients --write

.PHONY: gateway
gateway: ## Run the same agents with a base URL alone, and whole agents from npm, behind a gateway; write docs/gateway.txt
	@scripts/check-clients --gateway

.PHONY: bench
bench: ## Measure speed and memory in 5 minutes (ARGS='-run pipeline -rounds 7', PEER=CHECKOUT of the reference)
	@$(if $(PEER),npm ci --loglevel=error --prefix console && )go run ./tools/bench $(if $(PEER),-peer '$(PEER)') $(ARGS)

.PHONY: build-cost
build-cost: ## Measure a cold build of bin/worker in CPU and MB, over the least it can be (10 minutes)
	@go run ./tools/buildcost $(ARGS)

.PHONY: estimate
estimate: ## Measure estimates against usages of COMPACTD_SESSIONS (ARGS=FILE…)
	@go run ./tools/estimate $(ARGS)

.PHONY: eval
eval: ## Measure what is kept, and who waits, in under 8 minutes, and write docs/quality.txt (ARGS='-run retention')
	@go run ./tools/eval -write docs/quality.txt $(ARGS)
	@go run ./tools/plots docs/quality.txt docs/quality

.PHONY: whatif
whatif: build ## Compare the presets on COMPACTD_SESSIONS (ARGS='--policy mine.yaml')
	@if [ -z "$$COMPACTD_SESSIONS" ]; then echo "whatif: set COMPACTD_SESSIONS to a directory of transcripts" >&2; exit 1; fi
	@bin/worker replay --policy default --policy cut --policy neurolink --policy claude $(ARGS) "$$COMPACTD_SESSIONS"

##@ Keep in order

.PHONY: deploy-check
deploy-check: ## Check every file of deploy/ with the tool that will read it (minutes, the first time)
	@deploy/check

.PHONY: lint
lint: $(GOLANGCI_LINT) $(GOFUMPT) ## Check format, style and who may import whom
	@files=$$($(GOFUMPT) -l .) || exit 1; if [ -n "$$files" ]; then \
		echo "$$files"; echo "lint: not formatted; run 'make fmt'" >&2; exit 1; fi
	$(GOLANGCI_LINT) run
	@for m in $(MODULES); do (cd $$m && $(GOLANGCI_LINT) run) || exit 1; done

.PHONY: fmt
fmt: $(GOFUMPT) ## Format the code
	$(GOFUMPT) -w .

.PHONY: words
words: ## Find words that are not those of docs/glossary.md (ARGS=-by-directory, ARGS=internal/kv)
	@go run ./tools/words $(ARGS)

.PHONY: size
size: ## Count lines by directory: product, tools, tests, docs (ARGS=COMMIT)
	@scripts/size $(ARGS)

.PHONY: schemas
schemas: ## Write internal/events/schema from the structs and routes
	go test ./internal/events/schema/schematest -run 'TestSchemas$$' -update
	go test ./internal/worker -run 'TestOpenAPI$$' -update

.PHONY: console
console: ## Build the page in the browser, internal/console/assets, from console/ (needs npm)
	@cd console && npm ci --no-fund --no-audit --ignore-scripts --loglevel=error && npm run -s check && npm run -s build

.PHONY: console-check
console-check: ## Check that internal/console/assets is what console/ makes
	@scripts/console check

.PHONY: test-console
test-console: build ## Test the page in Chromium, before a worker with the example sessions (ARGS='-run Keyboard')
	@scripts/console test $(ARGS)

.PHONY: notices
notices: ## Write THIRD_PARTY_NOTICES.md, the licences of what the binaries link; after every change of go.mod
	@go run ./tools/notices

.PHONY: rules
rules: ## Check that the rules of redaction are those of gitleaks, and find what it finds
	cd $(RULES_MODULE) && go test $(ARGS) ./...

.PHONY: vuln
vuln: $(GOVULNCHECK) ## Look for known vulnerabilities (needs network)
	$(GOVULNCHECK) ./...

.PHONY: tidy
tidy: ## Tidy go.mod and go.sum of every module that imports compactd
	go mod tidy
	@for m in $(MODULES); do (cd $$m && go mod tidy) || exit 1; done

.PHONY: tidy-check
tidy-check: ## Check that go.mod and go.sum are tidy
	go mod tidy -diff
	@for m in $(MODULES); do (cd $$m && go mod tidy -diff) || exit 1; done

.PHONY: clean
clean: ## Remove what was built; tools and data stay
	rm -rf bin dist
	find . -name .git -prune -o -type f \( -name '*.test' -o -name '*.prof' \) -exec rm -f {} +

# install builds a tool into its versioned file, with the Go of this module:
# left alone, go install takes the oldest Go that the tool's own go.mod allows.
define install
	@echo "install $(notdir $@)" >&2
	@GOBIN=$(TOOLS) GOTOOLCHAIN=$(GO_VERSION) go install $(2)
	@rm -f $(TOOLS)/$(1)-v*
	@mv $(TOOLS)/$(1) $@
endef

$(GOLANGCI_LINT):
	$(call install,golangci-lint,github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION))

$(GOFUMPT):
	$(call install,gofumpt,mvdan.cc/gofumpt@$(GOFUMPT_VERSION))

$(GOVULNCHECK):
	$(call install,govulncheck,golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION))
