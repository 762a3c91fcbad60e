#!/usr/bin/env python3
"""Attacks a build of Polity from outside: hostile providers, kills, damaged and forged folders, malicious programs and scenarios.

usage: attack.py BINARY CHECKOUT [--only F1,F7]      BINARY is a `polity`, CHECKOUT the source it was built from
       attack.py --list

Prints one line an attack: its name, what was measured, and `held` or `broken`. An attack that could not be made is `not made`.
Exits with 1 unless all held. The names are those of the review that found these faults in commit 3290ca5, which most of them break.
Everything happens in a temporary folder, on this machine. F7 and F15 need bubblewrap. Takes up to ten minutes.
F17, the memory of a long run, takes too long for this script: `bash scripts/campaigns.sh memory` measures it.
"""
import argparse
import base64
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

KEY = "sk-canary-5ecre7-0123456789abcdef"
MODEL = "openai/medium"
GB = 1 << 30
# Seconds after which a process counts as hanging.
PATIENCE = 100
FOUND = {}


class NotMade(Exception):
    """The attack could not be made, so it shows nothing."""


def attack(name):
    """Registers a function as an attack. It returns what was measured, and whether the program held."""

    def register(function):
        FOUND[name] = function
        return function

    return register


def require(condition, why):
    if not condition:
        raise NotMade(why)


def each(function, values):
    """The results for all values, at the same time."""
    values = list(values)
    with ThreadPoolExecutor(len(values)) as pool:
        return list(pool.map(function, values))


# ---------------------------------------------------------------- a hostile provider

Reply = namedtuple("Reply", "status body")
Request = namedtuple("Request", "number text tokens schema authorization at")
RESET = Reply(0, b"")


def completion(content, usage="true", tokens=0):
    """An answer in the format of OpenAI. `usage` is what the server says of the tokens."""
    says = {"prompt_tokens": tokens, "completion_tokens": 20, "total_tokens": tokens + 20} if usage == "true" else usage
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    return Reply(200, json.dumps({"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": says}).encode())


def error(status, message):
    return Reply(status, json.dumps({"error": {"message": message, "type": "invalid_request_error"}}).encode())


def fitting(request, answer):
    """An answer that fits the schema of the request; what it wants besides is left empty."""
    fields = request.schema["required"] if request.schema else []
    return json.dumps({**{field: "" for field in fields}, "answer": answer})


def honest(request):
    """The same answer to the same request, whenever it comes."""
    return completion(fitting(request, zlib.crc32(request.text.encode()) % 101), tokens=request.tokens)


class Provider:
    """An HTTP server that answers each request as `behave` says, and keeps books of its own."""

    def __init__(self, behave=honest, latency=0.0):
        self.behave, self.latency = behave, latency
        self.lock, self.requests, self.answered = threading.Lock(), [], 0
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.provider = self
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def receive(self, body, headers):
        asked = json.loads(body)
        with self.lock:
            number = len(self.requests) + 1
            text = "\n".join(str(message["content"]) for message in asked["messages"])
            schema = asked.get("response_format", {}).get("json_schema", {}).get("schema")
            # Four letters make a token, roughly; a schema is read as well.
            request = Request(number, text, len(body) // 4, schema, headers.get("authorization", ""), time.monotonic())
            self.requests.append(request)
        time.sleep(self.latency)
        reply = self.behave(request)
        with self.lock:
            self.answered += reply.status == 200
        return reply

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, *_):
        """Clients that were killed are no news."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        reply = self.server.provider.receive(body, self.headers)
        if reply is RESET:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            # Closing both makes the kernel send a reset at once.
            self.rfile.close()
            self.connection.close()
            return
        self.send_response(reply.status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body)

    def log_message(self, *_):
        pass


def sometimes(share, reply, seed):
    """A provider's behaviour: this reply for a share of the requests, by lot; otherwise an honest one."""
    lot = random.Random(seed)
    return lambda request: reply if lot.random() < share else honest(request)


# ---------------------------------------------------------------- the program

Outcome = namedtuple("Outcome", "code out err seconds")
HUNG = "hung"


class Build:
    """A program and its source. What differs between old and new builds is here."""

    def __init__(self, binary, checkout, folder):
        self.binary, self.checkout, self.folder = binary, checkout, folder
        self.counter, self.lock, self.running = 0, threading.Lock(), set()

    def scenario(self, name):
        return str(self.checkout / "scenarios" / f"{name}.yaml")

    def format(self):
        """The line with the format of scenarios: `polity: 1` or newer."""
        return re.search(r"^polity: \d+$", Path(self.scenario("guess-average")).read_text(), re.M).group()

    def requests_flag(self):
        """The limit that is to hold for requests. Old builds have a limit of calls only."""
        return "--max-requests" if "--max-requests" in self.run("run", "--help").out else "--max-calls"

    def new(self, name):
        """A new folder."""
        with self.lock:
            self.counter += 1
            path = self.folder / f"{self.counter}-{name}"
        path.mkdir()
        return path

    def environment(self, url, extra):
        """Nothing of the user's: neither keys nor settings."""
        kept = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": str(self.folder), "LANG": "C.UTF-8", "NO_COLOR": "1"}
        kept["RAYON_NUM_THREADS"] = "2"
        if url:
            kept.update(OPENAI_BASE_URL=url, OPENAI_API_KEY=KEY)
        return {**kept, **extra}

    def start(self, *args, url=None, cwd=None, limits=(), env=None):
        child = subprocess.Popen(
            [str(self.binary), *map(str, args)], cwd=cwd or self.folder, env=self.environment(url, env or {}), start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        with self.lock:
            self.running.add(child)
        for kind, most in [(resource.RLIMIT_CORE, 0), *limits]:
            try:
                resource.prlimit(child.pid, kind, (most, most))
            except ProcessLookupError:
                pass
        return child

    def kill(self, child):
        """Kills the process and those it started, and waits."""
        if child.returncode is None:
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        out, err = child.communicate()
        with self.lock:
            self.running.discard(child)
        return out.decode(errors="replace"), err.decode(errors="replace")

    def end(self, child, limit=PATIENCE):
        """Waits for the end of a process. After the limit it is killed and counts as hanging."""
        began, code = time.monotonic(), None
        try:
            out, err = (text.decode(errors="replace") for text in child.communicate(timeout=limit))
            code = child.returncode
        except subprocess.TimeoutExpired:
            (out, err), code = self.kill(child), HUNG
        with self.lock:
            self.running.discard(child)
        return Outcome(code, out, err, time.monotonic() - began)

    def run(self, *args, limit=PATIENCE, **more):
        return self.end(self.start(*args, **more), limit)

    def minds(self, out, *flags, agents=200, rounds=2, connections=64):
        """The arguments of a society whose agents ask a model: one request an agent and round."""
        args = ["run", self.scenario("guess-average-minds"), "--model", MODEL, "--agents", agents, "--rounds", rounds]
        return [*args, "--max-connections", connections, "--no-report", "--json", "--out", out, *flags]

    def stop_all(self):
        for child in list(self.running):
            self.kill(child)


def summary(outcome):
    """The object that --json prints last."""
    lines = outcome.out.strip().splitlines()
    require(lines and lines[-1].startswith("{"), f"no summary: exit {outcome.code}, {outcome.err.strip()[-300:]}")
    return json.loads(lines[-1])


def by_signal(outcome):
    """Whether a process hung or crashed; a refusal in words is neither."""
    return outcome.code == HUNG or outcome.code < 0


def ended(outcomes):
    """How processes ended, in words."""
    names = {HUNG: "hang", -signal.SIGABRT: "SIGABRT", -signal.SIGKILL: "SIGKILL", -signal.SIGSEGV: "SIGSEGV"}
    return ", ".join(str(names.get(one.code, f"exit {one.code}")) for one in outcomes)


# ---------------------------------------------------------------- limits and providers


@attack("F1")
def resets_and_a_limit(build):
    """Half of the answers are reset, and calls are limited."""

    def hangs(seed):
        with Provider(sometimes(0.5, RESET, seed)) as provider:
            args = build.minds(build.new("f1") / "run", "--max-calls", 200, "--seed", seed)
            outcome = build.run(*args, url=provider.url)
            require(len(provider.requests) > 100, f"{len(provider.requests)} requests only: exit {outcome.code}, {outcome.err[-300:]}")
            return outcome.code == HUNG

    hanging = sum(each(hangs, range(1, 7)))
    return f"{hanging} of 6 runs hang with half of the answers reset and --max-calls 200", hanging == 0


@attack("F2")
def no_tokens_told(build):
    """The server does not say, or denies, that tokens were used."""
    most = 50_000

    def used(usage):
        with Provider(lambda request: completion(fitting(request, 7), usage)) as provider:
            out = build.new("f2") / "run"
            outcome = build.run(*build.minds(out, "--max-tokens", most, rounds=5), url=provider.url)
            require(outcome.code != HUNG and provider.answered > 10, f"exit {outcome.code}, {provider.answered} answers")
            return sum(request.tokens for request in provider.requests)

    lies = [{}, {"total_tokens": 30}, {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}]
    figures = each(used, lies)
    return f"{max(figures):,} tokens of requests at --max-tokens {most:,} (usage empty, total only, zeros: {figures})", max(figures) <= most


@attack("F3")
def an_outage(build):
    """The provider is away for 12 seconds."""

    def run(is_away):
        with Provider(latency=0.02) as provider:
            provider.behave = lambda request: RESET if is_away and 0 < request.at - away(provider) < 12 else honest(request)
            outcome = build.run(*build.minds(build.new("f3") / "run", rounds=3, connections=16), url=provider.url)
            require(outcome.code == HUNG or not is_away or len(provider.requests) > 300, "the provider was never away")
            return outcome

    def away(provider):
        return provider.requests[299].at if len(provider.requests) >= 300 else float("inf")

    whole, *others = each(run, [False, True, True, True])
    digest = summary(whole)["digest"]
    stopped = sum(one.code != 0 for one in others)
    changed = sum(one.code == 0 and summary(one)["digest"] != digest for one in others)
    return f"of 3 runs with an outage of 12 s, {stopped} stop and {changed} have another digest", stopped + changed == 0


@attack("F6")
def kills_and_a_limit(build):
    """The process is killed while calls are in flight, and resumed, again and again."""
    most, kills = 300, 11
    out = build.new("f6") / "run"
    args = build.minds(out, "--max-calls", most, rounds=5)
    with Provider(latency=0.06) as provider:
        for kill in range(kills + 1):
            child = build.start(*args, url=provider.url)
            if kill == kills:
                last = build.end(child)
                break
            before, until = len(provider.requests), time.monotonic() + PATIENCE
            while len(provider.requests) < before + 12 and child.poll() is None and time.monotonic() < until:
                time.sleep(0.002)
            if child.poll() is not None:
                last = build.end(child)
                break
            build.kill(child)
            # A run that was killed before it wrote its manifest begins anew.
            if (out / "manifest.json").exists():
                args = ["resume", out, "--max-connections", 64, "--no-report", "--json"]
        time.sleep(0.5)
        require(kill >= 3, f"{kill} kills only: exit {last.code}, {last.err[-300:]}")
        return f"{provider.answered} calls answered at --max-calls {most} after {kill} kills", provider.answered <= most


@attack("F8b")
def failed_tries_and_a_limit(build):
    """Failed tries are requests, too."""
    flag, most = build.requests_flag(), 200
    with Provider(sometimes(0.5, error(500, "try again"), 1)) as provider:
        build.run(*build.minds(build.new("f8b") / "run", flag, most), url=provider.url)
        sent = len(provider.requests)
    require(sent > 100, f"{sent} requests only")
    return f"{sent} requests at {flag} {most} with half of them failing", sent <= most


@attack("F9")
def a_stray_refusal(build):
    """One request of hundreds is refused."""

    def behave(request):
        return error(400, "bad request") if request.number == 95 else honest(request)

    with Provider(behave) as provider:
        build.run(*build.minds(build.new("f9") / "run", rounds=4, connections=8), url=provider.url)
        later = provider.requests[105:]
    require(len(later) > 500, f"{len(later)} requests only")
    kept = sum(request.schema is not None for request in later)
    return f"{kept} of {len(later)} requests have a schema after one stray 400", kept == len(later)


# ---------------------------------------------------------------- files of runs


def finished(build, name, *flags):
    """The folder of a finished run."""
    out = build.new(name) / "run"
    outcome = build.run("run", *flags, "--out", out, "--json")
    require(outcome.code == 0, f"exit {outcome.code}: {outcome.err[-300:]}")
    return out


@attack("F4")
def flipped_bits(build):
    """One bit of a table is flipped."""
    run = finished(build, "f4", build.scenario("guess-average"))
    export = ["export", run, "--table", "acts", "--out"]
    target = build.new("f4-export") / "acts.csv"
    require(build.run(*export, target).code == 0, "the intact table cannot be exported")
    intact = target.read_bytes()
    part = sorted((run / "tables" / "acts").iterdir())[0]
    good, lot, silent, flips = part.read_bytes(), random.Random(4), 0, 30
    for _ in range(flips):
        bad, at = bytearray(good), lot.randrange(4, len(good) * 8 // 10)
        bad[at] ^= 1 << lot.randrange(8)
        part.write_bytes(bad)
        target.unlink(missing_ok=True)
        silent += build.run(*export, target).code == 0 and target.read_bytes() != intact
    part.unlink()
    target.unlink(missing_ok=True)
    lost = build.run(*export, target).code == 0
    words = "exported" if lost else "refused"
    return f"{silent} of {flips} flips of a bit are exported without a word; a table without a part is {words}", silent == 0 and not lost


@attack("F5")
def forged_manifest(build):
    """The manifest says that real models were asked."""
    run = finished(build, "f5", build.scenario("debate"))
    path = run / "manifest.json"
    manifest = path.read_text()
    require(build.run("replay", run).code == 0, "the intact run is not replayed")
    forged = {"simulated": False, "models": ["openai/gpt-5"], "seed": 42, "build": {"version": "1.0.0", "target": "x86_64-linux"}}
    accepted = []
    for key, value in forged.items():
        tree = json.loads(manifest)
        require(key in tree and tree[key] != value, f"the manifest has no {key} to forge")
        path.write_text(json.dumps({**tree, key: value}, indent=2))
        if build.run("replay", run).code == 0:
            accepted.append(key)
    return f"{len(accepted)} of {len(forged)} forged fields of a manifest are replayed as the same ({', '.join(accepted) or 'none'})", not accepted


@attack("F8")
def folder_of_the_user(build):
    """A run is to be written to a folder that has other files, in folders of the same names."""
    folder = build.new("f8")
    files = [folder / name for name in ("inputs/my-survey.csv", "tables/thesis-table.tex", "journal/2026.md")]
    for file in files:
        file.parent.mkdir(parents=True)
        file.write_text("mine")
    outcome = build.run("run", build.scenario("guess-average"), "--agents", 50, "--out", folder)
    deleted = sum(not file.exists() for file in files)
    return f"{deleted} of 3 files of the user's are deleted by --out (exit {outcome.code})", deleted == 0


@attack("F18")
def crafted_folders(build):
    """Files of a run folder are pipes without an end, endless devices, or links to another folder."""

    def crafted(case):
        name, make = case
        run = finished(build, "f18", build.scenario("guess-average-minds"), "--agents", 20, "--rounds", 2)
        file = run / "manifest.json" if name == "manifest" else next((run / "inputs").iterdir())
        file.unlink()
        make(file)
        return build.run("resume", run, limit=40, limits=[(resource.RLIMIT_AS, 2 * GB)])

    kinds = (os.mkfifo, lambda file: file.symlink_to("/dev/zero"))
    outcomes = each(crafted, [(name, make) for name in ("manifest", "input") for make in kinds])
    bad = sum(map(by_signal, outcomes))
    touched = linked_table(build)
    words = "changed" if touched else "untouched"
    return f"{bad} of 4 crafted folders end badly ({ended(outcomes)}); a folder linked as a table is {words}", bad == 0 and not touched


def linked_table(build):
    """Whether resuming a run changes a folder outside it, which is linked as one of its tables."""
    run, outside = build.new("f18") / "run", build.new("f18-outside") / "acts"
    flags = ["--rounds", 1_000_000, "--no-report", "-P", "snapshot.rounds=5", "--out", run]
    child = build.start("run", build.scenario("guess-average"), *flags)
    until = time.monotonic() + PATIENCE
    while not list(run.glob("tables/acts/*.parquet")) and child.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(1)
    build.kill(child)
    require(list(run.glob("tables/acts/*.parquet")), "the run wrote no table")
    (run / "tables" / "acts").rename(outside)
    (run / "tables" / "acts").symlink_to(outside)
    (outside / "part-900000-900001.parquet").write_text("mine")
    before = {file.name: file.stat().st_mtime_ns for file in outside.iterdir()}
    build.run("resume", run, "--max-time", 3, "--no-report")
    return before != {file.name: file.stat().st_mtime_ns for file in outside.iterdir()}


# ---------------------------------------------------------------- keys, terminals, files of the machine


@attack("F10")
def foreign_address(build):
    """A `.env` in the folder, from elsewhere, names an address; the key is the user's."""
    folder = build.new("f10")
    with Provider() as evil:
        (folder / ".env").write_text(f"OPENAI_BASE_URL={evil.url}\n")
        args = build.minds("run", "--max-time", 5, agents=3, rounds=1)
        outcome = build.run(*args, cwd=folder, env={"OPENAI_API_KEY": KEY}, limit=60)
        stolen = sum(KEY in request.authorization for request in evil.requests)
    return f"{stolen} requests with the key arrive at the address of a foreign .env (exit {outcome.code})", stolen == 0


@attack("F10b")
def terminal_escapes(build):
    """An error message has codes that steer a terminal."""
    message = "hostile \u001b]52;c;ZXZpbA==\u0007\u001b[2J\u009b31m \u202etxt.exe"
    with Provider(lambda request: error(401, message)) as provider:
        outcome = build.run(*build.minds(build.new("f10b") / "run", agents=3, rounds=1), url=provider.url)
    require("hostile" in outcome.err, f"the message is not shown: {outcome.err[-300:]}")
    codes = re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", outcome.err + outcome.out)
    return f"{len(codes)} control characters of a server's message reach the terminal", not codes


@attack("F11")
def secret_file(build):
    """A scenario names a file outside its folder as a prompt."""
    folder, secret = build.new("f11"), "the-secret-of-the-user-4711"
    (folder / "secret.txt").write_text(secret)
    (folder / "shared").mkdir()
    scenario = Path(build.scenario("guess-average-minds")).read_text()
    scenario = re.sub(r"^population:.*?(?=^world:)", "", scenario, flags=re.S | re.M)

    def sent(file):
        path = folder / "shared" / "scenario.yaml"
        path.write_text(scenario.replace("think: in-reply\n", f"think: in-reply\n      prompts: {{rules: {{file: {file}}}}}\n", 1))
        with Provider() as provider:
            args = build.minds(build.new("f11") / "run", agents=3, rounds=1)
            args[1] = path
            outcome = build.run(*args, url=provider.url)
            return sum(secret in request.text for request in provider.requests), outcome

    (folder / "shared" / "own.txt").write_text(secret)
    own, outcome = sent("own.txt")
    require(own > 0, f"a file of the scenario's own is not sent: {outcome.err[-300:]}")
    (folder / "shared" / "link.txt").symlink_to("../secret.txt")
    figures = [sent(file)[0] for file in ("../secret.txt", "link.txt", folder / "secret.txt")]
    return f"{sum(figures)} requests hold a file from outside the scenario's folder", sum(figures) == 0


@attack("F13")
def key_in_other_spelling(build):
    """The server repeats the key, in escapes of JSON and in base64."""
    marker, secret = "marker-0815", base64.b64encode(f"Bearer {KEY}".encode()).decode()
    plain = completion(json.dumps({"thoughts": f"{marker} KEY {secret}", "answer": 7}), tokens=99)
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in KEY)
    # Once as an escape of the body, once as an escape of the content, which is JSON in JSON.
    bodies = [plain.body.replace(b"KEY", spelling.encode()) for spelling in (escaped, escaped.replace("\\", "\\\\"))]
    out = build.new("f13") / "run"
    with Provider(lambda request: Reply(200, bodies[request.number % 2])) as provider:
        build.run(*build.minds(out, agents=6, rounds=2), url=provider.url)
    texts = {str(file.relative_to(out)): file.read_bytes() for file in out.rglob("*") if file.is_file()}
    texts["polity calls"] = build.run("calls", out, "--json", "--full").out.encode()
    texts["polity export"] = build.run("export", out, "--table", "calls").out.encode()
    require(sum(marker.encode() in text for text in texts.values()) > 1, "the answers are not recorded")
    spellings = [KEY.encode(), secret.encode(), escaped.encode()]
    places = [name for name, text in texts.items() if any(spelling in text for spelling in spellings)]
    return f"the key is found in {len(places)} files and outputs ({', '.join(places) or 'none'})", not places


# ---------------------------------------------------------------- memory


@attack("F12")
def too_many_ties(build):
    """Everybody averages with everybody, in a large society."""
    file = build.new("f12") / "scenario.yaml"
    world = "world: {kind: opinion}\ncohorts: [{policy: {kind: degroot}}]\ntopology: {kind: complete}\n"
    file.write_text(f"{build.format()}\nname: ties\nseed: 1\nrounds: 2\nagents: 100\n{world}")

    def run(agents):
        out = build.new("f12") / "run"
        return build.run("run", file, "--agents", agents, "--out", out, "--no-report", limits=[(resource.RLIMIT_AS, 8 * GB)])

    small, *large = [run(agents) for agents in (100, 100_000, 1_000_000)]
    require(small.code == 0, f"100 agents: {small.err[-300:]}")
    bad = sum(map(by_signal, large))
    return f"{bad} of 2 societies with too many ties end badly ({ended(large)})", bad == 0


@attack("F14")
def template_bombs(build):
    """Templates of a prompt that make gigabytes of text, tried by `polity validate`."""
    bombs = [
        "{{ 'x\\ny'|indent(10000000000) }}",
        "{{ '%99999999999s'|format('x') }}",
        "{{ range(100000)|join('x'*100000) }}",
        "{% set ns = namespace(s='xxxxxxxx') %}{% for i in range(40) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ ns.s }}",
    ]

    def validated(template):
        folder = build.new("f14")
        (folder / "rules.md").write_text(template)
        scenario = Path(build.scenario("guess-average-minds")).read_text()
        scenario = re.sub(r"^population:.*?(?=^world:)", "", scenario, flags=re.S | re.M)
        (folder / "s.yaml").write_text(scenario.replace("think: in-reply\n", "think: in-reply\n      prompts: {rules: {file: rules.md}}\n", 1))
        return build.run("validate", folder / "s.yaml", limit=60, limits=[(resource.RLIMIT_AS, 2 * GB)])

    fine = validated("Play.")
    require(fine.code == 0, f"a harmless template: {fine.err[-300:]}")
    outcomes = [validated(bomb) for bomb in bombs]
    bad = sum(map(by_signal, outcomes))
    return f"{bad} of {len(bombs)} templates end badly in validate ({ended(outcomes)})", bad == 0


@attack("F16")
def idle_connections(build):
    """Any process of the machine opens connections to --listen and says nothing."""
    most, idle = 256, 400
    args = ["run", build.scenario("guess-average-person"), "--listen", "127.0.0.1:0", "--out", build.new("f16") / "run", "--no-report"]
    child = build.start(*args, limits=[(resource.RLIMIT_NOFILE, most)])
    silence, port = threading.Timer(PATIENCE, child.kill), None
    silence.start()
    while port is None:
        line = child.stderr.readline() or child.stdout.readline()
        require(line, "the run tells no address")
        port = re.search(rb"127\.0\.0\.1:(\d+)", line)
    silence.cancel()
    address, open_ones = ("127.0.0.1", int(port.group(1))), []
    for _ in range(idle):
        try:
            open_ones.append(socket.create_connection(address, timeout=1))
        except OSError:
            pass
    time.sleep(3)
    alive, answers = child.poll() is None, answers_within(address, 60)
    alive = alive and child.poll() is None
    for one in open_ones:
        one.close()
    build.kill(child)
    words = f"the run {'goes on' if alive else 'has ended'} and {'answers' if answers else 'does not answer'}"
    return f"{words} with {idle} idle connections at {most} open files", alive and answers


def answers_within(address, seconds):
    """Whether a server answers a request within this time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            with socket.create_connection(address, timeout=2) as one:
                one.sendall(b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
                if one.recv(12).startswith(b"HTTP/1.1"):
                    return True
        except OSError:
            pass
        time.sleep(0.5)
    return False


# ---------------------------------------------------------------- programs in the sandbox

LIES = {
    "a proof found in the program's file": "import os,re; w=re.findall('got to its end [0-9a-f]{32}',open('/tmp/program.py').read())[-1]; "
    "os.write(1,('\\n'+w+'\\n').encode()); os._exit(0)",
    "leaving early": "import os; os._exit(0)",
    "no assertions": "import builtins, sys; sys.modules['__main__'].check = lambda *_: None; builtins.AssertionError = Exception",
}
EQUAL = "class Equal:\n    def __eq__(self, other): return True\n    def __hash__(self): return 0\n    def __sub__(self, o): return 0\n"
SOCKETS = """
import socket
held, total = [], 0
server = socket.socket(socket.AF_INET)
server.bind(("127.0.0.1", 0)); server.listen(400)
while total < 600 << 20:
    a = socket.socket(socket.AF_INET); a.connect(server.getsockname()); b, _ = server.accept()
    a.setblocking(False); b.setblocking(False); held += [a, b]
    for one in (a, b):
        try:
            while True: total += one.send(bytes(1 << 20))
        except BlockingIOError: pass
"""


def score(build, write, limit):
    """The accuracy of a model on tasks of programming, with the programs that it writes."""
    items = [json.loads(line) for line in (build.checkout / "data" / "humaneval-60.jsonl").read_text().splitlines()[:limit]]

    def behave(request):
        item = next(item for item in items if f"def {item['entry_point']}(" in request.text)
        return completion(fitting(request, write(item)), tokens=request.tokens)

    with Provider(behave) as provider:
        args = ["eval", "--method", "single", "--model", MODEL, "--task", build.checkout / "data" / "humaneval-60.jsonl"]
        outcome = build.run(*args, "--limit", limit, "--out", build.new("score") / "run", "--json", "--no-report", url=provider.url)
    tree = summary(outcome)
    accuracy = tree.get("accuracy", tree.get("scores", {}))
    return accuracy if isinstance(accuracy, (int, float)) else accuracy["accuracy"]


def right(item):
    return item["prompt"] + item["canonical_solution"]


@attack("F7")
def forged_scores(build):
    """A model's programs claim that they pass."""
    require(shutil.which("bwrap"), "bubblewrap is missing")
    limit = 10
    require(score(build, right, limit) == 1, "right programs do not pass")
    ways = {name: (lambda item, code=code: f"{code}\ndef {item['entry_point']}(*_):\n    return 4711\n") for name, code in LIES.items()}
    ways["an object equal to everything"] = lambda item: f"{EQUAL}\ndef {item['entry_point']}(*_):\n    return Equal()\n"
    figures = {name: score(build, write, limit) for name, write in ways.items()}
    best = max(figures, key=figures.get)
    return f"accuracy {figures[best]:.3f} of {limit} items by the best of {len(ways)} forgeries ({best})", figures[best] == 0


@attack("F15")
def memory_of_sockets(build):
    """A program keeps 600 MB in sockets, beside its limit of 512 MB."""
    require(shutil.which("bwrap"), "bubblewrap is missing")
    require(score(build, right, 1) == 1, "right programs do not pass")
    passed = score(build, lambda item: f"{right(item)}\n{SOCKETS}", 1)
    return f"{passed:.0f} of 1 programs hold 600 MB in sockets beside the limit of memory", passed == 0


# ---------------------------------------------------------------- the command


def order(name):
    return int(re.sub(r"\D", "", name)), name


@contextmanager
def temporary(binary, checkout):
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        build = Build(binary.resolve(), checkout.resolve(), Path(folder))
        try:
            yield build
        finally:
            build.stop_all()


def made(build, name):
    """Makes an attack and prints its line; returns whether the program held."""
    began = time.monotonic()
    try:
        measured, held = FOUND[name](build)
        verdict = "held" if held else "broken"
    except Exception as why:
        kind = "" if isinstance(why, NotMade) else f"{type(why).__name__}: "
        measured, verdict = kind + " ".join(str(why).split()), "not made"
    print(f"{name:4} {measured} ({time.monotonic() - began:.0f} s): {verdict}", flush=True)
    return verdict == "held"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=Path, nargs="?")
    parser.add_argument("checkout", type=Path, nargs="?")
    parser.add_argument("--only", default="", help="names of attacks, separated by commas")
    parser.add_argument("--list", action="store_true", help="list the attacks")
    args = parser.parse_args()
    names = sorted(FOUND, key=order)
    if args.list:
        print("\n".join(f"{name:4} {FOUND[name].__doc__}" for name in names))
        return 0
    chosen = [name for name in args.only.split(",") if name] or names
    unknown = [name for name in chosen if name not in FOUND]
    if unknown or not args.checkout:
        parser.error(f"there is no attack {unknown[0]}; --list names them" if unknown else "BINARY and CHECKOUT are needed")
    with temporary(args.binary, args.checkout) as build:
        held = [made(build, name) for name in chosen]
    print(f"{sum(held)} of {len(held)} attacks held")
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
