"""gRPC's own server and client, as far as grpc.sh wants them: words that come back, each on its own and
in a stream both ways.

  grpc_echo.py serve CERTIFICATE KEY FILE
      until it is ended; the port that the system gave it is written to FILE
  grpc_echo.py ask AUTHORITY TRUSTED WORD
      through the proxy that https_proxy names, as gRPC reads it; prints what came back
"""

import concurrent.futures
import os
import sys

import grpc

PATIENCE = 20  # seconds, for each call
WHOLE, STREAM = '/echo.Echo/Whole', '/echo.Echo/Stream'


def read(path):
    with open(path, 'rb') as file:
        return file.read()


class Echo(grpc.GenericRpcHandler):
    def service(self, details):
        if details.method == WHOLE:
            return grpc.unary_unary_rpc_method_handler(lambda word, _: word[::-1])
        if details.method == STREAM:
            return grpc.stream_stream_rpc_method_handler(lambda words, _: (word[::-1] for word in words))
        return None


def serve(certificate, key, port_file):
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(4), handlers=[Echo()])
    shown = grpc.ssl_server_credentials([(read(key), read(certificate))])
    port = server.add_secure_port('127.0.0.1:0', shown)
    server.start()
    with open(port_file + '.new', 'w') as file:
        file.write(f'{port}\n')
    os.rename(port_file + '.new', port_file)
    server.wait_for_termination()


def ask(authority, trusted, word):
    credentials = grpc.ssl_channel_credentials(read(trusted))
    with grpc.secure_channel(authority, credentials) as channel:
        print('whole:', channel.unary_unary(WHOLE)(word.encode(), timeout=PATIENCE).decode())
        parts = (bytes([part]) * 50_000 for part in word.encode())
        for came in channel.stream_stream(STREAM)(parts, timeout=PATIENCE):
            print('part:', came[:1].decode(), len(came))


if __name__ == '__main__':
    {'serve': serve, 'ask': ask}[sys.argv[1]](*sys.argv[2:])
