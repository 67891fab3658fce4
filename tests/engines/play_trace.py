#!/usr/bin/env python3
"""A trace, one request after the other, to a cache; and what several caches made of the same one, request by request.

    play_trace.py play ADDRESS ORIGIN forward|gateway ANSWERS <TRACE      a line a request: hit, stored, refused, or what it said
    play_trace.py compare OBJECTS HITS LIMIT DIFFERENCES TRACE NAME=ANSWERS...    a table; each difference is a line of DIFFERENCES

A line of a trace is "time,name,size"; the URL is http://ORIGIN/bytes/SIZE?NAME. What compare holds all against is the rule with
a perfect memory: refused, stored at request HITS, and hits from then on. It ends with 1 where a request departs from that for no reason it knows."""

import collections
import re
import socket
import sys

length_of = re.compile(rb"\r\ncontent-length: *(\d+)", re.I)
how = re.compile(rb"\r\n(x-cache|cache-status|via): *([^\r]*)", re.I)


def meaning(head):
    said = {name.lower(): value for name, value in how.findall(head)}
    if b"x-cache" in said:  # nginx: status and ruling. Varnish: what its VCL says
        word = said[b"x-cache"].strip()
        return {b"HIT": "hit", b"hit": "hit", b"MISS admitted": "stored", b"miss": "stored", b"MISS refused": "refused", b"pass": "refused"}.get(word, word.decode())
    if b"cache-status" in said:  # Reprise
        words = [word.strip() for word in said[b"cache-status"].split(b";")]
        return "hit" if b"hit" in words else "stored" if b"stored" in words else "refused" if {b"detail=first-request", b"detail=too-few-requests"} & set(words) else b";".join(words).decode()
    # Traffic Server's Via has letters: c and what the look-up found (H: fresh, R: fresh and in memory, W: still being written), sSfW where it was written.
    found = re.search(rb"\[([^\]]*)\]\)", said.get(b"via", b""))
    letters = found.group(1) if found else b"none"
    return "hit" if letters[:2] in (b"cH", b"cR", b"cW") else "stored" if b"W" in letters else "refused" if letters[:1] == b"c" else letters.decode()



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


classes = [
    ("early", "a stranger taken for known: stored at its first request, or before the rule would"),
    ("early_hit", "and so a hit where the rule stores, or refuses still"),
    ("forgot", "refused again: OBJECTS or more other URLs came between"),
    ("late", "and so stored where the rule has a hit"),
    ("large", "refused again: larger than LIMIT"),
    ("again", "stored once more, or refused, though it was stored"),
    ("unknown", "for no known reason"),
]


def why(came, kept, size, answer, is_stored, was, hits, limit):
    """Why the answer departs from refused, stored, hit; None where it does not. Kept are the sights that no filter may have forgotten."""
    if is_stored:
        return "again" if answer != "hit" else "early_hit" if came <= hits else None
    if answer == "stored":
        return "early" if came < hits else None if came == hits else "late" if was == "forgot" else "unknown"
    if answer == "refused":
        return None if came < hits else "large" if size > limit else "forgot" if kept < hits - 1 else "unknown"
    return "unknown"


def compare(objects, hits, limit, differences, trace, *named):
    objects, hits, limit = int(objects), int(hits), int(limit)
    requests = [line.rstrip().split(",") for line in open(trace)]
    names = [request[1] for request in requests]
    engines = [pair.split("=")[0] for pair in named]
    answers = [open(pair.split("=", 1)[1]).read().splitlines() for pair in named]
    if {len(one) for one in answers} != {len(names)}:
        sys.exit("not as many answers as requests")
    came, kept = collections.Counter(), {}
    stored, was = [set() for _ in engines], [{} for _ in engines]
    reasons = [collections.Counter() for _ in engines]
    pairs, kinds, differ, same = collections.Counter(), collections.Counter(), 0, 0
    with open(differences, "w") as out:
        for at, (name, apart) in enumerate(zip(names, distances(names))):
            came[name] += 1
            kept[name] = 0 if apart is None or apart >= objects else kept[name] + 1
            said = [one[at] for one in answers]
            causes = []
            for engine, answer in enumerate(said):
                cause = why(came[name], kept[name], int(requests[at][2]), answer, name in stored[engine], was[engine].get(name), hits, limit)
                causes.append(cause)
                if cause is not None:
                    reasons[engine][cause] += 1
                    was[engine][name] = cause
                if answer == "stored":
                    stored[engine].add(name)
            for one in range(len(engines)):
                for other in range(one):
                    pairs[other, one] += said[one] != said[other]
            if len(set(said)) > 1:
                differ += 1
                kinds[" + ".join(sorted({cause for cause in causes if cause})) or "unknown"] += 1
                print(at + 1, name, "came", came[name], "apart", apart, *(f"{e}={s}({c or 'rule'})" for e, s, c in zip(engines, said, causes)), file=out)
            else:
                same += 1
    words = dict(classes)
    print(f"{len(names)} requests for {len(came)} URLs, {sum(int(r[2]) for r in requests)} bytes; the same answer of all {len(engines)}: {same}, not: {differ}\n")
    print("| | " + " | ".join(engines) + " |\n|---|" + "---:|" * len(engines))
    for what in ("refused", "stored", "hit"):
        print(f"| {what} | " + " | ".join(str(one.count(what)) for one in answers) + " |")
    for cause, text in classes:
        if any(one[cause] for one in reasons):
            print(f"| {text.replace('OBJECTS', str(objects)).replace('LIMIT', str(limit))} | " + " | ".join(str(one[cause]) for one in reasons) + " |")
    for one, engine in enumerate(engines):
        print(f"| other answers than {engine} | " + " | ".join(str(pairs[min(one, other), max(one, other)]) if one != other else "" for other in range(len(engines))) + " |")
    if differ:
        print("\nThe requests that were not answered alike, by why:\n")
        for kind, count in kinds.most_common():
            print(f"- {count}: " + "; beside ".join(words[part] for part in kind.split(" + ")).replace("OBJECTS", str(objects)).replace("LIMIT", str(limit)))
    sys.exit(any(one["unknown"] or one["again"] for one in reasons))


{"play": play, "compare": compare}[sys.argv[1]](*sys.argv[2:])
