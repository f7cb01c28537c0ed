#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""loops.py BUILD [LOOPS...] - what several loops, each with a processor of its own, have to pass to each other: counted, not
timed. Workers of bench/loops take turns in one process under valgrind (lackey), which prints each access to memory. Here each
worker is a processor with a cache of its own that never forgets; a line that another processor has written, or that has to be
taken from others to be written, moves. Prints JSON: for CQs of one's own and for one CQ of all with messages one at a time
(workers change after each: the worst that can come), for one CQ with lists of 32, and for each number of loops (1 2 4 8 16 by
default): instructions and moves of lines a message, the moves of the line that moves most, and the messages a second that
follow from that and what `bench/loops measure` says of this machine. What the kernel shares is not seen.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile

LINE, TURNS, WARM, ROUNDS = 64, 8, 3, 5
MARK, WORKERS_MAX = 0x200000000, 16  # as bench/loops.c has them


class Caches:
    """Who has which line, and how often each moved."""

    def __init__(self):
        self.holders, self.moves = {}, {}

    def read(self, who, line):
        holders = self.holders.setdefault(line, set())
        if who not in holders:
            if holders:
                self.moves[line] = self.moves.get(line, 0) + 1
            holders.add(who)

    def write(self, who, line):
        holders = self.holders.get(line)
        if holders and holders != {who}:
            self.moves[line] = self.moves.get(line, 0) + 1
        self.holders[line] = {who}


def simulate(lines, loops):
    """Returns instructions and moves {line: count} after WARM turns of each worker."""
    caches, who, begun, instructions = Caches(), None, 0, 0
    for text in lines:
        if text[0] == "I":
            instructions += who is not None and begun > WARM * loops
        elif text[0] == " ":
            kind, (address, octets) = text[1], text[3:].split(",")
            address, octets = int(address, 16), int(octets)
            if MARK <= address < MARK + (WORKERS_MAX + 1) * LINE:
                who = (address - MARK) // LINE if address < MARK + WORKERS_MAX * LINE else None
                begun += who is not None
                if begun == WARM * loops + 1:
                    caches.moves = {} if who is not None else caches.moves
            elif who is not None:
                for line in range(address // LINE, (address + octets - 1) // LINE + 1):
                    if kind != "S":
                        caches.read(who, line)
                    if kind != "L":
                        caches.write(who, line)
    return instructions, caches.moves


def counted(program, loops, cqs, length):
    """What a message costs with this number of loops: instructions, moves, and the moves of the line that moves most."""
    with tempfile.TemporaryDirectory() as directory:
        os.mkfifo(directory + "/trace")
        with subprocess.Popen(["valgrind", "-q", "--tool=lackey", "--trace-mem=yes", "--basic-counts=no", "--log-file="
                               + directory + "/trace", program, "trace", str(loops), cqs, str(TURNS),
                               str(length)]) as run:
            with open(directory + "/trace", encoding="ascii") as lines:
                instructions, moves = simulate(lines, loops)
        if run.returncode:
            raise RuntimeError("valgrind: exit code %d" % run.returncode)
    messages = (TURNS - WARM) * length * loops
    return {"instructions": instructions / messages, "moves": sum(moves.values()) / messages,
            "hottest": max(moves.values(), default=0) / messages}


def rate(loops, cost, measured):
    """Messages a second: a worker's own time, as it has it beside another one that shares nothing, and that of its moves;
    and no line moves twice at once."""
    each_s, move_s = 2 / measured["two_apart"], measured["line_ns"] / 1e9
    free = loops / (each_s + cost["moves"] * move_s)
    return min(free, 1 / (cost["hottest"] * move_s)) if cost["hottest"] else free


def measure(program, length):
    """Medians of rounds in which all take their turn."""
    command = [program, "measure", os.environ.get("BENCH_SECONDS", "0.2"), str(length)]
    rounds = [json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout) for _ in range(ROUNDS)]
    return {what: statistics.median(one[what] for one in rounds) for what in rounds[0]}


def scale(program, counts):
    result = []
    for length, kinds in (1, ["own", "one"]), (32, ["one"]):
        measured = measure(program, length)
        for cqs in kinds:
            costs = {loops: counted(program, loops, cqs, length) for loops in counts}
            result.append({"cqs": cqs, "list": length, "measured": measured, "loops": [
                {"loops": loops, **cost, "messages_per_second": rate(loops, cost, measured)}
                for loops, cost in costs.items()]})
    return result


if __name__ == "__main__":
    print(json.dumps(scale(sys.argv[1] + "/bench/loops", [int(word) for word in sys.argv[2:]] or [1, 2, 4, 8, 16]), indent=1))
