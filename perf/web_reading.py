#!/usr/bin/env python3
"""Recordings from a web server on this machine (nginx): melflow beside a plain client (curl) with as many connections.

In:  perf/web_reading.py [ROUNDS]     by a Python that has melflow, fsspec and aiohttp; nginx, curl and libcurl.so.4; 5 rounds
     MELFLOW_FILES: how many recordings; default 2000. MELFLOW_SECONDS: of each, 16 kHz; default 1
Out: a table of medians, without the time of the listing; `rate`: of melflow's files per second, as a share of those of curl in the same round.
"""

import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import wave

CONNECTIONS = 32

CONFIG = """
daemon off;
worker_processes 2;
pid {folder}/pid;
error_log {folder}/errors;
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  keepalive_requests 1000000;
  server {{ listen 127.0.0.1:{port}; root {folder}/corpus; autoindex on; }}
}}
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def make(folder, count, seconds):
    os.makedirs(f"{folder}/corpus")
    samples = os.urandom(int(32000 * seconds) + count)
    for i in range(count):
        with wave.open(f"{folder}/corpus/{i:06}.wav", "wb") as out:
            out.setnchannels(1)
            out.setsampwidth(2)
            out.setframerate(16000)
            out.writeframes(samples[i:i + int(32000 * seconds)])


def by_curl(folder, url, count):
    with open(f"{folder}/urls", "w", encoding="ascii") as out:
        for i in range(count):
            out.write(f'url = "{url}{i:06}.wav"\noutput = "/dev/null"\n')
    begin = time.perf_counter()
    subprocess.run(["curl", "--silent", "--fail", "--no-progress-meter", "--parallel", "--parallel-max", str(CONNECTIONS), "--config",
                    f"{folder}/urls"], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def by_melflow(url, count, features=False):
    import melflow

    g = melflow.Graph()
    read = g.file_list(root=url).disk_read()
    (read.decode().mel(sample_rate=16000, n_fft=512, hop=160, n_mels=80) if features else read).discard()
    report = g.run()
    if report["files"]["ok"] != count:
        raise SystemExit(f"{report['files']}: {report['remarks'][:2]}")
    return report["graph_seconds"]


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    count, seconds = int(os.environ.get("MELFLOW_FILES", 2000)), float(os.environ.get("MELFLOW_SECONDS", 1))
    folder, port = tempfile.mkdtemp(), free_port()
    os.chmod(folder, 0o755)
    try:
        make(folder, count, seconds)
        with open(f"{folder}/config", "w", encoding="ascii") as out:
            out.write(CONFIG.format(folder=folder, port=port))
        server = subprocess.Popen(["nginx", "-c", f"{folder}/config", "-e", f"{folder}/errors"])
        try:
            url = f"http://127.0.0.1:{port}/"
            while subprocess.run(["curl", "--silent", "--output", "/dev/null", url], check=False).returncode != 0:
                time.sleep(0.1)
            times = {"curl": [], "melflow": [], "melflow, with features": []}
            for _ in range(rounds):
                times["curl"].append(by_curl(folder, url, count))
                times["melflow"].append(by_melflow(url, count))
                times["melflow, with features"].append(by_melflow(url, count, True))
        finally:
            server.terminate()
            server.wait()
        print(f"{count} recordings of {seconds:g} s, {CONNECTIONS} connections\n\n| client | files/s | rate |\n|---|---|---|")
        for name, of in times.items():
            rate = statistics.median(a / b for a, b in zip(times["curl"], of))
            print(f"| {name} | {count / statistics.median(of):,.0f} | {rate:.2f} |")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
