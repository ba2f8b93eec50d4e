"""Runs the processes of the Procfile: each in a session of its own, none of them outliving this one.

    python -m project.dev.procs [NAME ...]        all, or those named; until Ctrl-C, restarting what ends

From Python, for a demonstration or a test that kills:

    with procs.Procs(env={...}, log_dir=...) as running:
        worker = running.start("worker")               # a Process: pid, log, is_alive()
        other = running.start("worker", name="worker2", env={"WORKER_NAME": "worker2"})
        worker.wait_for("ready.", seconds=20)          # a line in its log
        worker.kill()                                  # SIGKILL to it and its children; group=False: to it alone
        running.start("worker")                        # once more, into the same log
        worker.stop()                                  # TERM, then KILL after the grace
"""

import contextlib
import os
import re
import selectors
import signal
import subprocess
import sys
import time

from project.dev import engines

ROOT = os.path.dirname(os.path.dirname(engines.HERE))
GRACE = 25  # longer than Celery's soft shutdown timeout
BACKOFF_LONGEST, BACKOFF_FORGOTTEN_AFTER = 30, 60
COLOURS = ("36", "33", "32", "35", "34")


class Process:
    """One started process."""

    def __init__(self, name, popen, log=None, offset=0):
        self.name, self.popen, self.log, self.offset = name, popen, log, offset
        self.group_ended = False

    @property
    def pid(self):
        return self.popen.pid

    def is_alive(self):
        return self.popen.poll() is None

    def signal(self, number, *, group=False):
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if group else os.kill)(self.pid, number)

    def kill(self, *, group=True):
        """As the OOM killer or a power cut would; returns when it is gone."""
        if group:
            self.end_group()
        elif self.is_alive():
            self.signal(signal.SIGKILL)
        self.popen.wait()

    def end_group(self):
        """What it started stays in its group, also when it is gone itself.  Once: later the number may be another's."""
        if not self.group_ended:
            self.group_ended = True
            self.signal(signal.SIGKILL, group=True)

    def stop(self, grace=GRACE):
        """Returns the exit code."""
        if self.is_alive():
            self.signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self.popen.wait(grace)
        self.kill()
        return self.popen.returncode

    def output(self):
        """What it has written since this start."""
        with open(self.log, errors="replace") as file:
            file.seek(self.offset)
            return file.read()

    def wait_for(self, pattern, seconds=30):
        """Waits for a line of its log; raises if it does not come or the process ends."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            alive = self.is_alive()
            found = re.search(pattern, self.output())
            if found:
                return found
            if not alive:
                break
            time.sleep(0.02)
        raise TimeoutError(
            "%s: no '%s' in its log within %s s (%s). It ends with:\n%s"
            % (
                self.name,
                pattern,
                seconds,
                "running" if self.is_alive() else "ended, code %s" % self.popen.returncode,
                "\n".join(self.output().splitlines()[-15:]),
            )
        )


class Procs:
    """The processes of a Procfile, started by name; leaving the `with` block stops them all."""

    def __init__(self, procfile="Procfile", env=None, log_dir=None):
        self.commands = read_procfile(os.path.join(ROOT, procfile))
        self.env = {**os.environ, **(env or {})}
        # The environment's own commands first: `celery` is this checkout's, whatever the PATH says.
        self.env["PATH"] = os.path.dirname(sys.executable) + os.pathsep + self.env.get("PATH", os.defpath)
        self.log_dir, self.processes = log_dir, {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self, process_type, name=None, env=None):
        """Starts it; its output goes to log_dir/NAME.log, or into a pipe where there is no log_dir."""
        name = name or process_type
        environment = {**self.env, "PYTHONUNBUFFERED": "1", **(env or {})}
        path = os.path.join(self.log_dir, name + ".log") if self.log_dir else None
        if path:
            os.makedirs(self.log_dir, exist_ok=True)
        with open(path, "ab") if path else contextlib.nullcontext(subprocess.PIPE) as output:
            offset = os.fstat(output.fileno()).st_size if path else 0
            popen = spawn(self.commands[process_type], environment, output)
        self.processes[name] = Process(name, popen, path, offset)
        return self.processes[name]

    def stop(self, grace=GRACE):
        """All at once: TERM, and KILL for what is left after the grace."""
        alive = [process for process in self.processes.values() if process.is_alive()]
        for process in alive:
            process.signal(signal.SIGTERM)
        deadline = time.monotonic() + grace
        for process in alive:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.popen.wait(max(0.0, deadline - time.monotonic()))
        for process in self.processes.values():
            process.kill()


def read_procfile(path):
    with open(path) as file:
        lines = [line.strip() for line in file]
    pairs = [line.split(":", 1) for line in lines if line and not line.startswith("#")]
    return {name.strip(): command.strip() for name, command in pairs}


def spawn(command, environment, output):
    """`exec`, so that the pid is the process's own and not a shell's; child.py, so that it dies with this one."""
    wrapper = engines.child("--signal", str(int(signal.SIGKILL)), "--", "/bin/sh", "-c", "exec " + command)
    return subprocess.Popen(
        wrapper,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        cwd=ROOT,
        env=environment,
        start_new_session=True,
    )


# ---------------------------------------------------------------------- in a terminal


class Runner:
    """Shows the output of all, and starts again what ends, later each time that it ends soon."""

    def __init__(self, procs, names):
        self.procs, self.names = procs, names
        self.selector, self.due, self.begun, self.waits = selectors.DefaultSelector(), {}, {}, {}
        self.width = max(map(len, names))
        self.ending = False
        self.wake, self.wake_write = os.pipe()

    def run(self):
        above = os.getppid()
        for end in (self.wake, self.wake_write):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self.wake_write)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # so that the end of a process wakes the loop, too
        self.selector.register(self.wake, selectors.EVENT_READ)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self.note_end)
        for name in self.names:
            self.begin(name)
        while not self.ending and os.getppid() == above:
            # Below a second, for restarts that are due and for a parent that is gone.
            self.look(0.5 if self.due else 1.0)
            now = time.monotonic()
            for name in [name for name, moment in self.due.items() if moment <= now]:
                del self.due[name]
                self.begin(name)
        self.say("outlast", "stopping ...")
        self.end()

    def note_end(self, *_):
        if self.ending:  # asked twice: at once
            for process in self.procs.processes.values():
                process.end_group()
        self.ending = True

    def begin(self, name):
        process = self.procs.start(name)
        self.begun[name] = time.monotonic()
        os.set_blocking(process.popen.stdout.fileno(), False)
        self.selector.register(process.popen.stdout, selectors.EVENT_READ, [name, b""])

    def look(self, seconds):
        for key, _ in self.selector.select(timeout=seconds):
            if key.fileobj == self.wake:
                os.read(self.wake, 4096)
            else:
                self.pass_on(key)
        for process in self.procs.processes.values():
            if not process.is_alive():
                # Its children, orphans now, would keep its output open and hold up its new start.
                process.end_group()

    def pass_on(self, key):
        name, rest = key.data
        chunk = os.read(key.fd, 65536)
        if chunk:
            *lines, key.data[1] = (rest + chunk).split(b"\n")
            for line in lines:
                self.say(name, line.decode(errors="replace"))
            return
        self.selector.unregister(key.fileobj)
        key.fileobj.close()
        process = self.procs.processes[name]
        process.kill()  # its output is closed, so it is ending; its children go with it
        if not self.ending:
            lived = time.monotonic() - self.begun[name]
            wait = 0 if lived > BACKOFF_FORGOTTEN_AFTER else self.waits.get(name, 0)
            self.waits[name] = min(max(1, 2 * wait), BACKOFF_LONGEST)
            self.due[name] = time.monotonic() + wait
            self.say(
                name,
                "ended with code %s; starting it again%s" % (process.popen.returncode, " in %d s" % wait if wait else ""),
            )

    def end(self):
        """The last lines of each are shown, too."""
        for process in self.procs.processes.values():
            process.signal(signal.SIGTERM)
        deadline = time.monotonic() + GRACE
        while len(self.selector.get_map()) > 1 and time.monotonic() < deadline:
            self.look(0.5)
        self.procs.stop(grace=0)

    def say(self, name, text):
        if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
            colour = COLOURS[self.names.index(name) % len(COLOURS)] if name in self.names else "1"
            print("\033[%sm%s |\033[0m %s" % (colour, name.ljust(self.width), text), flush=True)
        else:
            print("%s | %s" % (name.ljust(self.width), text), flush=True)


def run(names=None, env=None):
    """Returns when it was asked to stop and all have ended."""
    procs = Procs(env=env)
    unknown = set(names or ()) - set(procs.commands)
    if unknown:
        sys.exit("Procfile has no %s; it has: %s" % (", ".join(sorted(unknown)), ", ".join(procs.commands)))
    Runner(procs, list(names or procs.commands)).run()


if __name__ == "__main__":
    run(sys.argv[1:])
