#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# names.sh - tests that a name shows what it is made of and moves no terminal: escape sequences, line ends and other control
# characters in names and link targets, in what each command and server prints.
# shellcheck disable=SC2154 # rddp, tmp, port and server are tool.sh's
set -u
# shellcheck source=tests/lib/tool.sh disable=SC1091
source "${RDDP_SOURCE_DIR:?}/tests/lib/tool.sh"

cd "$tmp" || exit 1
chmod 755 "$tmp"
export LC_ALL=C
title=$'\e]0;owned\a' clear=$'\e[2J\r' c1=$'csi\x9b2J' c1_utf8=$'csi\xc2\x9b2J'
make_tree() { # DIR
    mkdir -p "$1/$clear" "$1/plain"
    for name in "$title" $'two\nlines' $'del\x7f\b\t' "$c1" "$c1_utf8"; do echo text >"$1/$name"; done
    echo text >"$1/$clear/$title"
    ln -s "$clear" "$1/link"
    ln -s "/$title" "$1/lead${title}out"
}

# All that a command may print are whole characters and line ends.
harmless() { # NAME FILE...
    local name=$1
    shift
    if python3 - "$@" <<'PYTHON'
import sys
for name in sys.argv[1:]:
    text = open(name, 'rb').read().decode('utf-8')
    bad = [c for c in text if c != '\n' and (ord(c) < 32 or 127 <= ord(c) < 160)]
    if bad:
        sys.exit(f'{name}: {bad!r} in {text!r}')
PYTHON
    then pass; else wrong "$name: prints what moves a terminal"; fi
}
shown() { # CODE NAME PATTERN COMMAND...: ends with CODE, shows PATTERN, and nothing else of a name reaches the terminal
    expect "$1" "$2" "${@:4}"
    cat out err >both
    expect_text "$2" "$3" both
    harmless "$2" out err
}
title_shown='\\x1b\]0;owned\\x07' clear_shown='\\x1b\[2J\\x0d'

# --- rddp nfs, rddp nfsd ---
make_tree shared
start nfsd --rdma-port 0 --mount-port 0 --state "$tmp/state" --squash none "$tmp/shared"
mount_port=$(sed -n '2s/.*mountport=\([0-9]*\).*/\1/p' server.out)
rdma_port=$(sed -n '2s/.*proto=rdma,port=\([0-9]*\).*/\1/p' server.out)
nfs=("$rddp" nfs --port "$rdma_port" --mount-port "$mount_port")
at=127.0.0.1:$tmp/shared
shown 0 'nfs ls' "^$title_shown\$" "${nfs[@]}" ls "$at"
expect_text 'nfs ls' '^two\\nlines$'
expect_text 'nfs ls' '^csi\\x9b2J$'
expect_text 'nfs ls' '^csi\\xc2\\x9b2J$'
expect_text 'nfs ls' '^del\\x7f\\x08\\x09$'
shown 0 'nfs ls -l' "link -> $clear_shown\$" "${nfs[@]}" ls -l "$at"
shown 0 'nfs ls -lR' "/$clear_shown:\$" "${nfs[@]}" ls -lR "$at"
shown 0 'nfs ls of a file' "$title_shown" "${nfs[@]}" ls -l "$at/$title"
shown 0 'nfs stat' "file: .*/link -> $clear_shown\$" "${nfs[@]}" stat "$at/link"
shown 0 'nfs stat of a file' "file: .*$title_shown" "${nfs[@]}" stat "$at/$title"
shown 1 'nfs stat of nothing' "none$title_shown: no such file" "${nfs[@]}" stat "$at/none$title"
shown 1 'nfs cat of a directory' "$clear_shown" "${nfs[@]}" cat "$at/$clear"
shown 1 'nfs rm of a directory' "$clear_shown" "${nfs[@]}" rm "$at/$clear"
shown 1 'nfs mkdir of what is there' "$clear_shown" "${nfs[@]}" mkdir "$at/$clear"
shown 0 'nfs get' '^1 file' "${nfs[@]}" get "$at/$title" "into$title"
shown 0 'nfs put' '^1 file' "${nfs[@]}" put "into$title" "$at/back$title"
shown 0 'nfs cp -r' 'files' "${nfs[@]}" cp -r "$at" copied
shown 0 'nfs cp -r to the server' 'files' "${nfs[@]}" cp -r copied "$at/copied$title"
shown 0 'nfs get --json' 'into.*x1b' "${nfs[@]}" --json get "$at/$title" "into$title"
stop 'nfsd'
harmless 'nfsd' server.out server.err

# --- rddp cp, rddp serve ---
start serve -a 127.0.0.1 "$tmp/shared"
cp=("$rddp" cp -p "$port")
shown 0 'cp --list' "$title_shown" "${cp[@]}" -r --list 127.0.0.1:
expect_text 'cp --list' " -> $clear_shown\$"
shown 0 'cp --list --json' '"path": ".*x1b' "${cp[@]}" -r --list --json 127.0.0.1:
shown 0 'cp --dry-run' "$title_shown" "${cp[@]}" -r --links skip -n 127.0.0.1: pulled
shown 1 'cp' "lead${title_shown}out" "${cp[@]}" -r 127.0.0.1: pulled
shown 1 'cp to the server' "lead${title_shown}out" "${cp[@]}" -r shared "127.0.0.1:pushed$title"
shown 0 'cp of a file' '^1 file' "${cp[@]}" "127.0.0.1:$title" "one$title"
shown 1 'cp of nothing' "none$title_shown" "${cp[@]}" "127.0.0.1:none$title" "one$title"
stop 'serve'
harmless 'serve' server.out server.err
if grep -qE "$title_shown" server.out server.err; then pass; else wrong 'serve says nothing of these names'; fi

finish names
