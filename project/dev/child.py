"""Become the given command, in such a way that it cannot outlive its parent.

    python -I -S child.py --parent PID --signal N [--as namespace | --as UID:GID [--reach]] -- /PATH/COMMAND ARG...

The kernel sends the signal when the parent dies, however it dies (Linux; elsewhere this part is left out).

PostgreSQL refuses to run as root.  For root there are two ways to start it that change nobody's permissions:
`namespace` enters a user namespace in which root's own files belong to an ordinary user id, and `UID:GID` gives
up root for another system user; `--reach` then keeps the single capability to pass through folders that are closed
to that user (a checkout below /root).
"""

import ctypes
import os
import pwd
import struct
import sys

PR_SET_PDEATHSIG, PR_SET_KEEPCAPS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 1, 8, 47, 2
CLONE_NEWUSER = 0x10000000
CAP_DAC_OVERRIDE = 1
CAPABILITY_VERSION_3 = 0x20080522


def main(arguments):
    split = arguments.index("--")
    options, command = arguments[:split], arguments[split + 1 :]
    parent = int(options[options.index("--parent") + 1])
    signal = int(options[options.index("--signal") + 1])
    if "--as" in options:
        become(options[options.index("--as") + 1], "--reach" in options)
    if sys.platform == "linux":
        # After the change of user, which would clear it.
        call("prctl", PR_SET_PDEATHSIG, signal, 0, 0, 0)
    if os.getppid() != parent:  # it died before the kernel was told to watch it
        sys.exit(1)
    os.execv(command[0], command)  # an absolute path: as another user even a search could fail


def become(who, reach):
    if who == "namespace":
        enter_namespace()
        return
    uid, gid = map(int, who.split(":"))
    if reach:
        call("prctl", PR_SET_KEEPCAPS, 1, 0, 0, 0)
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)
    if reach:
        keep_only_reach()


def enter_namespace():
    outside_uid, outside_gid = os.getuid(), os.getgid()
    someone = next(entry for entry in pwd.getpwall() if entry.pw_uid > 0)
    call("unshare", CLONE_NEWUSER)
    write("/proc/self/setgroups", "deny")  # the kernel's condition for mapping a group
    write("/proc/self/uid_map", "%d %d 1" % (someone.pw_uid, outside_uid))
    write("/proc/self/gid_map", "%d %d 1" % (someone.pw_gid or 65534, outside_gid))


def keep_only_reach():
    header = struct.pack("=Ii", CAPABILITY_VERSION_3, 0)
    sets = struct.pack("=6I", *([1 << CAP_DAC_OVERRIDE] * 3), 0, 0, 0)
    call("capset", header, sets)
    call("prctl", PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_OVERRIDE, 0, 0)


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def call(name, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    words = [ctypes.c_ulong(value) if isinstance(value, int) else value for value in arguments]
    if getattr(libc, name)(*words) != 0:
        number = ctypes.get_errno()
        raise OSError(number, "%s: %s" % (name, os.strerror(number)))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except OSError as error:
        sys.exit("%s: %s" % (os.path.basename(__file__), error))
