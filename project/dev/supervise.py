"""The parent of the private servers: keeps them while its driver lives, and stops them when it is gone.

Started by servers.py, which talks to it over a pipe, one JSON object a line.  End of file on that pipe means that the
driver ended, by whatever cause (also kill -9), unless it said "detach" before.  If this process itself is killed,
the kernel signals the servers (child.py).  It holds the lock of the data folder for as long as it lives: the lock
says whether anyone owns the folder, so nothing has to be guessed from pid files.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
STOP_SECONDS, SWEEP_SECONDS = 20, 5


class Supervisor:
    def __init__(self, config):
        self.state_path, self.token = config["state"], config.get("token")
        self.servers, self.info, self.detached, self.ending = {}, {}, False, False
        self.driver = os.getppid()
        self.save()

    def run(self):
        wake, self.wake_write = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(self.wake_write, False)
        signal.set_wakeup_fd(self.wake_write)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self.note_end)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # only to wake the loop
        buffer = b""
        while not self.ending:
            watched = [wake] if self.detached else [wake, 0]
            # The timeout is for the second sign of a dead driver: a process that it forked may hold the pipe open.
            readable = select.select(watched, [], [], None if self.detached else 1.0)[0]
            if wake in readable:
                os.read(wake, 4096)
            if 0 in readable:
                chunk = os.read(0, 65536)
                if not chunk:
                    break
                buffer += chunk
                *lines, buffer = buffer.split(b"\n")
                for line in lines:
                    self.answer(json.loads(line))
            if not self.detached and os.getppid() != self.driver:
                break
        self.end()

    def note_end(self, *_):
        self.ending = True

    def answer(self, request):
        try:
            reply = getattr(self, "do_" + request.pop("do"))(**request)
        except (OSError, KeyError) as error:
            reply = {"error": "%s: %s" % (type(error).__name__, error)}
        try:
            os.write(1, json.dumps(reply or {}).encode() + b"\n")
        except OSError:
            self.ending = True  # nobody is listening any more

    # ------------------------------------------------------------------ requests

    def do_start(self, *, name, argv, log, stop, last, become):
        """`stop` is the polite signal, `last` the one before SIGKILL."""
        wrapped = [
            sys.executable,
            "-I",
            "-S",
            os.path.join(HERE, "child.py"),
            "--parent",
            str(os.getpid()),
            "--signal",
            str(stop),
            *become,
            "--",
            *argv,
        ]
        with open(log, "ab") as output:
            process = subprocess.Popen(
                wrapped, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", start_new_session=True
            )
        self.servers[name] = {"process": process, "stop": stop, "last": last}
        self.save()
        return {"pid": process.pid}

    def do_status(self):
        return {name: {"pid": server["process"].pid, "code": server["process"].poll()} for name, server in self.servers.items()}

    def do_stop(self, *, name, force=False):
        server = self.servers[name]
        self.stop([server], force=force)
        self.save()
        return {"code": server["process"].returncode}

    def do_info(self, *, info):
        self.info = info
        self.save()

    def do_detach(self):
        self.detached = True

    # ------------------------------------------------------------------ ending

    def end(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        if self.token:
            sweep(self.token)  # the servers' clients first
        self.stop(list(self.servers.values()))
        try:
            os.unlink(self.state_path)
        except OSError:
            pass

    def stop(self, servers, *, force=False):
        steps = [(signal.SIGKILL, 10)] if force else [(None, STOP_SECONDS), ("last", 3), (signal.SIGKILL, 10)]
        for step, seconds in steps:
            alive = [server for server in servers if server["process"].poll() is None]
            for server in alive:
                number = server["stop"] if step is None else server["last"] if step == "last" else step
                server["process"].send_signal(number)
            deadline = time.monotonic() + seconds
            while alive and time.monotonic() < deadline:
                time.sleep(0.01)
                alive = [server for server in alive if server["process"].poll() is None]
            if not alive:
                return

    def save(self):
        processes = {
            name: identity(server["process"].pid) for name, server in self.servers.items() if server["process"].poll() is None
        }
        state = {"supervisor": identity(os.getpid()), "processes": processes, "info": self.info}
        new = self.state_path + ".new"
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)  # it carries passwords
        with open(descriptor, "w") as file:
            json.dump(state, file, indent=1)
        os.replace(new, self.state_path)


def identity(pid):
    """A pid alone names nobody: with its start time it does."""
    return {"pid": pid, "started": started(pid)}


def started(pid):
    """When the process began, in a form only to be compared; None when there is no such process."""
    try:
        with open("/proc/%d/stat" % pid) as file:
            fields = file.read().rpartition(")")[2].split()
        return None if fields[0] == "Z" else fields[19]
    except OSError:
        if os.path.exists("/proc/self/stat"):
            return None
    asked = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return asked.stdout.decode().strip() or None


def sweep(token):
    """Ends every process whose environment carries the token of this run: nothing that the run started is left."""
    for number, seconds in ((signal.SIGTERM, SWEEP_SECONDS), (signal.SIGKILL, 2)):
        deadline = time.monotonic() + seconds
        found = carriers(token)
        for pid in found:
            try:
                os.kill(pid, number)
            except OSError:
                pass
        while found and time.monotonic() < deadline:
            time.sleep(0.05)
            found = carriers(token)
        if not found:
            return


def carriers(token):
    mark, found = ("OUTLAST_RUN=" + token).encode(), []
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if name.isdigit() and int(name) != os.getpid():
            try:
                with open("/proc/%s/environ" % name, "rb") as file:
                    if mark in file.read().split(b"\0"):
                        found.append(int(name))
            except OSError:  # gone, or another user's
                pass
    return found


if __name__ == "__main__":
    Supervisor(json.loads(sys.argv[1])).run()
