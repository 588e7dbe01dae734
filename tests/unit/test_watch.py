"""A run of another process: read while it is written, served with a token, written as a page."""

from __future__ import annotations

import json
import os
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socket import create_connection, socketpair
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest
from braid.cli import main
from braid.core.event_jsonl import EventTail, read_known_events
from braid.core.run_events import RunStarted
from braid.errors import DamagedRunError
from braid_lab.common.recordings import write_events
from braid_widgets.base.run_view import HISTORY
from braid_widgets.cockpit import server
from braid_widgets.cockpit.page import fold_recording, recorded_page, save_run_page
from braid_widgets.cockpit.view import Cockpit
from unit.scripted import MIGRATION, make_commit


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run folder with one finished batch."""
    write_events(tmp_path / "events.jsonl", MIGRATION[:4])
    return tmp_path


def test_events_are_read_as_they_are_written(folder):
    tail, file = EventTail(folder), folder / "events.jsonl"
    assert tail.read_new() == MIGRATION[:4] and tail.read_new() == []
    write_events(folder / "more", MIGRATION[4:6])
    text = (folder / "more").read_bytes()
    with open(file, "ab") as out:
        out.write(text[:-30])
    assert tail.read_new() == MIGRATION[4:5], "a line that is not whole waits"
    with open(file, "ab") as out:
        out.write(text[-30:])
    assert tail.read_new() == MIGRATION[5:6]


def test_a_run_that_is_resumed_comes_from_its_start_again(folder):
    tail = EventTail(folder)
    tail.read_new()
    write_events(folder / "events.jsonl", MIGRATION[:2])
    assert tail.read_new() == MIGRATION[:2] and isinstance(MIGRATION[0], RunStarted)


def test_another_file_of_the_same_inode_comes_from_its_start(folder):
    tail, file = EventTail(folder), folder / "events.jsonl"
    tail.read_new()
    inode, other = file.stat().st_ino, [MIGRATION[0], *MIGRATION[2:6], *MIGRATION[2:6]]
    write_events(file, other)
    assert file.stat().st_ino == inode and tail.read_new() == other and tail.read_new() == []


def test_what_is_no_run_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "none.jsonl"):
        with pytest.raises(ValueError, match="neither a run folder nor a recording"):
            EventTail(path)


def test_a_page_leaves_out_unknown_events_and_ends_at_a_damaged_line(folder, tmp_path):
    write_events(folder / "events.jsonl", MIGRATION)
    *lines, last = (folder / "events.jsonl").read_bytes().splitlines(keepends=True)
    other = lines[1].replace(b'"type":"', b'"type":"New')
    recording = tmp_path / "recording.jsonl"
    recording.write_bytes(b"".join([*lines[:3], other, other, *lines[3:], b'{"type":\n', last]))
    events, omissions = read_known_events(recording)
    assert events == MIGRATION[:-1]
    line = f"line {len(MIGRATION) + 2} is damaged, the rest is left out"
    assert omissions == f"events of unknown kinds, left out: 2; {line}"
    page = Cockpit(recording).page
    assert page["note"].endswith(f" · {omissions}")
    assert page["frames"] == Cockpit(events).page["frames"] != []
    assert omissions in save_run_page(recording, tmp_path / "page.html").read_text("utf-8")
    assert read_known_events(folder) == (MIGRATION, "")
    recording.write_bytes(b"".join([*lines, last[:-1]]))
    assert read_known_events(recording) == (MIGRATION, ""), "a last line without a newline"
    recording.write_bytes(b"".join([*lines, last[:-9]]))
    cut = f"line {len(MIGRATION)} is damaged, the rest is left out"
    assert read_known_events(recording) == (MIGRATION[:-1], cut)
    (folder / "events.jsonl").write_bytes(recording.read_bytes())
    assert read_known_events(folder) == (MIGRATION[:-1], ""), "its driver may be writing"
    recording.write_bytes(b"{\n" + lines[0])
    with pytest.raises(DamagedRunError, match="is damaged: the line that begins with '{'"):
        read_known_events(recording)


@pytest.fixture
def address(folder: Path) -> Iterator[str]:
    """The URL of the served run, with the token."""
    made, found = server.make_server(folder)
    thread = threading.Thread(target=made.serve_forever, args=(0.01,))
    thread.start()
    yield found
    made.shutdown()
    thread.join()
    made.server_close()


def get(address: str) -> str:
    with urlopen(address, timeout=10) as answer:
        assert answer.headers["Cache-Control"] == "no-store"
        return str(answer.read().decode())


def test_a_run_is_served_to_who_has_the_token(folder, address):
    page = get(address)
    assert "batch 1 of 3" in page and '"state":"live"' in page and "data-film" in page
    bare, token = address.split("?")
    assert bare.startswith("http://127.0.0.1:") and len(token) > 20
    for wrong in (bare, f"{bare}?token=", f"{bare}?token=x{token[6:]}", f"{bare}more?since=0"):
        with pytest.raises(HTTPError) as refused:
            get(wrong)
        assert refused.value.code == 403
    with pytest.raises(HTTPError) as missing:
        get(f"{bare}other?{token}")
    assert missing.value.code == 404


@pytest.mark.parametrize("since", ["", "x", "-1", "+1", "1_0", "%C2%B2", "%D9%A3", "1.0", "9" * 50])
def test_a_batch_that_is_no_natural_number_is_refused(address, since):
    bare, token = address.split("?")
    with pytest.raises(HTTPError) as refused:
        get(f"{bare}more?since={since}&{token}")
    assert refused.value.code == 400
    assert "it must be a batch, a whole number, 0 or more" in refused.value.read().decode()


@pytest.mark.parametrize(
    "host, code",
    [
        *((name, 200) for name in ("127.0.0.1", "127.0.0.1:{port}", "localhost:1", "[::1]:1")),
        *((name, 403) for name in ("evil.example", "localhost.evil.example", "[::1", "", None)),
    ],
)
def test_a_page_that_another_name_points_to_is_refused(address, host, code):
    """DNS rebinding: a site could make its own name point to this machine, and read responses."""
    where = urlsplit(address)
    asked = HTTPConnection(where.hostname, where.port, timeout=10)
    asked.putrequest("GET", f"/?{where.query}", skip_host=True)
    if host is not None:
        asked.putheader("Host", host.format(port=where.port))
    asked.endheaders()
    assert asked.getresponse().status == code
    asked.close()


def test_every_answer_keeps_other_sites_out(address):
    bare, _ = address.split("?")
    with urlopen(address, timeout=10) as found:
        answers = [found.headers]
    for request in (bare, Request(address, method="POST")):
        with pytest.raises(HTTPError) as refused:
            urlopen(request, timeout=10)
        answers.append(refused.value.headers)
    for headers in answers:
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["X-Content-Type-Options"] == "nosniff"
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'") and "frame-ancestors 'none'" in policy
    script = get(address).rpartition('<script type="module">')[2].partition("</script>")[0]
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy


def test_connections_have_a_bound(address):
    where = urlsplit(address)
    silent = [
        create_connection((where.hostname, where.port), timeout=10)
        for _ in range(server.MOST_CONNECTIONS)
    ]
    with create_connection((where.hostname, where.port), timeout=10) as refused:
        assert refused.makefile("rb").read().startswith(b"HTTP/1.0 503 ")
    silent.pop().close()
    for _ in range(1000):  # its thread ends soon after
        with suppress(HTTPError, OSError):
            assert "batch 1 of 3" in get(address)
            break
    else:
        raise AssertionError("no connection was free again")
    for connection in silent:
        connection.close()


def test_a_connection_that_is_refused_is_closed_although_its_client_has_gone(monkeypatch):
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 0)
    here, gone = socketpair()
    gone.close()
    with server.CockpitServer((server.LOOPBACK, 0), BaseHTTPRequestHandler) as full:
        full.process_request_thread(here, None)
    assert here.fileno() == -1


def test_a_connection_that_says_nothing_is_ended(folder, monkeypatch):
    monkeypatch.setattr(server, "TIMEOUT", 0.01)
    made, _ = server.make_server(folder)
    thread = threading.Thread(target=made.serve_forever, args=(0.01,))
    thread.start()
    with create_connection((server.LOOPBACK, made.server_port), timeout=10) as silent:
        assert silent.recv(1) == b""
    made.shutdown()
    thread.join()
    made.server_close()


def test_the_lag_is_that_since_the_last_commit_and_goes_with_the_end(folder, address):
    os.utime(folder / "events.jsonl", (time.time() - 75,) * 2)
    answer = json.loads(get(address.replace("/?", "/more?since=0&")))
    assert 75 <= answer["seconds_since_commit"] < 105
    write_events(folder / "events.jsonl", MIGRATION[4:], append=True)
    assert json.loads(get(address.replace("/?", "/more?since=0&")))["seconds_since_commit"] is None
    assert fold_recording(MIGRATION[:4], is_own=True).make_page()["seconds_since_commit"] is None, (
        "nobody knows when it was made"
    )


def test_what_is_new_is_given_once(folder, address):
    bare, token = address.split("?")
    get(address)
    write_events(folder / "events.jsonl", MIGRATION[4:], append=True)
    more = json.loads(get(f"{bare}more?since=1&{token}"))
    whole = recorded_page(MIGRATION)
    assert [f["batch"] for f in more["frames"]] == [2, 3] == more["hosts"]["batch"]
    assert more["frames"] == json.loads(json.dumps(whole["frames"][1:]))
    assert more["state"] == "ended" and more["annotations"] == whole["annotations"]
    assert json.loads(get(f"{bare}more?since=3&{token}"))["frames"] == []


def test_a_run_without_end_needs_no_more_memory(tmp_path):
    write_events(tmp_path / "events.jsonl", [MIGRATION[0]])
    served = server.ServedRun(tmp_path)
    many = [make_commit(k, [1, 1], [k + 1, k + 1]) for k in range(HISTORY + 20)]
    write_events(tmp_path / "events.jsonl", many, append=True)
    page = served.page_since()
    assert len(served.track.frames) == HISTORY and page["frames"][-1]["batch"] == len(many)
    assert len(page["hosts"]["batch"]) == HISTORY


def test_a_replay_is_a_page_that_needs_no_network(folder, tmp_path, capsys):
    out = tmp_path / "out.html"
    assert main(["replay", str(folder), "-o", str(out)]) == 0
    assert "batch 1 of 3" in out.read_text(encoding="utf-8") and "wrote" in capsys.readouterr().out
    assert main(["replay", str(folder), "-o", str(out)]) == 2
    assert "-f replaces it" in capsys.readouterr().err
    assert main(["replay", str(folder), "-o", str(out), "-f"]) == 0
    assert main(["replay", str(folder), "-o", str(tmp_path / "out.png")]) == 2
    ending = "braid: the file is 'out.png'; its name must end in .html or .htm\n"
    assert capsys.readouterr().err == ending and not (tmp_path / "out.png").exists()
    assert main(["replay", str(tmp_path / "no"), "-o", str(out), "-f"]) == 2
    assert "neither a run folder nor a recording" in capsys.readouterr().err
    assert main(["watch", str(tmp_path / "no")]) == 2
    assert "neither a run folder nor a recording" in capsys.readouterr().err
