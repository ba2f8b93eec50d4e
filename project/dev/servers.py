"""A private PostgreSQL and Valkey for this checkout, started for a purpose and stopped with whoever asked for them.

    python -m project.dev.servers run   [--purpose test] [--fresh] -- COMMAND ...   both servers around one command
    python -m project.dev.servers start [--purpose bench]     leave them running ...
    python -m project.dev.servers env   [--purpose bench]     ... print their addresses for a shell's eval ...
    python -m project.dev.servers stop  [--purpose bench]     ... and end them
    python -m project.dev.servers status

From Python:

    with servers.running(purpose="chaos", fresh=True) as env:
        env.database_url, env.redis_url, env.pg_pid, env.redis_pid, env.pg_log
        env.kill("redis"); env.start("redis")          # same address, new process

Where DATABASE_URL and REDIS_URL are given, those servers are used and none is started.  Everything lives below
.outlast/PURPOSE/ of the checkout (OUTLAST_HOME: elsewhere); a purpose that is in use gets a second folder, so that
runs do not meet.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import secrets
import select
import shutil
import signal
import subprocess
import sys

from project.dev import engines, folders, supervise
from project.dev.engines import ServerError

START_SECONDS = 60


@dataclasses.dataclass
class Servers:
    """The addresses; and, for servers of our own, the handles to stop, kill and start each."""

    database_url: str = ""
    redis_url: str = ""
    pg_log: str = ""
    redis_log: str = ""
    pg_bin: str = ""
    folder: str = ""
    token: str = ""
    pids: dict = dataclasses.field(default_factory=dict)
    supervisor: "SupervisorPipe | None" = dataclasses.field(default=None, repr=False)
    engines: dict = dataclasses.field(default_factory=dict, repr=False)

    @property
    def pg_pid(self):
        return self.pids.get("postgres")

    @property
    def redis_pid(self):
        return self.pids.get("redis")

    @property
    def owned(self):
        return self.supervisor is not None

    def environ(self):
        values = {"DATABASE_URL": self.database_url, "REDIS_URL": self.redis_url}
        return {**values, "OUTLAST_RUN": self.token} if self.token else values

    def start(self, name):
        """Returns when the server answers.  Same data, same port."""
        self.pids[name] = self.supervisor.start(self.engines[name])
        return self.pids[name]

    def stop(self, name):
        """In an orderly way, as at a deploy; returns when the process is gone."""
        self.supervisor.ask("stop", name=name)

    def kill(self, name):
        """SIGKILL, as the OOM killer does it; returns when the process is gone."""
        self.supervisor.ask("stop", name=name, force=True)

    def restart(self, name):
        self.stop(name)
        return self.start(name)


class SupervisorPipe:
    """The line to the process that the servers are children of."""

    def __init__(self, folder, lock, token):
        self.token = token
        config = {"state": os.path.join(folder, "state.json"), "token": token}
        with open(os.path.join(folder, "supervisor.log"), "ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", supervise.__file__, json.dumps(config)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=engines.clean_environment(),
                cwd="/",
                pass_fds=[lock],
                start_new_session=True,
            )

    def ask(self, do, **request):
        try:
            self.process.stdin.write(json.dumps({"do": do, **request}).encode() + b"\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except OSError:
            answer = b""
        if not answer:
            raise ServerError("the process that keeps the servers has ended.")
        reply = json.loads(answer)
        if "error" in reply:
            raise ServerError(reply["error"])
        return reply

    def start(self, engine):
        with open(engine.log, "ab") as log:
            since = log.tell()
        pid = self.ask(
            "start",
            name=engine.name,
            argv=engine.argv(),
            log=engine.log,
            stop=int(engine.stop),
            last=int(engine.last),
            become=list(engine.become),
        )["pid"]
        ended = []

        def settled():
            ended[:] = [self.ask("status")[engine.name]["code"]]
            return ended[0] is not None or engine.is_ready(pid)

        if not engines.wait_until(settled, START_SECONDS):
            text = "%s does not answer after %d s; its log is %s."
            raise ServerError(text % (engine.name, START_SECONDS, engine.log))
        if ended[0] is not None:
            raise ServerError("%s could not be started: %s" % (engine.name, engine.explain(since)))
        return pid

    def close(self):
        """Ends the servers and everything that carries this run's token."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        supervise.sweep(self.token)  # the supervisor has done it, unless it was killed


# ---------------------------------------------------------------------- for Python


@contextlib.contextmanager
def running(purpose="test", *, fresh=False, single=False, given=True, shared_buffers="256MB"):
    """Both servers, for as long as the block lasts.

    `fresh`: with empty data.  `single`: this purpose may run once only in a checkout.  `given=False`: servers of our
    own even if DATABASE_URL and REDIS_URL are set, for tests that kill them.
    """
    found = {name: os.environ.get(name, "") if given else "" for name in ("DATABASE_URL", "REDIS_URL")}
    if all(found.values()):
        yield Servers(database_url=found["DATABASE_URL"], redis_url=found["REDIS_URL"])
        return
    lock, folder = folders.claim(purpose, single)
    servers = open_servers(lock, folder, found, fresh, shared_buffers)
    try:
        yield servers
    finally:
        servers.supervisor.close()


def open_servers(lock, folder, found, fresh, shared_buffers):
    """Takes over the lock of the folder."""
    pipe = None
    try:
        folders.settle_leftovers(folder)
        folders.check_room(folder)
        wanted = []
        if not found["DATABASE_URL"]:
            wanted.append(engines.Postgres(folder, shared_buffers))
        if not found["REDIS_URL"]:
            wanted.append(engines.Valkey(folder))
        for engine in wanted:
            engine.prepare(fresh=fresh)
        token = secrets.token_hex(8)
        pipe = SupervisorPipe(folder, lock, token)
        servers = Servers(
            database_url=found["DATABASE_URL"],
            redis_url=found["REDIS_URL"],
            folder=folder,
            token=token,
            supervisor=pipe,
            engines={engine.name: engine for engine in wanted},
        )
        for engine in wanted:
            servers.pids[engine.name] = start_on_a_port(pipe, engine)
            setattr(servers, "database_url" if engine.name == "postgres" else "redis_url", engine.url())
            setattr(servers, "pg_log" if engine.name == "postgres" else "redis_log", engine.log)
            servers.pg_bin = getattr(engine, "bin", servers.pg_bin)
        pipe.ask("info", info=servers.environ() | {"pg_log": servers.pg_log, "pg_bin": servers.pg_bin})
        return servers
    except BaseException:
        if pipe:
            pipe.close()
        raise
    finally:
        os.close(lock)  # from here on it is the supervisor that holds it


def start_on_a_port(pipe, engine):
    """A free port can be taken between the look and the start: then another one."""
    for attempt in range(5):
        engine.choose_port()
        try:
            return pipe.start(engine)
        except ServerError as error:
            if "was taken" not in str(error) or attempt == 4:
                raise
    return None


# ---------------------------------------------------------------------- for a shell


def run(options):
    wanted = {"fresh": options.fresh, "single": options.single, "shared_buffers": options.shared_buffers}
    with running(options.purpose, **wanted) as env:
        return run_command(options.command, {**os.environ, **env.environ()})


def run_command(command, environment):
    """The command's exit code.  It is told when this process, or the one above it (make), ends."""
    above = os.getppid()
    program = shutil.which(command[0])
    if not program:
        raise ServerError("%s: no such command." % command[0])
    # Ctrl-C reaches the command by itself, in the terminal's foreground group; what the command answers decides.
    # (A handler, not SIG_IGN: that the command would inherit.)
    signal.signal(signal.SIGINT, lambda *_: None)
    wrapper = engines.child("--signal", str(int(signal.SIGTERM)), "--", os.path.abspath(program), *command[1:])
    process = subprocess.Popen(wrapper, env=environment)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: process.terminate())
    while not ended_within(process, 1.0):
        if os.getppid() != above:
            process.terminate()
            if not ended_within(process, 30.0):
                process.kill()
            break
    code = process.wait()
    return code if code >= 0 else 128 - code


def ended_within(process, seconds):
    """Without the polling of Popen.wait(timeout=...), which would cost an idle system some of its rest."""
    if not hasattr(os, "pidfd_open"):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        return process.poll() is not None
    if process.poll() is None:
        descriptor = os.pidfd_open(process.pid)
        try:
            select.select([descriptor], [], [], seconds)
        finally:
            os.close(descriptor)
    return process.poll() is not None


def start(options):
    state = folders.running_state(options.purpose)
    if not state:
        lock, folder = folders.claim(options.purpose, single=True)
        nothing = {"DATABASE_URL": "", "REDIS_URL": ""}
        servers = open_servers(lock, folder, nothing, options.fresh, options.shared_buffers)
        servers.supervisor.ask("detach")
        state = folders.read_state(folder)
    print_addresses(state)
    return 0


def stop(options):
    folder = os.path.join(folders.HOME, options.purpose)
    keeper = folders.read_state(folder).get("supervisor", {})
    if not keeper or not folders.is_running(keeper):
        print("No servers for '%s' are running." % options.purpose, file=sys.stderr)
        return 0
    os.kill(keeper["pid"], signal.SIGTERM)
    if not engines.wait_until(lambda: not folders.is_running(keeper), 40):
        raise ServerError("they do not end; see %s." % folder)
    return 0


def env(options):
    state = folders.running_state(options.purpose)
    if not state:
        raise ServerError("no servers for '%s' are running; start them first." % options.purpose)
    print_addresses(state)
    return 0


def status(_options):
    for purpose in sorted(os.listdir(folders.HOME)) if os.path.isdir(folders.HOME) else ():
        state = folders.running_state(purpose)
        if state:
            pids = {name: process["pid"] for name, process in state["processes"].items()}
            print("%s: supervisor %d, %s" % (purpose, state["supervisor"]["pid"], pids))
    return 0


def print_addresses(state):
    for name in ("DATABASE_URL", "REDIS_URL"):
        print("export %s='%s'" % (name, state["info"][name]))


def main():
    parser = argparse.ArgumentParser(prog="servers", description="A private PostgreSQL and Valkey for this checkout.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    for function in (run, start, env, stop, status):
        verb = verbs.add_parser(function.__name__)
        verb.set_defaults(function=function)
        verb.add_argument("--purpose", default="test" if function is run else "bench")
        if function in (run, start):
            verb.add_argument("--fresh", action="store_true", help="with empty data")
            verb.add_argument("--single", action="store_true", help="refuse where this purpose is already running")
            verb.add_argument("--shared-buffers", default="256MB")
        if function is run:
            verb.add_argument("command", nargs="+", metavar="-- COMMAND")
    options = parser.parse_args()
    try:
        code = options.function(options)
    except ServerError as error:
        sys.exit("\nServers: %s" % error)
    except OSError as error:
        sys.exit("\nServers: %s%s" % (error, " (the disk is full)" if error.errno == 28 else ""))
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(code)


if __name__ == "__main__":
    main()
