#!/usr/bin/env python3
"""Answers over FastCGI, uwsgi and SCGI, as little of each as a server's cache needs: gateways.py FOLDER listens at
FOLDER/fastcgi.sock, uwsgi.sock and scgi.sock, writes FOLDER/gateways.ready when it does, and a line "PROTOCOL URI" of each
request to FOLDER/gateways.requests. One request a connection; what comes is trusted."""

import os
import socketserver
import struct
import sys
import threading

folder = sys.argv[1]
body = b"hello\n"
head = b"Content-Type: text/plain\r\nCache-Control: max-age=3600\r\nContent-Length: %d\r\n\r\n" % len(body)


class gateway(socketserver.StreamRequestHandler):
    def handle(self):
        name, variables = self.read_variables()
        with open(folder + "/gateways.requests", "ab", buffering=0) as log:
            log.write(b"%s %s\n" % (name, variables.get(b"REQUEST_URI", b"-")))
        self.answer()

    def answer(self):
        self.wfile.write(b"Status: 200 OK\r\n" + head + body)


class scgi(gateway):
    def read_variables(self):
        length = b""
        while (byte := self.rfile.read(1)) != b":":
            length += byte
        parts = self.rfile.read(int(length)).split(b"\0")
        self.rfile.read(1)
        return b"scgi", dict(zip(parts[0::2], parts[1::2]))


class uwsgi(gateway):
    def read_variables(self):
        _, length, _ = struct.unpack("<BHB", self.rfile.read(4))
        rest, found = self.rfile.read(length), {}
        while rest:
            pair = []
            for _ in range(2):
                size = struct.unpack("<H", rest[:2])[0]
                pair.append(rest[2 : 2 + size])
                rest = rest[2 + size :]
            found[pair[0]] = pair[1]
        return b"uwsgi", found

    def answer(self):
        self.wfile.write(b"HTTP/1.1 200 OK\r\n" + head + body)


class fastcgi(gateway):
    def record(self):
        _, kind, self.request, length, padding, _ = struct.unpack(">BBHHBB", self.rfile.read(8))
        content = self.rfile.read(length)
        self.rfile.read(padding)
        return kind, content

    def read_variables(self):
        rest, found = b"", {}
        while True:
            kind, content = self.record()
            if kind == 5 and not content:  # no more of the request's body
                break
            rest += content if kind == 4 else b""
        while rest:
            sizes = []
            for _ in range(2):
                if rest[0] < 128:
                    sizes.append(rest[0])
                    rest = rest[1:]
                else:
                    sizes.append(struct.unpack(">I", rest[:4])[0] & 0x7FFFFFFF)
                    rest = rest[4:]
            found[rest[: sizes[0]]] = rest[sizes[0] : sum(sizes)]
            rest = rest[sum(sizes) :]
        return b"fastcgi", found

    def answer(self):
        out = head + body
        self.wfile.write(struct.pack(">BBHHBB", 1, 6, self.request, len(out), 0, 0) + out)
        self.wfile.write(struct.pack(">BBHHBB", 1, 6, self.request, 0, 0, 0))
        self.wfile.write(struct.pack(">BBHHBB", 1, 3, self.request, 8, 0, 0) + bytes(8))


for protocol in (scgi, uwsgi, fastcgi):
    server = socketserver.ThreadingUnixStreamServer(f"{folder}/{protocol.__name__}.sock", protocol)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever).start()
with open(folder + "/gateways.ready", "w") as ready:
    ready.write(str(os.getpid()))
