"""Where the embedded servers live, and what only one portal can have."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from portal.embedded import environment, process
from portal.embedded.claims import claim_folder, claim_port
from portal.embedded.home import CannotStart, Home, find_home, make_home
from portal.embedded.postgres import Postgres


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


class TestHome:
    def test_an_ordinary_user_keeps_the_data_in_the_checkout(self, tmp_path: Path) -> None:
        home = find_home(tmp_path, {}, uid=1000)
        assert home.data == tmp_path / "var"

    def test_roots_data_lies_where_postgres_can_reach_it_one_folder_per_checkout(self, tmp_path: Path) -> None:
        one, two = (find_home(tmp_path / name, {}, uid=0).data for name in ("one", "two"))
        assert one.parent == two.parent == Path("/var/lib/trainhall")
        assert one != two
        assert len(one.name) == 12

    def test_the_demo_of_a_directory_has_a_folder_of_its_own_however_often_it_is_looked_for(
        self, tmp_path: Path
    ) -> None:
        plain = find_home(tmp_path, {}, uid=1000)
        demo = find_home(tmp_path, {"LDAP": "demo"}, uid=1000)
        assert demo.data == tmp_path / "var-ldap" and demo.sockets != plain.sockets
        again = {"LDAP": "demo", "TRAINHALL_DATA_DIR": str(demo.data)}  # as the processes of that home are told
        assert find_home(tmp_path, again, uid=1000).data == demo.data

    def test_sockets_fit_into_107_bytes_however_deep_the_checkout(self, tmp_path: Path) -> None:
        deep = tmp_path / ("d" * 60) / ("é" * 60)
        sockets = {find_home(deep / name, {}, uid=1000).sockets for name in ("one", "two")}
        assert len(sockets) == 2
        assert all(len(os.fsencode(folder / ".s.PGSQL.5432")) <= 107 for folder in sockets)

    def test_the_folders_are_private_and_those_above_stay_as_they_were(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o755)
        above = tmp_path / "above"
        above.mkdir(mode=0o700)
        make_home(Home(above / "data", above / "data" / "run"))
        assert mode(above) == 0o700
        assert mode(above / "data") & 0o066 == 0
        for name in ("logs", "files", "run"):
            assert mode(above / "data" / name) == 0o700

    def test_a_socket_folder_that_somebody_else_put_there_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "run").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(CannotStart, match="belongs to somebody else"):
            make_home(Home(tmp_path / "data", tmp_path / "run"))


class TestDataFolder:
    def test_of_another_version(self, tmp_path: Path) -> None:
        home = Home(tmp_path, tmp_path / "run")
        home.postgres.mkdir()
        (home.postgres / "PG_VERSION").write_text("15\n")
        with pytest.raises(CannotStart, match="was written by PostgreSQL 15, but this checkout brings 18"):
            Postgres(home).prepare()

    def test_of_something_else(self, tmp_path: Path) -> None:
        home = Home(tmp_path, tmp_path / "run")
        home.postgres.mkdir()
        (home.postgres / "novel.txt").write_text("It was a dark and stormy night.")
        with pytest.raises(CannotStart, match="is not a PostgreSQL data folder"):
            Postgres(home).prepare()
        assert (home.postgres / "novel.txt").exists()

    def test_without_its_password(self, tmp_path: Path) -> None:
        home = Home(tmp_path, tmp_path / "run")
        home.postgres.mkdir()
        (home.postgres / "PG_VERSION").write_text("18\n")
        with pytest.raises(CannotStart, match="postgres-password is missing"):
            Postgres(home).prepare()


class TestClaims:
    def test_a_port_is_held_from_the_first_moment(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        with claim_port(port):
            with pytest.raises(CannotStart, match=f"Port {port} cannot be used"):
                claim_port(port)
            socket.create_connection(("127.0.0.1", port)).close()  # callers wait, they are not refused

    def test_what_is_accepted_sends_at_once(self) -> None:
        with claim_port(0) as listening, socket.create_connection(listening.getsockname()):
            taken, _address = listening.accept()
            with taken:
                assert taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    def test_a_folder_is_taken_once(self, tmp_path: Path) -> None:
        home = Home(tmp_path, tmp_path / "run")
        handle = claim_folder(home)
        with pytest.raises(CannotStart, match=f"already runs from this folder \\(process {os.getpid()}\\)"):
            claim_folder(home)
        os.close(handle)
        os.close(claim_folder(home))

    def test_the_key_is_made_once_and_kept_privately(self, tmp_path: Path) -> None:
        home = Home(tmp_path, tmp_path / "run")
        key = environment.secret_key(home)
        assert len(key) >= 50
        assert environment.secret_key(home) == key
        assert mode(tmp_path / "secret-key") == 0o600


class TestProcess:
    def test_it_dies_with_whoever_started_it(self, tmp_path: Path) -> None:
        parent = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "import sys, time; from pathlib import Path; from portal.embedded import process\n"
                "p = process.spawn(['sleep', '60'], log=Path(sys.argv[1]), env={'PATH': '/usr/bin:/bin'}, cwd=Path('/'))\n"
                "print(p.pid, flush=True); time.sleep(60)",
                str(tmp_path / "log"),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert parent.stdout is not None
        child = Path("/proc") / parent.stdout.readline().strip() / "cmdline"
        assert child.read_text().startswith("sleep")
        parent.kill()
        parent.wait()
        end = time.monotonic() + 5
        while time.monotonic() < end and child.exists() and child.read_text():
            time.sleep(0.02)
        assert not child.exists() or not child.read_text()  # gone, or a zombie that waits for init

    def test_its_end_takes_its_children_along(self, tmp_path: Path) -> None:
        shell = process.spawn(
            ["sh", "-c", "sleep 60 & echo $!; wait"],
            log=tmp_path / "log",
            env={"PATH": "/usr/bin:/bin"},
            cwd=tmp_path,
        )
        end = time.monotonic() + 5
        while not (tmp_path / "log").read_text().strip() and time.monotonic() < end:
            time.sleep(0.02)
        grandchild = Path("/proc") / (tmp_path / "log").read_text().strip() / "cmdline"
        process.end(shell)
        while time.monotonic() < end and grandchild.exists() and grandchild.read_text():
            time.sleep(0.02)
        assert not grandchild.exists() or not grandchild.read_text()
