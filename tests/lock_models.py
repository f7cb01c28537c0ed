#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""lock_models.py - runs a model of each lock-free protocol through every schedule, and every value that C11 lets its loads
return. Each holds with the memory orders that the code asks for, whose lines are looked up there; each fails when one of
them is weakened, or a step is left out.

The memory: a store is a message at the end of its word's order and carries, if it releases, what its thread has seen. A load
returns any message that is not older than what its thread has seen; if it acquires, the thread has then seen what the message
carries. Sequentially consistent accesses see the last of their kind to the same word; fences join what all fences have
seen."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RELEASES, ACQUIRES = {"rel", "acq_rel", "sc"}, {"acq", "acq_rel", "sc"}


def join(a, b):
    return tuple(map(max, a, b))


class Model:
    """words: initial values. threads: lists of (operation, arguments ...). bad(regs, last): what must not be at the end, or
    None; a "use" of a word that is not 0 is bad at once. alone: a thread that, from every state, comes to its end although no
    other one runs, since it may have displaced them; bad(regs, last) is asked there, too."""

    def __init__(self, words, threads, bad=lambda regs, last: None, alone=None):
        self.names, self.bad, self.threads, self.alone = list(words), bad, threads, alone
        zero = (0,) * len(words)
        messages = tuple(((value, zero),) for value in words.values())
        self.start = (messages, zero, zero, tuple((0, (), zero, zero) for _ in threads))

    def steps(self, state, t):
        """All states after the next step of thread `t`; a string: it was bad."""
        messages, sc, fences, threads = state
        pc, regs, view, pending = threads[t]
        op, *args = self.threads[t][pc]
        r = dict(regs)

        def after(messages=messages, sc=sc, fences=fences, view=view, pending=pending, to=pc + 1):
            one = (to, tuple(sorted(r.items())), view, pending)
            return messages, sc, fences, threads[:t] + (one,) + threads[t + 1:]

        if op == "fence":
            view = join(join(view, pending), fences)
            return [after(view=view, fences=view)]
        if op == "if":
            condition, skip = args
            return [after(to=pc + 1 if condition(r) else pc + 1 + skip)]
        i = self.names.index(args[0])
        last = len(messages[i]) - 1
        if op == "use":
            return [f"{args[0]} was used after its end" if messages[i][last][0] else after()]
        if op in ("load", "wait"):
            _, register, order = args[:3]
            found = []
            for at in range(max(view[i], sc[i] if order == "sc" else 0), last + 1):
                value, carried = messages[i][at]
                if op == "wait" and not args[3](r, value):
                    continue
                r[register] = value
                seen = join(view, tuple(at if k == i else 0 for k in range(len(view))))
                if order in ACQUIRES:
                    seen = join(seen, carried)
                found.append(after(view=seen, pending=join(pending, carried)))
            return found
        if op == "lock":  # a spinlock: waits until it is free
            if messages[i][last][0]:
                return []
            args = (args[0], args[1], 1, "acq")
        _, register, change, order = args if op in ("change", "lock") else (args[0], None, args[1], args[2])
        old, carried = messages[i][last]
        if op in ("change", "lock"):  # reads the last message, whatever its order
            r[register] = old
            view = join(view, carried) if order in ACQUIRES else view
        new = change(r, old) if callable(change) else change
        if op == "change" and new is None:  # a compare that failed
            return [after(view=view)]
        view = tuple(last + 1 if k == i else v for k, v in enumerate(view))
        shown = view if order in RELEASES else tuple(last + 1 if k == i else 0 for k in range(len(view)))
        if op in ("change", "lock"):
            shown = join(shown, carried)
        if order == "sc":
            sc = tuple(last + 1 if k == i else v for k, v in enumerate(sc))
        messages = messages[:i] + (messages[i] + ((new, shown),),) + messages[i + 1:]
        return [after(messages=messages, sc=sc, view=view)]

    def judge(self, state):
        last = {name: state[0][i][-1][0] for i, name in enumerate(self.names)}
        return self.bad([dict(thread[1]) for thread in state[3]], last)

    def runs_alone(self, state):
        """Runs the thread that may have displaced all others, to its end. What is bad on the way, or None."""
        todo = [state]
        while todo:
            state = todo.pop()
            if state[3][self.alone][0] == len(self.threads[self.alone]):
                found = self.judge(state)
            else:
                after = self.steps(state, self.alone)
                found = next((s for s in after if isinstance(s, str)), None if after else "waits for a thread that it displaced")
                todo += after
            if found:
                return found
        return None

    def run(self):
        seen, todo = {self.start}, [self.start]
        while todo:
            state = todo.pop()
            ready = [t for t, thread in enumerate(state[3]) if thread[0] < len(self.threads[t])]
            after = [s for t in ready for s in self.steps(state, t)]
            if not after:  # the end, or all wait
                after = [self.judge(state)]
                if ready and not after[0]:
                    after = ["a thread waits without end"]
            if self.alone is not None:
                after.append(self.runs_alone(state))
            for s in filter(None, after):
                if isinstance(s, str):
                    return s, len(seen)
                if s not in seen:
                    seen.add(s)
                    todo.append(s)
        return None, len(seen)


def epochs(enter="sc", look="sc", renewed=False, held_first=True, held=True):
    """A reader looks up a region and lends a span of it; rddp_dereg_mr() removes the region, waits for the readers, then
    has holders copy their spans, and frees the region."""
    reader = [("load", "now", "e", "sc"), ("store", "epoch", lambda r, _: r["e"], enter), ("load", "mr", "p", look),
               ("if", lambda r: r["p"], 2), ("use", "freed"), ("change", "sending", "_", lambda r, old: old + 1, "sc")]
    if renewed:
        reader += [("load", "now", "e", "sc"), ("store", "epoch", lambda r, _: r["e"], "sc")]
    reader += [("if", lambda r: r["p"], 1), ("store", "borrows", 1, "rlx"),
                ("change", "held", "_", 0, "sc"), ("store", "epoch", 0, "rel")]
    look_at = [("load", "held", "h", "sc"), ("load", "borrows", "b", "rlx")]
    remover = [("store", "mr", 0, "sc"), ("change", "now", "retired", lambda r, old: old + 1, "sc"),
               ("wait", "epoch", "_", "sc", lambda r, epoch: not epoch or epoch > r["retired"]),
               ("load", "sending", "s", "sc"), ("if", lambda r: r["s"], 5)]
    remover += look_at if held_first else look_at[::-1]
    remover += [("if", lambda r: r["b"] or (held and r["h"]), 2), ("wait", "held", "_", "acq", lambda r, v: not v),
                ("store", "sending", 0, "sc"), ("store", "freed", 1, "rlx")]
    return Model({"now": 1, "epoch": 0, "mr": 1, "sending": 0, "borrows": 0, "held": 1, "freed": 0}, [reader, remover],
                 lambda regs, last: "a span of a region that was freed" if last["sending"] and last["freed"] else None)


def window(valid_first=True, waits=True, publishes="sc"):
    """A reader looks up a window by its old key or its new one; a bind leads the window, and another key, elsewhere."""
    asks = [("load", "valid", "v", "sc"), ("load", "key", "k", "rlx")]
    reader = [("load", "now", "e", "sc"), ("store", "epoch", lambda r, _: r["e"], "sc")]
    reader += asks if valid_first else asks[::-1]
    reader += [("load", "place", "p", "rlx"), ("store", "epoch", 0, "rel")]
    binder = [("store", "valid", 0, "sc"), ("change", "now", "retired", lambda r, old: old + 1, "sc"),
              ("wait", "epoch", "_", "sc", lambda r, epoch: not waits or not epoch or epoch > r["retired"]),
              ("store", "place", 2, "rlx"), ("store", "key", 2, "rlx"), ("store", "valid", 1, publishes)]
    return Model({"now": 1, "epoch": 0, "valid": 1, "key": 1, "place": 1}, [reader, binder],
                 lambda regs, last: "a key leads to what another was bound to"
                 if regs[0].get("v") and regs[0]["k"] != regs[0]["p"] else None)


def watch(push="sc", look="sc"):
    """A poster defers a doorbell; a poller took one whose poster is posting, and puts it back; the loop's thread found nothing
    often enough and stops looking. watch: 0 unwatched, 1 a poster has woken the thread, 2 the thread looks."""
    def defer():
        return [("change", "waiting", "_", lambda r, old: old + 1, push), ("load", "watch", "w", "sc"),
                ("if", lambda r: not r["w"], 1), ("change", "watch", "_", lambda r, old: None if old else 1, "sc")]

    stops = [("store", "watch", 0, "sc"), ("load", "waiting", "w", look), ("if", lambda r: r["w"], 1),
             ("store", "watch", 2, "sc")]
    return Model({"waiting": 0, "watch": 2}, [defer(), defer(), stops],
                 lambda regs, last: "a deferred doorbell that is not looked at" if last["waiting"] and not last["watch"] else None)


def ring(waits=(), returns=True):
    """A doorbell is deferred and in the list; its poster posts once more, while a poller and the loop's thread, to which the
    time has come, ring. The thread comes to its end even if it has displaced both, and then the doorbell was rung, is in the
    list, or is in the hands of the poller, who waits for nothing. waits: the locks for which a ringer waits."""
    def take(word, register):
        return ("lock", word, register) if word in waits else ("change", word, register, lambda r, old: None if old else 1, "acq")

    ringer = [take("lock", "l"), ("if", lambda r: not r["l"], 10),
              ("change", "list", "t", 0, "rlx"), ("if", lambda r: r["t"], 6),
              take("spin", "s"), ("if", lambda r: not r["s"], 2), ("store", "deferred", 0, "rlx"), ("store", "spin", 0, "rel"),
              ("if", lambda r: returns and r["s"], 1), ("store", "list", 1, "rlx"),
              ("store", "lock", 0, "rel"), ("fence",)]
    poster = [("lock", "spin", "_"), ("load", "deferred", "d", "rlx"), ("if", lambda r: not r["d"], 2),
              ("store", "list", 1, "rlx"), ("store", "deferred", 1, "rlx"), ("store", "spin", 0, "rel")]
    return Model({"list": 1, "deferred": 1, "spin": 0, "lock": 0}, [poster, ringer, ringer],
                 lambda regs, last: "a deferred doorbell is in no list"
                 if last["deferred"] and not last["list"] and not last["lock"] else None, alone=2)


LATEST, EARLY, LOOKS = 10, 1, 2  # in ticks; the code has microseconds


def serve(watch, idle, since, bell, posting, rests):
    """batch_serve() and look_at_nothing(): the new (watch, idle, bell, ticks to sleep)."""
    if not watch:
        return 0, 0, bell, None
    if bell is None:
        return (2, idle + 1, None, LATEST) if idle + 1 < LOOKS else (0, 0, None, None)
    if since + EARLY < LATEST:
        return 2, 0, bell, LATEST - since if rests else LATEST
    return 2, 0, bell if posting else None, LATEST


def latest(rests=True, wakes=True, alone=True, rings=True):
    """Every schedule of one poster and the thread in ticks. The oldest doorbell that is deferred (bell, its age) waits for at
    most LATEST ticks, or its poster has posted since (post, the age of that). A poster that goes on looks at the clock, here
    with every second post (turn): it rings when that is due, and else says that it was there (since). So the bell waits for
    three times LATEST at most, the third if the thread comes while it is posting. alone: it says so only if no other queue pair
    waits (another), whose bell would be the oldest. Returns what it found, and the states."""
    start = (0, 0, 0, None, 0, 0, None)
    seen, todo = {start}, [start]
    while todo:
        watch, idle, since, bell, post, turn, sleep = todo.pop()
        for act in ("nothing", "post", "ring", "another"):
            w, i, n, b, p, t, left = watch, idle, since, bell, post, turn, sleep
            looks = act == "post" and b is not None and t
            if act == "ring" or (looks and rings and b >= LATEST):
                b = None
            elif act == "post":
                n, b, p, t = (0, 0, 0, 0) if b is None else (0 if looks else n, b, 0, 1 - t)
                if not w:
                    w, left = 1, 0 if wakes else None
            elif act == "another" and not alone:
                n = 0
            if left == 0:
                w, i, b, left = serve(w, i, n, b, act == "post", rests)
            if b is not None and (min(b, p) > LATEST or b > 3 * LATEST):
                return f"a doorbell waits for more than {LATEST} ticks", len(seen)
            grown = lambda age: age if age is None else min(age + 1, 3 * LATEST + 2)
            after = (w, i, grown(n), grown(b), grown(p), t, None if left is None else left - 1)
            if after not in seen:
                seen.add(after)
                todo.append(after)
    return None, len(seen)


def turns(aside=True, gives_up=True, ends=True, clears=True):
    """Every schedule of two threads that take the loop lock again and again (0, 1 waits for it, 2 has it), and of a poller that
    comes again in time, or has gone. Once a poll was refused at its turn, the poller has the lock before either of them has it
    again; a thread that waits has it after two polls at most. Returns what it found, and the states."""
    start = ((0, 0), "out", 0, 0, 0, 0)
    seen, todo = {start}, [start]
    while todo:
        callers, poller, turn, refused, since, past = todo.pop()
        free, after = 2 not in callers and poller != "has", []
        for i, at in enumerate(callers):
            waits = aside and refused and not (gives_up and poller == "gone")
            if (at == 0 and waits) or (at == 1 and not free):
                continue
            moved = tuple((at + 1) % 3 if k == i else c for k, c in enumerate(callers))
            after.append((moved, poller, at == 1 or turn, refused if at or not aside else 0, min(since + (at == 1 and refused), 2),
                          0 if at == 1 else past))
        if not after and poller == "gone":
            return "threads wait for a poller that does not come again", len(seen)
        if poller == "out":
            after.append((callers, "gone", turn, refused, 0, 0))
            if turn or 1 not in callers:
                after.append((callers, "at its turn" if turn else "tries", turn, refused, since, past))
        elif poller == "has":
            after.append((callers, "out", turn, refused, since, past))
        elif poller != "gone" and free:
            after.append((callers, "has", 0 if poller != "tries" and clears else turn, 0 if ends else refused, 0,
                          min(past + 1, 3) if 1 in callers else 0))
        elif poller != "gone":
            after.append((callers, "out", turn, 1 if poller != "tries" else refused, since, past))
        for state in after:
            _, poller, _, refused, since, past = state
            if (since > 1 and poller != "gone") or past > 2 or (poller == "has" and refused):
                return "a turn is not had, or does not end", len(seen)
            if state not in seen:
                seen.add(state)
                todo.append(state)
    return None, len(seen)


class Ticks:
    """latest() and turns() beside the models."""
    def __init__(self, run=latest, **how):
        self.names, self.run = (run.__name__,), lambda: run(**how)


def doorbell(order="sc", compares=True):
    """A poster queues work and rings: 1 held, 2 rung; if the lock is free it takes it and works. The holder works until it can
    release the lock."""
    poster = [("store", "work", 1, "rlx"), ("change", "word", "was", lambda r, old: None if old else 1, order),
              ("if", lambda r: r["was"], 1), ("change", "word", "was", lambda r, old: old | 3, order),
              ("if", lambda r: not r["was"] & 1, 1), ("load", "work", "done", "rlx")]
    holder = [("load", "work", "done", "rlx"),
              ("change", "word", "was", lambda r, old: (0 if old == 1 else None) if compares else 0, order),
              ("if", lambda r: compares and r["was"] != 1, 2), ("change", "word", "_", lambda r, old: old & ~2, order),
              ("load", "work", "done", "rlx")]
    return Model({"work": 0, "word": 1}, [poster, holder],
                 lambda regs, last: "work that is left undone" if not any(r.get("done") for r in regs) else None)


def park(order="sc", noted=lambda r, _: r["n"]):
    """The thread parks unless a CQ was armed since others were last polled; who arms one wakes a parked thread. A poller of
    others notes the armings that it has seen."""
    thread = [("store", "parked", 1, order), ("load", "armings", "a", order), ("load", "polled", "s", "rlx"),
              ("if", lambda r: r["a"] == r["s"], 1), ("store", "asleep", 1, "sc")]
    armer = [("change", "armings", "_", lambda r, old: old + 1, order), ("load", "parked", "p", order),
             ("if", lambda r: r["p"], 1), ("store", "woken", 1, "sc")]
    poller = [("load", "armings", "n", "rlx"), ("store", "polled", noted, "rlx")]
    return Model({"parked": 0, "armings": 0, "polled": 0, "asleep": 0, "woken": 0}, [thread, armer, poller],
                 lambda regs, last: "asleep beside an armed CQ" if last["asleep"] and not last["woken"] and
                 not regs[2].get("n") else None)


def publish(store="rel", load="acq"):
    """A word is filled in, then its index or key is stored: who loads that finds the word. Rings, and the table of keys."""
    return Model({"word": 0, "head": 0},
                 [[("store", "word", 1, "rlx"), ("store", "head", 1, store)],
                  [("load", "head", "h", load), ("load", "word", "w", "rlx")]],
                 lambda regs, last: "a place that is not filled" if regs[1]["h"] and not regs[1]["w"] else None)


def places(room_first=True, gives="rel", look="acq", posts="rel"):
    """A poller takes a completion: the ring has room, then its request's place is free. A poster takes that place, and a loop
    pushes the completion of the new request to the ring."""
    room, place = ("store", "tail", 1, "rel"), ("change", "taken", "_", lambda r, old: old - 1, gives)
    poster = [("load", "taken", "t", look), ("if", lambda r: not r["t"], 1), ("store", "head", 1, posts)]
    loop = [("load", "head", "h", "acq"), ("load", "tail", "room", "acq")]
    return Model({"tail": 0, "taken": 1, "head": 0}, [[room, place] if room_first else [place, room], poster, loop],
                 lambda regs, last: "a completion without room" if regs[2].get("h") and not regs[2].get("room", 1) else None)


def front(asks=True, before_head=True, behind_head=True):
    """A reader is done with the only entry of a ring, gives its place back, and looks for the next one. A writer that finds no
    place taken goes to the first place again: `first` is what is counted there. In a send queue the reader is who holds the
    doorbell, and gives `taken` back; in a CQ it is the poller, and stores `tail`."""
    def read(register, i):
        place = [("load", "place1", register, "rlx"), ("if", lambda r: False, 1), ("load", "place0", register, "rlx")]
        return [("if", lambda r: (i - r["first"]) % 2, 2), *place]
    load = [("load", "first", "first", "rlx")]
    head = [("load", "head", "h", "acq")]
    reader = load + read("one", 0) + [("change", "taken", "_", lambda r, old: old - 1, "rel")]
    reader += (head + load if behind_head else load + head) + [("if", lambda r: r["h"] == 2, 4), *read("two", 1)]
    starts = [("if", lambda r: not asks or not r["t"], 1), ("store", "first", 1, "rlx")]
    fill = [("if", lambda r: not asks or not r["t"], 2), ("store", "place0", 2, "rlx"), ("if", lambda r: False, 1),
            ("store", "place1", 2, "rlx")]
    shown = [("store", "head", 2, "rel")]
    writer = [("load", "taken", "t", "acq")] + (starts + fill + shown if before_head else fill + shown + starts)
    return Model({"first": 0, "place0": 1, "place1": 0, "head": 1, "taken": 1}, [reader, writer],
                 lambda regs, last: "not what was put there" if regs[0]["one"] != 1 or regs[0].get("two", 2) != 2 else None)


def waiters(locked=True, looks_again=True):
    """A loop finds no receive and notes that it waits, under the lock of the queue; who posts one then looks who waits."""
    def under(*steps):
        return [("lock", "spin", "_"), *steps, ("store", "spin", 0, "rel")] if locked else list(steps)
    loop = under(("load", "posted", "p", "rlx"), ("if", lambda r: not r["p"], 1),
                 ("change", "waiters", "_", lambda r, old: old | 1, "rlx"))
    poster = under(("store", "posted", 1, "rlx"))
    poster = poster + [("load", "waiters", "w", "rlx")] if looks_again else [("load", "waiters", "w", "rlx")] + poster
    return Model({"spin": 0, "posted": 0, "waiters": 0}, [loop, poster],
                 lambda regs, last: "a loop waits beside a receive" if not regs[0]["p"] and not regs[1]["w"] else None)


def replaced(invalidates=False, lends=True, waits=True, asks=True):
    """A region takes the place of another under its key (memory_replace()), while a peer writes by it; or invalidates it, and
    writes by it once the invalidation is complete, which waits until what has the key is not lent."""
    def not_lent(of, new):
        return [("if", lambda r: r["new"] == new, 1), ("wait", f"{of} lent", "_", "sc", lambda r, value: not value)]
    if invalidates:
        use = [("change", "old valid", "_", 0, "sc"), ("if", lambda r: r["new"], 1), ("change", "new valid", "_", 0, "sc"),
               ("store", "reader", 0, "rel"), ("load", "slot", "new", "sc"), *not_lent("old", 0), *not_lent("new", 1),
               ("load", "slot", "new", "sc"), ("if", lambda r: r["new"], 1), ("load", "new valid", "placed", "sc")]
    else:
        use = [("load", "old valid", "valid", "sc"), ("store", "reader", 0, "rel")]
    peer = [("store", "reader", 1, "sc"), ("load", "slot", "new", "sc"), ("if", lambda r: not r["new"], 1), *use]
    owner = ([("store", "old lent", 1, "sc")] if lends else []) + [
        ("load", "old valid", "is", "sc"), ("store", "new valid", lambda r, _: r["is"], "sc"), ("store", "new lent", 1, "sc"),
        ("store", "slot", 1, "sc")]
    if waits:
        owner += [("wait", "reader", "_", "sc", lambda r, value: not value)]
    if asks:
        owner += [("change", "old valid", "was", 0, "sc"), ("if", lambda r: not r["was"], 1), ("store", "new valid", 0, "sc")]
    owner += [("store", "old lent", 0, "sc"), ("store", "new lent", 0, "sc")]

    def bad(regs, last):
        if invalidates and (last["new valid"] or regs[0].get("placed")):
            return "a key is valid that was invalidated"
        return "a peer that may write was refused" if not regs[0].get("valid", 1) else None
    return Model({"reader": 0, "slot": 0, "old valid": 1, "new valid": 0, "old lent": 0, "new lent": 0}, [peer, owner], bad)


def resting(parked=False, says_first=True, rouses=True, locked=True):
    """A poller, which drives the loop, takes a link out of the epoll set; who wants to sleep there counts as a sleeper, then puts
    the link back under the loop's lock. parked: the same while the only thread that could sleep there is in the park; it says
    that it has left, then puts the link back."""
    word, rests = ("parked", lambda r: r["s"]) if parked else ("sleepers", lambda r: not r["s"])
    poller = [("lock", "lock", "_"), ("load", word, "s", "rlx"), ("if", rests, 1),
              ("store", "out", 1, "rlx"), ("store", "lock", 0, "rel")]
    says = [("store", word, 0, "sc") if parked else ("change", word, "_", lambda r, old: old + 1, "sc")]
    puts_back = [("store", "out", 0, "rlx")] if rouses else []
    if locked:
        puts_back = [("lock", "lock", "_")] + puts_back + [("store", "lock", 0, "rel")]
    return Model({"lock": 0, word: int(parked), "out": 0}, [poller, poller, says + puts_back if says_first else puts_back + says],
                 lambda regs, last: "a link is out of the epoll set while a thread sleeps" if last["out"] else None)


HOLDS = (epochs(), epochs(renewed=True), window(), watch(), ring(), Ticks(), Ticks(turns), doorbell(), park(), publish(), places(), front(),
         waiters(), replaced(), replaced(invalidates=True), resting(), resting(parked=True))
FAILS = {
    "epoch_enter() without its order": epochs(enter="rel"),
    "a look-up that may be older than the entry": epochs(look="acq"),
    "a holder that entered again is passed over": epochs(renewed=True, held=False),
    "borrows is loaded before the bell": epochs(renewed=True, held_first=False),
    "a window's key is compared before its validity": window(valid_first=False),
    "a bind that does not wait for readers": window(waits=False),
    "a window that is valid before its fields": window(publishes="rlx"),
    "deferring with less than a total order": watch(push="acq_rel"),
    "a last look with less than a total order": watch(look="acq"),
    "a ringer waits for the poster that it displaced": ring(waits=("spin",)),
    "a ringer waits for another one that it displaced": ring(waits=("lock",)),
    "a doorbell whose poster is posting is forgotten": ring(returns=False),
    "the first doorbell does not wake the thread": Ticks(wakes=False),
    "the thread sleeps as long whatever the age": Ticks(rests=False),
    "a poster that goes on speaks for others": Ticks(alone=False),
    "a poster that goes on does not ring itself": Ticks(rings=False),
    "a thread that does not step aside": Ticks(turns, aside=False),
    "a thread that steps aside without end": Ticks(turns, gives_up=False),
    "a refused turn that is had and not ended": Ticks(turns, ends=False),
    "a turn that is had and not over": Ticks(turns, clears=False),
    "a doorbell without orders": doorbell(order="rlx"),
    "a doorbell released without a compare": doorbell(compares=False),
    "parking without orders": park(order="rel"),
    "a poller that notes what it has not seen": park(noted=1),
    "an index stored without release": publish(store="rlx"),
    "an index loaded without acquire": publish(load="rlx"),
    "a place that is free before the ring has room": places(room_first=False),
    "a place given back without release": places(gives="rlx"),
    "a place taken without acquire": places(look="rlx"),
    "a request posted without release": places(posts="rlx"),
    "an entry over one that is being read": front(asks=False),
    "an entry at the front, read as it was before": front(behind_head=False),
    "an entry at the front that is shown before that is said": front(before_head=False),
    "a waiter noted without the lock": waiters(locked=False),
    "a poster that looks for waiters first": waiters(looks_again=False),
    "a region that does not wait for who writes to the one before": replaced(waits=False),
    "a region that does not wait for who invalidates the one before": replaced(invalidates=True, waits=False),
    "a region that does not ask whether the one before is valid": replaced(invalidates=True, asks=False),
    "a region that does not keep invalidations of the one before": replaced(invalidates=True, lends=False),
    "a sleeper that counts after it put the link back": resting(says_first=False),
    "a sleeper that does not put the link back": resting(rouses=False),
    "a link that is put back without the lock": resting(locked=False),
    "a thread that leaves the park after it put the link back": resting(parked=True, says_first=False),
    "a thread that leaves the park and does not put the link back": resting(parked=True, rouses=False),
    "a thread that puts the link back without the lock": resting(parked=True, locked=False),
}
CODE = {
    "api/cq.c": ["if (is_turn)\n            atomic_store_explicit(&loop->polled.refused, &cancel_mine, memory_order_relaxed);"],
    "core/epoch.c": ["atomic_store(&reader->epoch, atomic_load(&epochs->now));", "return atomic_fetch_add(&epochs->now, 1) + 1;",
                     "uint64_t entered = atomic_load(&epochs->reader[i].epoch);",
                     "atomic_store_explicit(&reader->epoch, 0, memory_order_release);"],
    "core/mr.c": ["return atomic_load(&slots->slot[i].mr);", "atomic_store(&slot->mr, NULL);",
                  "mr_lend(before);\n    mr->valid = before->valid;\n    mr_lend(mr);\n    atomic_store(&slot->mr, mr);",
                  "atomic_store_explicit(&slot->key, key, memory_order_release);",
                  "(found = atomic_load_explicit(&slots->slot[i].key, memory_order_acquire)) != key) {",
                  "if (!mr || !mr_is_valid(mr) || (mr->kind != MR_REGION && !window_allows(mr, key, rights)))",
                  "if (!atomic_exchange(&window->valid, false))\n        return;\n"
                  "    window->retired = epoch_advance(&table->epochs);"],
    "core/mw.c": ["window->key = bind->key;\n    window->valid = region;",
                  "if (!epoch_is_over(&table->epochs, window->retired) || window->sending)\n        return FAULT_NOT_NOW;"],
    "api/memory.c": ["wait_for_lookups(context);\n    if (!atomic_exchange(&before->valid, false))\n        (*mr)->valid = false;\n"
                     "    mr_give_back(before);\n    memory_free(context, before);\n    mr_give_back(*mr);"],
    "endpoint/reclaim.c": ["return doorbell_is_held(&endpoint->bell) || endpoint->borrows;"],
    "endpoint/endpoint.c": ["loop_has_sleepers(loop) || (!loop->resting && !descriptors_are_ours()) ||\n"
                            "        !endpoint->kind->stay_out(endpoint, true))\n        return;\n"
                            "    loop->resting = endpoint;"],
    "drive/drive.c": ["batch_sleep(&context->loop[i]);\n        loop_lock_and_rouse(&context->loop[i]);",
                      "batch_sleep(known->loop);\n        loop_lock_and_rouse(known->loop);"],
    "drive/doorbell_batch.c": ["while (!atomic_compare_exchange_weak(&batch->waiting, &first, qp));",
                               "return atomic_load(&batch->sleepers) && atomic_load(&batch->watch) == none &&",
                               "atomic_store(&batch->watch, BATCH_UNWATCHED);\n    return batch_is_empty(batch);",
                               "if (!spin_try(&qp->spin))", "if (!spin_try(&batch->lock))",
                               "if (now_us - qp->deferred_us >= LATEST_US)\n        return false;\n    if (is_alone(batch, qp))\n"
                               "        atomic_store_explicit(&batch->since_us, now_us, memory_order_relaxed);",
                               "if (age_us + EARLY_US < LATEST_US)\n        return LATEST_US - age_us;\n    batch_ring(loop);\n"
                               "    return LATEST_US;"],
    "drive/doorbell_batch.h": ["return !atomic_load(&batch->waiting) &&"],
    "loop/doorbell.h": ["return atomic_compare_exchange_strong(&doorbell->word, &word, DOORBELL_HELD) ||\n           "
                        "!(atomic_fetch_or(&doorbell->word, DOORBELL_HELD | DOORBELL_RUNG) & DOORBELL_HELD)",
                        "return atomic_compare_exchange_strong(&doorbell->word, &word, 0) || doorbell_answer(doorbell);"],
    "loop/doorbell.c": ["atomic_fetch_and(&doorbell->word, ~(uint32_t)DOORBELL_RUNG);"],
    "drive/thread.c": ["loop_lock(loop);\n    loop_rouse(loop);\n    loop_unlock(loop);",
                       "atomic_store(&loop->parked, false);\n    reactor_attend(&loop->reactor, false);\n    loop_lock_and_rouse(loop);",
                       "atomic_store(&loop->parked, true);\n    reactor_attend(&loop->reactor, true);",
                       "enter_park(loop, &stats);\n        if (!loop_is_relied_on(loop))",
                       "return atomic_load(&loop->context->armings) != stats->armings;"],
    "endpoint/loop.c": ["return sleepers > threads || (threads && !atomic_load(&loop->parked));",
                        "atomic_load(&context->armings) != atomic_load_explicit(&loop->polled.armings, memory_order_relaxed);"],
    "core/qp.c": ["atomic_store_explicit(&qp->sq.head, head + n, memory_order_release);",
                  "return qp->attr.send_depth - atomic_load_explicit(&qp->sq.taken, memory_order_acquire);",
                  "if (space == qp->attr.send_depth)\n        atomic_store_explicit(&qp->sq.first, head, memory_order_relaxed);"],
    "core/complete.c": ["atomic_load_explicit(&qp->sq.head, memory_order_acquire)"],
    "core/cq.c": ["atomic_fetch_sub_explicit(taken, places, memory_order_release);",
                  "atomic_store_explicit(&cq->tail, tail + run, memory_order_release);\n    cq_give_back(taken, run);",
                  "uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_acquire);",
                  "if (w->head == tail)\n        cq->first = tail;",
                  "there = atomic_load_explicit(&cq->head, memory_order_acquire) - tail;"],
    "core/rq.c": ["is_empty = rq->head == rq->tail;\n    if (is_empty)\n"
                  "        atomic_fetch_or_explicit(&rq->waiters, waiter, memory_order_relaxed);\n    spin_unlock(&rq->spin);"],
    "core/qp.h": ["return qp->sq.next == atomic_load_explicit(&qp->sq.head, memory_order_acquire) ? NULL : "
                  "sq_at(qp, qp->sq.next);"],
    "core/rq.h": ["return atomic_load_explicit(&rq->waiters, memory_order_relaxed) ? atomic_exchange(&rq->waiters, 0) : 0;"],
    "base/spin.h": ["while (atomic_exchange_explicit(&spin->taken, true, memory_order_acquire))",
                    "atomic_store_explicit(&spin->taken, false, memory_order_release);"],
}


def main():
    errors = [f"{file} does not say any more: {line}" for file, lines in CODE.items() for line in lines
              if line not in (ROOT / file).read_text(encoding="utf-8")]
    for model in HOLDS:
        found, states = model.run()
        print(f"{states} states")
        if found:
            errors.append(f"{list(model.names)}: {found}")
    for name, model in FAILS.items():
        found, states = model.run()
        print(f"{name}: {found}")
        if not found:
            errors.append(f"not found in {states} states: {name}")
    for error in errors:
        print(f"lock_models: {error}", file=sys.stderr)
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main())
