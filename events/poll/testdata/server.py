"""Serves /kv_cache_events as trtllm-serve does: each event once, to whoever asks first.

Commands on standard input, one a line, each answered by a line "ok":
  push JSON     queue an event
  mode MODE     how the next polls are answered: drain, get (only GET is allowed), error (500 after the drain), cut
                (half of the body, then the connection is closed), hang (nothing until the mode changes), page (HTML)
  id            print how many polls were answered with events
  idle          wait until every connection that was accepted is closed
Prints its port first. It uses json.dumps as FastAPI's JSONResponse does: compact separators, no ASCII escapes.
"""

import http.server
import json
import sys
import threading

lock = threading.Condition()
queue, mode, drained, open_connections = [], "drain", 0, 0


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.drain("GET")

    def do_POST(self):
        self.drain("POST")

    def drain(self, method):
        global drained
        with lock:
            while mode == "hang":
                lock.wait()
            how = mode
            if self.path != "/kv_cache_events" or (how == "get") != (method == "GET"):
                return self.reply(405 if self.path == "/kv_cache_events" else 404, b"{}")
            events = list(queue)
            queue.clear()
            drained += bool(events)
        body = json.dumps(events, ensure_ascii=False, separators=(",", ":")).encode()
        if how == "error":
            return self.reply(500, b"Internal Server Error")
        if how == "page":
            return self.reply(200, b"<html></html>")
        if how == "cut":
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
            return None
        return self.reply(200, body)

    def reply(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    allow_reuse_address = True
    daemon_threads = True

    def process_request(self, request, client_address):  # on the one thread that accepts, in their order
        global open_connections
        with lock:
            open_connections += 1
        super().process_request(request, client_address)

    def shutdown_request(self, request):
        global open_connections
        super().shutdown_request(request)
        with lock:
            open_connections -= 1
            lock.notify_all()


port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
server = Server(("127.0.0.1", port), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
for line in sys.stdin:
    word, _, rest = line.strip().partition(" ")
    with lock:
        if word == "push":
            queue.append(json.loads(rest))
        elif word == "mode":
            mode = rest
        elif word == "idle":
            lock.wait_for(lambda: open_connections == 0)
        lock.notify_all()
    print(drained if word == "id" else "ok", flush=True)
