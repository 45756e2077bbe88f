"""`python -m tests.testbed up --hosts 20`: a bed for a person, until ^C."""

import argparse
import json
import signal
import sys
import tempfile
from pathlib import Path

from tests.testbed.keeper import keep

USAGE = """\
{count} hosts are up ({kind}), {first} to {last}, user {user}.

  export PANDA_KNOWN_HOSTS={folder}/known_hosts
  panda doctor --inventory {folder}/inventory.yml

  {folder}/inventory.yml   for panda and Ansible
  {folder}/ssh_config      ssh -F {folder}/ssh_config h1

^C takes everything down.
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.testbed")
    parser.add_argument("verb", choices=["up", "keep"])
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--kind", default="", choices=["", "namespaces", "networked", "loopback"])
    parser.add_argument("--options", type=json.loads, default={}, help="more lines of sshd_config, as JSON")
    parser.add_argument("--remove", action="store_true", help="remove the folder at the end")
    told = parser.parse_args()
    if told.verb == "keep":
        keep(told.hosts, told.folder, told.kind, told.options, remove=told.remove)
    else:
        up(told)


def up(told: argparse.Namespace) -> None:
    from tests.testbed.bed import Bed

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = told.folder or Path(tempfile.mkdtemp(prefix="panda-bed-"))
    remove = told.remove or told.folder is None
    try:
        with Bed(told.hosts, folder, kind=told.kind, options=told.options, remove=remove) as bed:
            first, last = bed.hosts[0], bed.hosts[-1]
            fields = {"first": first.address, "last": last.address, "user": first.user, "folder": folder}
            print(USAGE.format(count=len(bed.hosts), kind=bed.kind, **fields), flush=True)
            signal.pause()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
