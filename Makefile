# Everything a contributor types. What takes more than a line is in .ci/.

export BUDGET ?= 10m
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
GOBUILD  = CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)"
PKG     ?= ./...
PEERS   ?= 100 1000 10000

.PHONY: build release packages profile dev test clients race soak registries postgres lint screenshots fuzz mutants bench bench-lists bench-processes simulate generate fmt help

build: ## build ./stoa and ./stoa-devchain (the default)
	$(GOBUILD) -o stoa ./cmd/stoa
	cd cmd/devchain && $(GOBUILD) -o ../../stoa-devchain .

release: ## dist/: the release of CHANGELOG.md for each platform, or TARGETS="linux/amd64", with packages and signed checksums, made twice and compared
	.ci/release

packages: ## the packages of this checkout, installed on a bare Debian and opened in a browser; needs root
	.ci/debian

profile: ## cmd/stoa/release.pgo from the load benchmarks
	.ci/profile

dev: build ## nodes on loopback with a chain and sample data
	./stoa dev

test: ## every test, on SQLite and PostgreSQL; SHORT=1 leaves out those of make clients
	.ci/test $(PKG)

clients: ## the tests that drive programs of others: Chromium, Fedify, Radicale, Exim, jsonld, wallets, Python, proxies, the SDK of MCP, a client of UCP
	.ci/clients

race: ## the tests with the race detector
	.ci/race $(PKG)

registries: ## the dev chain's tests on other compiled registries: ERC8004_ARTIFACTS=DIR, else ours compiled otherwise
	.ci/registries

postgres: ## storage and room tests on SQLite and PostgreSQL
	STOA_TEST_ENGINES=all .ci/with-postgres go test -shuffle=on ./storage/... ./node/...

lint: ## vet, staticcheck and the linter of the OpenAPI description
	.ci/lint $(PKG)

screenshots: ## a picture of every page, phone and desk, light and dark, in data/screenshots
	STOA_TEST_CHROMIUM=$$(.ci/chromium) STOA_TEST_SCREENSHOTS=$(CURDIR)/data/screenshots go test -count=1 -vet=off -run '^TestScreenshots$$' ./node/door/web

fuzz: ## every fuzz target for FUZZTIME (1m)
	.ci/fuzz $(PKG)

mutants: ## what the tests of money, decisions and scopes, or PKG, do not notice of changes to the code, for BUDGET (10m)
	.ci/mutants $(PKG)

soak: ## long runs for BUDGET (10m): growth up to a full node, kills, crashes of PostgreSQL, random inputs, models
	.ci/soak

bench: ## the figures of docs/PERFORMANCE.md, medians of five runs
	.ci/bench

bench-lists: ## every list and search at 10,000 and a million posts
	.ci/bench-lists

bench-processes: ## signed posts to one, two and four processes on one PostgreSQL
	.ci/bench-processes

simulate: ## a node among PEERS ("100 1000 10000") and a network of as many, on a virtual clock: docs/CAPACITY.md
	STOA_SIMULATE="$(PEERS)" go test -count=1 -vet=off -timeout 60m -v -run '^TestSimulation' ./federation

generate: ## Go code of the pages, schemas, OpenAPI description and reference
	go tool -modfile=tools/go.mod templ generate -log-level error -path node/door/web
	for file in node/door/web/words/*.json protocol/codes/bcp47.txt protocol/codes/iso3166.txt protocol/codes/names.txt protocol/codes/zones.txt schemas/agent-profile.v1.json node/door/web/static/*.css node/door/web/static/*.js node/door/web/static/*.json; do gzip -9nc $$file | cmp -s - $$file.gz || gzip -9nkf $$file; done
	for file in storage/migrations/*/*.sql; do echo "-- file: $$file"; cat $$file; done | gzip -9nc > storage/migrations.gz
	go run ./cmd/stoa generate

fmt: ## gofmt -s; lists what changed
	gofmt -s -l -w $$(git ls-files '*.go')

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12
