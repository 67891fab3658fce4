"""What no client at hand speaks, as far as protocols.sh wants it.

  speak.py echo CERTIFICATE KEY FILE
      a WebSocket server that sends back what it is sent, until it is ended; the port that the system gave
      it is written to FILE
  speak.py websocket PROXY AUTHORITY TRUSTED TEXT
      sends it TEXT, and that from its end, through a tunnel of the proxy's
  speak.py h2 PROXY AUTHORITY TRUSTED PATH
      a GET of a client that speaks HTTP/2 alone, as gRPC's do

The last two print who issued the certificate that they were shown, the protocol that was agreed on, and
what came back.
"""

import base64
import hashlib
import os
import socket
import ssl
import struct
import sys

PATIENCE = 20  # seconds, for each step


def exactly(stream, count):
    got = b''
    while len(got) < count:
        more = stream.recv(count - len(got))
        if not more:
            raise EOFError(f'it ended after {len(got)} bytes of {count}')
        got += more
    return got


def head_of(stream):
    head = b''
    while not head.endswith(b'\r\n\r\n'):
        head += exactly(stream, 1)
    return head.decode()


# WebSocket: RFC 6455. Frames here are whole, and shorter than 126 bytes.
TEXT = 0x81


def acceptance(key):
    of_both = key + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
    return base64.b64encode(hashlib.sha1(of_both.encode()).digest()).decode()


def masked(payload, mask):
    return bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))


def echo_on(stream):
    head = head_of(stream)
    fields = dict(line.split(': ', 1) for line in head.split('\r\n') if ': ' in line)
    key = next(value for name, value in fields.items() if name.lower() == 'sec-websocket-key')
    stream.sendall(('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n'
                    f'Sec-WebSocket-Accept: {acceptance(key)}\r\n\r\n').encode())
    while True:
        kind, length = exactly(stream, 2)
        mask = exactly(stream, 4)
        payload = masked(exactly(stream, length & 0x7f), mask)
        stream.sendall(bytes([kind, len(payload)]) + payload)


def echo(certificate, key, port_file):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    listening = socket.create_server(('127.0.0.1', 0))
    with open(port_file, 'w') as file:
        file.write(f'{listening.getsockname()[1]}\n')
    while True:
        connection, _ = listening.accept()
        connection.settimeout(PATIENCE)
        try:
            with context.wrap_socket(connection, server_side=True) as stream:
                echo_on(stream)
        except (OSError, EOFError) as ended:
            print(ended, flush=True)


def tunnel(proxy, authority, trusted, protocol):
    host, port = proxy.split(':')
    connection = socket.create_connection((host, int(port)), PATIENCE)
    connection.sendall(f'CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n'.encode())
    head = head_of(connection)
    if ' 200 ' not in head:
        raise OSError(head)
    context = ssl.create_default_context(cafile=trusted)
    context.set_alpn_protocols([protocol])
    stream = context.wrap_socket(connection, server_hostname=authority.split(':')[0])
    issuer = dict(pair for [pair] in stream.getpeercert()['issuer'])
    print('issuer:', issuer['commonName'])
    print('protocol:', stream.selected_alpn_protocol())
    return stream


def websocket(proxy, authority, trusted, text):
    stream = tunnel(proxy, authority, trusted, 'http/1.1')
    key = base64.b64encode(os.urandom(16)).decode()
    stream.sendall((f'GET /echo HTTP/1.1\r\nHost: {authority}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n'
                    f'Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n').encode())
    head = head_of(stream)
    if not head.startswith('HTTP/1.1 101 ') or acceptance(key) not in head:
        raise OSError(head)
    for part in (text, text[::-1]):
        mask = os.urandom(4)
        stream.sendall(bytes([TEXT, 0x80 | len(part)]) + mask + masked(part.encode(), mask))
        _, length = exactly(stream, 2)
        print('came back:', exactly(stream, length).decode())


# HTTP/2: RFC 9113, and HPACK without its Huffman code (RFC 7541).
DATA, HEADERS, SETTINGS = 0, 1, 4
END_STREAM, ACK, END_HEADERS = 1, 1, 4


def frame(kind, flags, stream_id, payload=b''):
    return struct.pack('>I', len(payload))[1:] + struct.pack('>BBI', kind, flags, stream_id) + payload


def h2(proxy, authority, trusted, path):
    stream = tunnel(proxy, authority, trusted, 'h2')
    get, https = b'\x82', b'\x87'
    named = b''.join(bytes([0x40 | index, len(value)]) + value.encode()
                     for index, value in ((1, authority), (4, path)))
    stream.sendall(b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' + frame(SETTINGS, 0, 0) +
                   frame(HEADERS, END_STREAM | END_HEADERS, 1, get + https + named))
    body, flags, ours = b'', 0, False
    while not (ours and flags & END_STREAM):
        length = int.from_bytes(exactly(stream, 3), 'big')
        kind, flags, stream_id = struct.unpack('>BBI', exactly(stream, 6))
        payload = exactly(stream, length)
        ours = stream_id == 1 and kind in (DATA, HEADERS)
        if kind == SETTINGS and not flags & ACK:
            stream.sendall(frame(SETTINGS, ACK, 0))
        elif kind == DATA:
            body += payload
        elif kind == HEADERS and payload[0] != 0x88:  # ":status: 200", of the static table
            raise OSError(f'it answered {payload!r}')
    print('came back:', body.decode())


if __name__ == '__main__':
    {'echo': echo, 'websocket': websocket, 'h2': h2}[sys.argv[1]](*sys.argv[2:])
