"""An engine's event publisher for tests: PUB and replay ROUTER as vLLM and SGLang run them, steered by JSON lines.

Each line on standard input is {"op": name, ...}; each is answered by one JSON line. The payload of batch n of life k is
"k:n". Like the engines it answers replay requests between two other pieces of work, from one thread.
"""
import collections, json, os, select, sys

import zmq

END = b"\xff" * 8


class Publisher:
    def __init__(self):
        self.ctx = zmq.Context()
        self.pub = self.router = None
        self.life = -1
        self.asked = []  # start numbers of the replay requests so far
        self.subs = 0
        self.mute = self.no_end = False
        self.omit = set()  # numbers that the next replay leaves out, once
        self.cut = None  # the next replay ends after so many replies, without END
        self.during = 0  # live batches published after the first reply of the next replay

    def op_open(self, pub="tcp://127.0.0.1:*", replay="", connect=False, ring=10000, layout="new", topic="kv",
                heartbeat=0, hwm=0, router_hwm=0, start=0, epoch="", plain=False):
        """Starts a new life. Without plain the PUB is an XPUB, which can be asked for its subscribers."""
        self.close()
        self.life += 1
        self.seq, self.layout, self.topic, self.subs = start, layout, topic.encode(), 0
        self.epoch = bytes.fromhex(epoch)
        self.ring = collections.deque(maxlen=ring)
        self.plain = plain
        self.pub = self.ctx.socket(zmq.PUB if plain else zmq.XPUB)
        self.pub.sndhwm, self.pub.linger = hwm, 0
        if not plain:
            self.pub.setsockopt(zmq.XPUB_VERBOSER, 1)
        if heartbeat:
            self.pub.setsockopt(zmq.HEARTBEAT_IVL, heartbeat)
            self.pub.setsockopt(zmq.HEARTBEAT_TIMEOUT, heartbeat)
        if connect:
            self.pub.setsockopt(zmq.RECONNECT_IVL, 20)
            self.pub.connect(pub)
        else:
            self.bind(self.pub, pub)
        out = {"pub": self.pub.last_endpoint.decode()}
        if replay:
            self.router = self.ctx.socket(zmq.ROUTER)
            self.router.sndhwm, self.router.linger = router_hwm, 0
            self.bind(self.router, replay)
            out["replay"] = self.router.last_endpoint.decode()
        return out

    def bind(self, sock, endpoint):
        for _ in range(500):  # the port of the life before may still be closing
            try:
                return sock.bind(endpoint)
            except zmq.ZMQError as e:
                if e.errno != zmq.EADDRINUSE:
                    raise
                select.select([], [], [], 0.01)
        raise TimeoutError(endpoint)

    def close(self):
        for s in (self.pub, self.router):
            if s is not None:
                s.close(0)
        self.pub = self.router = None

    def op_close(self):
        self.close()
        return {}

    def op_publish(self, n=1, live=True, ring=True, size=0):
        for _ in range(n):
            payload = b"%d:%d" % (self.life, self.seq)
            payload += b"." * (size - len(payload))
            number = self.seq.to_bytes(8, "big") + self.epoch
            if live:
                self.pub.send_multipart([self.topic, number, payload])
            if ring:
                self.ring.append((self.seq, number, payload))
            self.seq += 1
        return {"seq": self.seq}

    def op_raw(self, frames=()):
        self.pub.send_multipart([bytes.fromhex(f) for f in frames])
        return {}

    def op_rewind(self, seq=0):
        """Counts anew without closing anything, as behind a proxy."""
        self.life += 1
        self.seq = seq
        self.ring.clear()
        return {}

    def op_set(self, **kw):
        for k, v in kw.items():
            setattr(self, k, set(v) if k == "omit" else v)
        return {}

    def op_state(self):
        return {"asked": self.asked, "subs": self.subs}

    def op_wait(self, subs=1):
        """Waits until the XPUB has so many subscribers."""
        while self.subs < subs:
            if not self.pub.poll(10000):
                raise TimeoutError("%d subscribers, want %d" % (self.subs, subs))
            self.count()
        return {"subs": self.subs}

    def op_drained(self, subs=0):
        """Waits until the XPUB has at most so many subscribers."""
        while self.subs > subs:
            if not self.pub.poll(10000):
                raise TimeoutError("%d subscribers, want %d" % (self.subs, subs))
            self.count()
        return {"subs": self.subs}

    def count(self):
        while self.pub.poll(0):
            self.subs += 1 if self.pub.recv()[:1] == b"\x01" else -1

    def serve(self):
        frames = self.router.recv_multipart()
        if len(frames) != 3:
            return
        who, start = frames[0], int.from_bytes(frames[2], "big")
        self.asked.append(start)
        if self.mute:
            return
        cut, omit, during = self.cut, self.omit, self.during
        self.cut, self.omit, self.during = None, set(), 0
        sent, at = 0, 0
        while at < len(self.ring):  # it may grow meanwhile
            seq, number, payload = self.ring[at]
            at += 1
            if seq < start or seq in omit:
                continue
            if sent == cut:
                return
            self.reply(who, self.topic, number, payload)
            sent += 1
            if during:
                self.op_publish(during)
                during = 0
        if cut is None and not self.no_end:
            self.reply(who, b"", END, b"")

    def reply(self, who, topic, number, payload):
        head = [who, b""] + ([topic] if self.layout == "new" else [])
        self.router.send_multipart(head + [number, payload])

    def run(self):
        stdin, buffered = sys.stdin.fileno(), b""
        while True:
            poller = zmq.Poller()
            poller.register(stdin, zmq.POLLIN)
            if self.router is not None:
                poller.register(self.router, zmq.POLLIN)
            if self.pub is not None and not self.plain:
                poller.register(self.pub, zmq.POLLIN)
            ready = dict(poller.poll())
            if self.pub in ready:
                self.count()
            if self.router is not None and self.router in ready:
                self.serve()
            if stdin in ready:
                data = os.read(stdin, 1 << 16)
                if not data:
                    return
                buffered += data
                while b"\n" in buffered:
                    line, buffered = buffered.split(b"\n", 1)
                    self.answer(json.loads(line))

    def answer(self, command):
        op = command.pop("op")
        try:
            out = getattr(self, "op_" + op)(**command)
        except Exception as e:  # the test must see it, whatever it is
            out = {"error": "%s: %r" % (op, e)}
        sys.stdout.write(json.dumps(out) + "\n")
        sys.stdout.flush()


Publisher().run()
