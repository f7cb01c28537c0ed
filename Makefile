# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Each target sets itself up on Debian 12 (scripts/setup.sh) and builds in a folder of its own under $(BUILD). Without root
# it works with what is there, and CMake names what is left out.
BUILD ?= build
JOBS ?= 2
FUZZ_SECONDS ?= 30
TSAN_TESTS ?= .
PREFIX ?= /usr/local
CMAKE_FLAGS ?=
MUTANTS ?=
RUNS ?= 50
LOAD ?= 8
FROM ?=

# $(call build,NAME,FLAGS,TARGETS) leaves a build in $(BUILD)/NAME, with the tests unless TARGETS are named; $(call
# run,NAME,PROGRAM) tells a program where it is.
build = scripts/setup.sh build $(if $3,,check) && { ! command -v ninja >/dev/null || export CMAKE_GENERATOR=Ninja; } && \
    cmake -S . -B $(BUILD)/$1 -DCMAKE_INSTALL_PREFIX=$(PREFIX) $2 $(CMAKE_FLAGS) --log-level=NOTICE && \
    MAKEFLAGS=--no-print-directory cmake --build $(BUILD)/$1 -j $(JOBS) $(addprefix --target ,$3)
run = RDDP_SOURCE_DIR=$(CURDIR) RDDP_BUILD_DIR=$(abspath $(BUILD)/$1) RDDP_TOOL=$(abspath $(BUILD)/$1)/rddp $2
# $(call main,TARGETS) leaves the ordinary build in $(BUILD)/main, $(call fast,TARGETS) one in $(BUILD)/fast that is optimised
# by what $(BUILD)/record did at work; $(call from,NAME) is what FROM says, or NAME.
main = $(call build,main,,$1)
from = $(or $(filter main fast,$(FROM)),$(if $(FROM),$(error FROM is main or fast, not $(FROM)),$1))
fast = $(call build,record,-DRDDP_PROFILE=record,product) && scripts/profile.sh $(BUILD)/record $(BUILD)/fast && \
    $(call build,fast,-DRDDP_PROFILE=use,$1)
# $(call test,NAME,PLACES) has two places for each job, and three with sanitizers, where every test takes two: see
# tests/programs.cmake.
test = scripts/check.sh $(BUILD)/$1 -j $(shell expr $(or $2,2) \* $(JOBS))

all: ## the library and the command, into build/main
	@$(call main,product)
fast: ## the same, optimised by a profile of itself, so that small messages cost less (gcc), into build/fast
	@$(call fast,product)
static: ## the command alone, with every library inside, into build/static: to carry to another machine
	@$(call build,static,-DRDDP_STATIC=ON -DRDDP_TESTS=OFF,rddp_tool)
help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  \1\t/p' Makefile | expand -t 12
demo: ## move a directory tree and a 1 GiB file by RDMA over loopback, verified
	@scripts/setup.sh build demo
	@$(call build,main,,product)
	@$(call run,main,scripts/demo.sh)
tests: ## all that is tested, and the programs that test it, but run none
	@$(call build,main)
check: ## every test that needs no guest kernel
	@$(call build,main)
	@$(call test,main) -LE 'kernel|cross'
check-fast: ## the demonstration by what `make fast` builds, and what a message costs with it
	@scripts/setup.sh demo fast
	@$(call fast,product bench_instructions)
	@$(call run,fast,scripts/demo.sh)
	@$(call run,fast,tests/instructions.sh) || [ $$? = 77 ]
check-again: ## the tests of `make check` RUNS times beside LOAD processes that compute, until one fails
	@$(call build,main)
	@scripts/again.sh $(BUILD)/main $(RUNS) $(LOAD)
san: ## the tests under AddressSanitizer and UBSan
	@$(call build,san,-DRDDP_SANITIZE=address$(comma)undefined)
	@$(call test,san,3) -L 'unit|suite|sim|tool|fuzz-replay|verbs'
tsan: ## the tests with threads under ThreadSanitizer
	@scripts/setup.sh check
	@$(call build,tsan,-DRDDP_SANITIZE=thread,threaded_tests rddp_tool)
	@$(call test,tsan,3) -L 'suite|threads' -R '$(TSAN_TESTS)'
fuzz: ## each libFuzzer target for FUZZ_SECONDS, JOBS at once
	@scripts/setup.sh fuzz
	@$(call build,fuzz,-DRDDP_FUZZ=ON -DCMAKE_C_COMPILER=clang,fuzzers)
	@$(call run,fuzz,scripts/fuzz.sh $(FUZZ_SECONDS) $(JOBS))
mutants: ## known bugs, put in one by one: a test has to fail for each (MUTANTS: so many, or a word)
	@scripts/setup.sh build check
	@scripts/mutants.py $(BUILD)/mutants "$(MUTANTS)"
lint: ## layers, layout, sizes, licences, manual pages, documents, commits, clang, cppcheck, shellcheck
	@scripts/setup.sh build lint
	@scripts/lint.sh
bench: ## rates, latencies, files and NFS beside raw TCP and other programs: a table, build/bench.html (of FROM=fast)
	@scripts/setup.sh bench
	@$(call $(call from,fast),product bench_programs)
	@$(call run,$(call from,fast),bench/run.py)
interop: ## tshark, the kernel's TCP, and a Linux guest kernel, as the other side
	@scripts/setup.sh interop
	@$(call build,main)
	@$(call test,main) -j 1 -L 'interop|kernel'
cross: ## the unit tests and simulations for aarch64 and s390x, under qemu-user
	@scripts/setup.sh cross
	@$(call build,main)
	@$(call test,main) -L cross
soak: ## the tests that chance, time or a fresh compilation makes better, longer than in `make check`
	@$(call build,main)
	@RDDP_LONG=1 $(call test,main) -L soak
soak-nfs: all ## hours for NFS and a Linux guest: files of 1 GiB, a kill in the middle of one, more of chance
	@RDDP_KERNEL_FULL=1 $(call run,main,tests/interop/kernel/nfs_server.sh $(abspath $(BUILD)/main/rddp))
	@RDDP_KERNEL_FULL=1 $(call run,main,tests/interop/kernel/nfs_client.sh $(abspath $(BUILD)/main/rddp))
	@RDDP_KERNEL_FULL=1 $(call run,main,tests/interop/kernel/roce_nfs.sh $(abspath $(BUILD)/main/rddp))
format: ## let clang-format lay the sources out
	@scripts/setup.sh lint
	@git ls-files '*.c' '*.h' | xargs clang-format -i --style=file
coverage: ## which lines the tests run, as text and HTML
	@scripts/setup.sh coverage
	@$(call build,coverage,-DRDDP_COVERAGE=ON -DCMAKE_BUILD_TYPE=Debug)
	@$(call run,coverage,scripts/coverage.sh)
install: ## libraries, headers, command, manual pages and examples, to PREFIX (of FROM=main)
	@$(call $(call from,main),product)
	@cmake --install $(BUILD)/$(call from,main)
	@[ -n "$(DESTDIR)" ] || [ ! -w /etc ] || ldconfig
clean: ## remove build/
	rm -rf $(BUILD)
comma := ,
.PHONY: all fast static help demo tests check check-fast check-again san tsan fuzz mutants lint bench interop cross soak soak-nfs format coverage install clean
