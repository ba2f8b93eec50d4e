"""Web, workers, Beat and Flower on this machine, with a person to log in as.  Ctrl-C ends all of it."""

import json
import os
import secrets
import subprocess
import sys

from project.dev import engines, folders, procs

ROOT = folders.ROOT
ACCOUNT = os.path.join(folders.HOME, "up", "account.json")


def main():
    web = address("OUTLAST_WEB_PORT", 8000)
    flower = address("OUTLAST_FLOWER_PORT", 5555)
    account = demo_account()
    manage("migrate", "--verbosity", "0")
    create_superuser(account)
    print(
        "\n  Admin   http://127.0.0.1:%d/admin/   %s / %s"
        "\n  Flower  http://127.0.0.1:%d/         %s / %s"
        '\n\n  In another shell: eval "$(%s -m project.dev.servers env --purpose up)"'
        "\n                    %s manage.py flows list"
        "\n  Nothing runs yet. `make demo INTERACTIVE=1` has a workflow whose approval you answer."
        "\n  Ctrl-C ends everything.\n"
        % (
            web,
            account["name"],
            account["password"],
            flower,
            account["name"],
            account["password"],
            os.path.relpath(sys.executable, ROOT),
            os.path.relpath(sys.executable, ROOT),
        ),
        flush=True,
    )
    procs.run(
        env={
            "LOG_LEVEL": os.environ.get("LOG_LEVEL", "WARNING"),  # a tick a second would push the addresses off the screen
            "WORKER_OPTIONS": "--events",  # for Flower; they cost throughput, so nothing else switches them on
            "WEB_ADDRESS": "127.0.0.1:%d" % web,
            "FLOWER_PORT": str(flower),
            "FLOWER_BASIC_AUTH": "%s:%s" % (account["name"], account["password"]),
        }
    )


def address(variable, usual):
    """The usual port or the next free one; a port that was asked for must be free."""
    if os.environ.get(variable):
        if not os.environ[variable].isdigit():
            raise engines.ServerError("%s must be the number of a port, and is %r." % (variable, os.environ[variable]))
        return engines.check_port(int(os.environ[variable]), variable)
    return next(port for port in range(usual, usual + 100) if engines.can_bind(port))


def demo_account():
    """One account for this checkout, its password made here: an address on loopback is open to every local user."""
    try:
        with open(ACCOUNT) as file:
            return json.load(file)
    except (OSError, ValueError):
        account = {"name": "demo", "password": secrets.token_urlsafe(9)}
        os.makedirs(os.path.dirname(ACCOUNT), exist_ok=True)
        with open(os.open(ACCOUNT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(account, file)
        return account


def create_superuser(account):
    program = (
        "import os; from django.contrib.auth import get_user_model; User = get_user_model()\n"
        "user, _ = User.objects.get_or_create(username=os.environ['DEMO_NAME'], defaults={'email': 'demo@localhost'})\n"
        "user.is_staff = user.is_superuser = True\n"
        "user.check_password(os.environ['DEMO_PASSWORD']) or user.set_password(os.environ['DEMO_PASSWORD'])\n"
        "user.save()\n"
    )
    names = {"DEMO_NAME": account["name"], "DEMO_PASSWORD": account["password"]}
    manage("shell", "--no-imports", "-c", program, env=names)


def manage(*arguments, env=None):
    done = subprocess.run([sys.executable, "manage.py", *arguments], cwd=ROOT, env={**os.environ, **(env or {})})
    if done.returncode:
        sys.exit(done.returncode)


if __name__ == "__main__":
    try:
        main()
    except engines.ServerError as error:
        sys.exit("\n%s" % error)
