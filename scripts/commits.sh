#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# commits.sh [--self-test] - checks the commits after the rule was made: the subject is `area: what` in the imperative,
# up to 72 columns, and the body gives the reason. A shallow clone is checked as far as it goes.
set -euo pipefail
cd "$(dirname "$0")/.."

# The last commit before the rule, and its time, for clones without that commit.
base=4512f53543d0cd7acb38a908eed4c4728dce1f77
since=2026-11-22T06:49:44Z

complain() { # SUBJECT BODY: print one line for each fault
    local subject=$1 body=$2 verb
    [[ ${#subject} -le 72 ]] || echo "a subject of ${#subject} columns, more than 72"
    if ! [[ $subject =~ ^[a-z0-9_.,/\ -]+:\ ([^\ ]+) ]]; then
        echo "the subject is not 'area: what'"
    else
        verb=${BASH_REMATCH[1]}
        case $verb in
        need | feed | seed | embed | exceed | proceed | speed | shed | bring | string | ring) ;;
        a | an | the | no | some | every | each | what | this | that | [a-z]*ed | [a-z]*ing) echo "'$verb' is no imperative" ;;
        esac
    fi
    [[ $subject != *. ]] || echo "the subject ends with a full stop"
    [[ $body =~ [^[:space:]] ]] || echo "no body that says why"
}

check() {
    local range=("$base..HEAD") name subject body words bad=0 count=0
    git rev-parse -q --verify HEAD >/dev/null 2>&1 || { echo "commits: not a clone, nothing to check"; return; }
    git cat-file -e "$base^{commit}" 2>/dev/null || range=("--since=$since" HEAD)
    while IFS= read -r name && IFS= read -r subject && IFS= read -rd '' body; do
        count=$((count + 1))
        words=$(complain "$subject" "$body")
        [ -n "$words" ] || continue
        echo "$name $subject:"
        echo "    ${words//$'\n'/$'\n'    }"
        bad=1
    done < <(git log -z --no-merges --format='%h%n%s%n%b' "${range[@]}")
    [ $bad = 0 ] && echo "commits: $count since $since"
    return $bad
}

self_test() {
    local bad=0
    expect() { # WORDS SUBJECT BODY: expect exactly one complaint, with these words; none if WORDS is empty
        local said
        said=$(complain "$2" "$3")
        if [[ -z $1 && -n $said ]] || [[ -n $1 && ($said != *"$1"* || $said == *$'\n'*) ]]; then
            echo "commits: self-test: '$2': said '$said', wanted '$1'" >&2
            bad=1
        fi
    }
    expect "" "wire: refuse an FPDU length below the DDP header" "The length check came second."
    expect "" "cp, serve: feed both ends" "So that neither waits."
    expect "more than 72" "wire: refuse $(printf 'x%.0s' {1..60})" "Why."
    expect "not 'area" "Refuse what is short" "Why."
    expect "no imperative" "wire: refused a length" "Why."
    expect "no imperative" "wire: the length" "Why."
    expect "full stop" "wire: refuse a length." "Why."
    expect "no body" "wire: refuse a length" ""
    return $bad
}

[ "${1:-}" != --self-test ] || self_test
check
