#!/usr/bin/env python3
"""A trace, one request after the other, to a cache; and what several caches made of the same one, request by request.

    play_trace.py play ADDRESS ORIGIN forward|gateway ANSWERS <TRACE     a line a request: hit, stored, refused, large, or what it said
    play_trace.py compare OBJECTS HITS DIFFERENCES TRACE NAME=ANSWERS... a table; each difference is a line of DIFFERENCES

A line of a trace is "time,name,size"; the URL is http://ORIGIN/bytes/SIZE?NAME. What compare holds all against is the rule with
a perfect memory: refused, stored at request HITS, and hits from then on. It ends with 1 where an
answer departs from that for no reason it knows. ANSWERS.unwritten has a number: how many the server's ledger calls admitted that it
did not write."""

import collections
import os
import re
import socket
import sys

length_of = re.compile(rb"\r\ncontent-length: *(\d+)", re.I)
how = re.compile(rb"\r\n(x-cache|cache-status|via): *([^\r]*)", re.I)


# What nginx (status and ruling), Varnish (as its VCL says) and Reprise (in Cache-Status) call it.
in_words = {
    "refused": {b"MISS refused", b"pass", b"detail=first-request", b"detail=too-few-requests"},
    "stored": {b"MISS admitted", b"miss", b"stored"},
    "hit": {b"HIT", b"hit"},
    "large": {b"detail=too-large"},
}


def meaning(head):
    said = {name.lower(): value.strip() for name, value in how.findall(head)}
    told = said.get(b"x-cache") or said.get(b"cache-status")
    if told:
        words = {word.strip() for word in told.split(b";")}
        return next((meant for meant, some in in_words.items() if some & words), told.decode())
    # Traffic Server's Via has letters: c and what the look-up found (H: fresh, R: fresh and in memory, W: still being
    # written), another W where the answer was written.
    found = re.search(rb"\[([^\]]*)\]\)", said.get(b"via", b""))
    letters = found.group(1) if found else b"nothing"
    if letters[:2] in (b"cH", b"cR", b"cW"):
        return "hit"
    return "stored" if b"W" in letters else "refused" if letters[:1] == b"c" else letters.decode()


def play(address, origin, way, answers):
    host, port = address.split(":")
    before = f"http://{origin}" if way == "forward" else ""
    room = memoryview(bytearray(1 << 20))
    to = None
    with open(answers, "w") as out:
        for line in sys.stdin:
            _, name, size = line.rstrip().split(",")
            if to is None:
                to = socket.create_connection((host, int(port)))
                to.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            to.sendall(f"GET {before}/bytes/{size}?{name} HTTP/1.1\r\nHost: {origin}\r\n\r\n".encode())
            head = b""
            while (end := head.find(b"\r\n\r\n")) < 0:
                got = to.recv(65536)
                if not got:
                    sys.exit(f"no answer to {line}")
                head += got
            left, head = len(head) - end - 4, head[: end + 2]
            length = length_of.search(head)
            if length is None or int(length.group(1)) != int(size) or not head.startswith(b"HTTP/1.1 200"):
                sys.exit(f"not an answer to {line}: {head.decode(errors='replace')}")
            left = int(size) - left
            while left > 0:
                got = to.recv_into(room[: min(left, len(room))])
                if got == 0:
                    sys.exit(f"an answer broke off: {line}")
                left -= got
            print(meaning(head), file=out)
            if b"\r\nconnection: close" in head.lower():
                to.close()
                to = None


def distances(names):
    """For each request, how many other names came since its own last did; none for a first one."""
    tree, last = [0] * (len(names) + 1), {}

    def add(at, what):
        at += 1
        while at < len(tree):
            tree[at] += what
            at += at & -at

    def below(at):
        total = 0
        while at > 0:
            total += tree[at]
            at -= at & -at
        return total

    for at, name in enumerate(names):
        if name in last:
            yield len(last) - below(last[name] + 1)
            add(last[name], -1)
        else:
            yield None
        last[name] = at
        add(at, 1)


classes = {
    "early": "a stranger taken for known: stored at its first request, or before the rule would",
    "early_hit": "and so a hit where the rule stores, or refuses still",
    "forgot": "refused again: OBJECTS or more other URLs came between",
    "large": "refused, whatever the filter says: larger than the store takes",
    "unwritten": "refused, though the filter knew it: admitted, and not written by the server",
    "late": "and so stored where the rule has a hit",
    "again": "stored once more, or refused, though it was stored",
    "unknown": "for no known reason",
}


def why(came, kept, answer, is_stored, was, hits):
    """Why the answer departs from the rule; None where it does not. Kept are the sights that no filter may have forgotten."""
    if is_stored:
        return "again" if answer != "hit" else "early_hit" if came <= hits else None
    if answer == "stored":
        return "early" if came < hits else None if came == hits else "late" if was in ("forgot", "unwritten") else "unknown"
    if answer == "large":
        return None if came < hits else "large"
    if answer == "refused":
        return None if came < hits else "forgot" if kept < hits - 1 else "unwritten"
    return "unknown"


def row(first, cells):
    print(f"| {first} | " + " | ".join(str(cell) for cell in cells) + " |")


def compare(objects, hits, differences, trace, *named):
    objects, hits = int(objects), int(hits)
    words = {cause: text.replace("OBJECTS", str(objects)) for cause, text in classes.items()}
    requests = [line.rstrip().split(",") for line in open(trace)]
    names = [name for _, name, _ in requests]
    engines = [pair.split("=")[0] for pair in named]
    answers = [open(pair.split("=", 1)[1]).read().splitlines() for pair in named]
    if {len(one) for one in answers} != {len(names)}:
        sys.exit("not as many answers as requests")
    came, kept = collections.Counter(), {}
    stored, was = [set() for _ in engines], [{} for _ in engines]
    reasons = [collections.Counter() for _ in engines]
    pairs, kinds = collections.Counter(), collections.Counter()
    with open(differences, "w") as out:
        for at, (name, apart) in enumerate(zip(names, distances(names))):
            came[name] += 1
            kept[name] = 0 if apart is None or apart >= objects else kept[name] + 1
            said, causes = [one[at] for one in answers], []
            for one, answer in enumerate(said):
                cause = why(came[name], kept[name], answer, name in stored[one], was[one].get(name), hits)
                causes.append(cause)
                if cause is not None:
                    reasons[one][cause] += 1
                    was[one][name] = cause
                if answer == "stored":
                    stored[one].add(name)
            said = ["refused" if answer == "large" else answer for answer in said]
            if len(set(said)) == 1:
                continue
            kinds[frozenset(causes) - {None}] += 1
            pairs.update((one, other) for one in range(len(said)) for other in range(len(said)) if said[one] != said[other])
            told = (f"{engine}={answer}({cause or 'rule'})" for engine, answer, cause in zip(engines, said, causes))
            print(f"{at + 1} {name}: request {came[name]} for it, {apart} others since:", *told, file=out)
    differ = sum(kinds.values())
    print(f"{len(names)} requests for {len(came)} URLs, {sum(int(size) for _, _, size in requests)} bytes;", end=" ")
    print(f"the same answer of all {len(engines)}: {len(names) - differ}, not: {differ}\n")
    row("", engines)
    print("|---|" + "---:|" * len(engines))
    for what in ("refused", "stored", "hit"):
        row(what, (one.count(what) + (one.count("large") if what == "refused" else 0) for one in answers))
    for cause, text in words.items():
        if any(one[cause] for one in reasons):
            row(text, (one[cause] for one in reasons))
    for one, engine in enumerate(engines):
        row(f"other answers than {engine}", (pairs[one, other] if one != other else "" for other in range(len(engines))))
    if differ:
        print("\nThe requests that were not answered alike, by why:\n")
        for kind, count in kinds.most_common():
            print(f"- {count}: " + "; beside ".join(words[cause] for cause in sorted(kind)))
    unwritten = [int(open(path).read()) if os.path.exists(path) else 0 for path in (pair.split("=", 1)[1] + ".unwritten" for pair in named)]
    sys.exit(any(one["unknown"] or one["again"] or one["unwritten"] != known for one, known in zip(reasons, unwritten)))


{"play": play, "compare": compare}[sys.argv[1]](*sys.argv[2:])
