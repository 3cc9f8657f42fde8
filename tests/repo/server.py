#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Serve a folder on a free loopback port.  usage: server.py DIR PORT_FILE"""
import functools
import http.server
import os
import sys


class Quiet(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # apt closes connections that it no longer needs


def main():
    folder, port_file = sys.argv[1:]
    server = Server(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    with open(port_file + ".new", "w", encoding="ascii") as f:
        f.write(f"{server.server_address[1]}\n")
    os.rename(port_file + ".new", port_file)
    server.serve_forever()


main()
