#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the window costs: the real program under an X server of its own against kvscope-cli, in turn.

    tests/bench/window_cost.py [--bin build/release/bin] [--model FILE] [--pairs 5] [--tokens 1000] [--threads N]

Both write the same greedy answer to the same chat with the same kernel threads. Prints, for each pair and as medians:
decode speed of both and their ratio, and the processor time per second of the threads that are not the model's
(window, store, recorder, probe), read from schedstat while the answer is being written. Needs Xvfb and xdotool.
"""

import argparse
import json
import os
import sqlite3
import statistics
import subprocess
import tempfile
import time

PROMPT = "Write a very long story about a lighthouse keeper, with many chapters and details."
PATIENCE = 180
OURS = {"window": "window", "kv-store": "store", "kv-recorder": "recorder", "kv-probe": "probe",
        "QXcbEventQueue": "X events"}


def wait_for(what, question):
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        answer = question()
        if answer:
            return answer
        time.sleep(0.1)
    raise SystemExit(f"window_cost: waited in vain for {what}")


def figure(data, sql):
    try:
        with sqlite3.connect(f"file:{data}/kvscope.db?mode=ro", uri=True, timeout=2) as database:
            return database.execute(sql).fetchone()
    except sqlite3.Error:
        return None


def thread_times(pid):
    """Milliseconds on a processor so far, by kind of thread."""
    times = {}
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/comm") as file:
                name = "window" if task == str(pid) else file.read().strip()
            with open(f"/proc/{pid}/task/{task}/schedstat") as file:
                spent = int(file.read().split()[0]) / 1e6
        except OSError:
            continue  # it has ended
        kind = OURS.get(name, "model" if name in ("kv-engine", "kv-team") else "others")
        times[kind] = times.get(kind, 0) + spent
    return times


class Screen:
    def __enter__(self):
        self.server = subprocess.Popen(
            ["Xvfb", "-displayfd", "1", "-screen", "0", "1600x1000x24", "-nolisten", "tcp"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.environment = dict(os.environ, DISPLAY=":" + self.server.stdout.readline().strip(), QT_QPA_PLATFORM="xcb")
        self.environment.pop("WAYLAND_DISPLAY", None)
        return self

    def __exit__(self, *_):
        self.server.terminate()
        self.server.wait()

    def tool(self, *arguments):
        return subprocess.run(["xdotool", *arguments], env=self.environment, stdout=subprocess.PIPE, text=True,
                              check=False).stdout


def start_window(options, screen, data):
    command = [f"{options.bin}/kvscope", "--data-dir", data, "--model", options.model, *options.engine]
    return subprocess.Popen(command, env=screen.environment, stderr=subprocess.DEVNULL)


def stop_window(program):
    program.terminate()
    program.wait(timeout=30)


def prepare(options, screen, data):
    """A folder whose newest chat has the settings of this measurement."""
    program = start_window(options, screen, data)
    wait_for("the database", lambda: figure(data, "SELECT count(*) FROM conversation"))
    time.sleep(1)
    stop_window(program)
    now = int(time.time() * 1000)
    settings = {"temperature": 0, "repeat_penalty": 1, "max_tokens": options.tokens}
    with sqlite3.connect(f"{data}/kvscope.db") as database:
        database.execute("INSERT INTO conversation(title, created_at, updated_at, settings) VALUES ('cost', ?, ?, ?)",
                         (now, now, json.dumps(settings)))


def window_run(options):
    with tempfile.TemporaryDirectory() as data, Screen() as screen:
        prepare(options, screen, data)
        program = start_window(options, screen, data)
        try:
            time.sleep(4)
            window = screen.tool("search", "--onlyvisible", "--name", "KVScope").split()
            if not window:
                raise SystemExit("window_cost: no window")
            screen.tool("windowmove", window[-1], "0", "0", "windowsize", window[-1], "1600", "1000")
            screen.tool("windowfocus", window[-1])
            time.sleep(1)
            screen.tool("type", "--delay", "8", PROMPT)
            screen.tool("key", "Return")
            wait_for("the message", lambda: (figure(data, "SELECT count(*) FROM message") or [0])[0])
            time.sleep(1)
            before, began = thread_times(program.pid), time.monotonic()
            after, ended = before, began
            done = "SELECT count(*) FROM receipt"
            while (figure(data, done) or [0])[0] == 0:
                after, ended = thread_times(program.pid), time.monotonic()
                time.sleep(0.5)
                if ended - began > PATIENCE:
                    raise SystemExit("window_cost: no answer")
            if ended - began < 2:
                raise SystemExit("window_cost: the answer was too short to measure")
            tokens, decode = figure(data, "SELECT answer_tokens, decode_ms FROM receipt")
        finally:
            stop_window(program)
    spent = {kind: (after[kind] - before.get(kind, 0)) / (ended - began) for kind in after}
    return tokens, (tokens - 1) / decode * 1000, spent, ended - began


def cli_run(options):
    with tempfile.TemporaryDirectory() as folder:
        chat = f"{folder}/chat.json"
        with open(chat, "w") as file:
            json.dump([{"role": "user", "content": PROMPT}], file)
        command = [f"{options.bin}/kvscope-cli", "generate", "--model", options.model, "--chat", chat, "--json",
                   "--max-tokens", str(options.tokens), *options.engine]
        answer = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    tokens = len(answer["token_ids"])
    return tokens, (tokens - 1) / answer["timings"]["decode_ms"] * 1000


def main():
    home = os.environ.get("XDG_DATA_HOME", os.path.expanduser("~/.local/share"))
    parser = argparse.ArgumentParser(description="What the window costs against kvscope-cli.")
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--model", default=f"{home}/kvscope/models/SmolLM2-135M-Instruct.Q4_1.gguf")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=0, help="kernel threads of both; 0 = all cores")
    options = parser.parse_args()
    options.engine = ["--threads", str(options.threads)]
    ratios, costs, speeds = [], [], []
    for pair in range(options.pairs):
        # Turn about, so that a machine that grows busier does not always hit the same one.
        if pair % 2:
            cli, window = cli_run(options), window_run(options)
        else:
            window, cli = window_run(options), cli_run(options)
        if window[0] != cli[0]:
            raise SystemExit(f"window_cost: not the same answer: {window[0]} and {cli[0]} tokens")
        spent = window[2]
        costs.append(sum(spent.get(kind, 0) for kind in ("window", "store", "probe")))
        speeds.append((window[1], cli[1]))
        ratios.append(window[1] / cli[1])
        print(f"{window[0]} tokens: {window[1]:.1f} tokens/s with the window, {cli[1]:.1f} without, ratio "
              f"{ratios[-1]:.3f}; ms of CPU a second over {window[3]:.1f} s: "
              + ", ".join(f"{kind} {value:.1f}" for kind, value in sorted(spent.items())), flush=True)
    print(f"medians: {statistics.median(s[0] for s in speeds):.1f} against {statistics.median(s[1] for s in speeds):.1f} "
          f"tokens/s, ratio {statistics.median(ratios):.3f}; window, store and probe threads together "
          f"{statistics.median(costs):.1f} ms of CPU a second")


if __name__ == "__main__":
    main()
