"""Programs that run beside us, HTTP, and free ports."""
import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request


class Process:
    """A program in a process group of its own, its output appended to a log file."""

    def __init__(self, command, log, env=None):
        with open(log, "ab") as out:
            self.popen = subprocess.Popen(
                command, stdout=out, stderr=subprocess.STDOUT, env={**os.environ, **(env or {})}, start_new_session=True
            )
        self.log = log

    def kill(self):
        """Ends the whole group at once, as a lost node does."""
        try:
            os.killpg(self.popen.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.popen.wait()

    def wait_until(self, ready, limit, what):
        """Waits until ready() is true; ends the run if the program ends first or the limit (seconds) passes."""
        end = time.monotonic() + limit
        while not ready():
            if self.popen.poll() is not None:
                raise SystemExit(f"{what}: the program ended, see {self.log}")
            if time.monotonic() > end:
                raise SystemExit(f"{what}: not within {limit} s, see {self.log}")
            time.sleep(0.05)


def http(url, body=None, headers=None, timeout=120):
    """GETs, or POSTs body (bytes). Returns status and body; status 0 if nobody answers."""
    request = urllib.request.Request(url, data=body, headers={"Content-Type": "application/json", **(headers or {})})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except OSError as error:
        return 0, str(error).encode()


def call(base, method, message):
    """Calls a method of kvscout over Connect with JSON."""
    status, body = http(f"{base}/kvscout.v1.{method}", json.dumps(message).encode())
    if status != 200:
        raise SystemExit(f"{method}: status {status}: {body[:500]!r}")
    return json.loads(body)


def free_ports(count):
    """The first of count free ports in a row."""
    for _ in range(1000):
        sockets = [socket.socket()]
        try:
            sockets[0].bind(("", 0))
            first = sockets[0].getsockname()[1]
            for i in range(1, count):
                sockets.append(socket.socket())
                sockets[-1].bind(("", first + i))
            return first
        except (OSError, OverflowError):
            continue
        finally:
            for s in sockets:
                s.close()
    raise SystemExit(f"no {count} free ports in a row")
