"""What went wrong on the way to a host, in our own words; the only place that knows the errors of others."""

import socket

import paramiko
from paramiko.ssh_exception import IncompatiblePeer

from panda.hosts.config import Target
from panda.hosts.host import Host
from panda.hosts.remote import HostError, LoginRefused, Unreachable

NOTHING_TO_TRY = "No authentication methods available"  # paramiko has no class of its own for it
FOREIGN = (paramiko.SSHException, OSError, EOFError, ValueError)


def mapped(host: Host, target: Target, error: BaseException) -> HostError:
    place = f"{target.address} port {target.port}"
    match error:
        case HostError():
            return error
        case paramiko.PasswordRequiredException():
            return LoginRefused(host.name, "the key file needs a passphrase", "add the key to ssh-agent")
        case paramiko.AuthenticationException():
            tried = ", ".join(target.keys) or "the keys of the agent and of ~/.ssh"
            return LoginRefused(
                host.name,
                f"{target.user}@{target.address} accepts none of our keys",
                f"tried {tried}; put a public key into its ~/.ssh/authorized_keys, or name user and key",
            )
        case paramiko.SSHException() if str(error) == NOTHING_TO_TRY:
            return LoginRefused(
                host.name,
                f"there is no key to show to {target.user}@{target.address}",
                "name one in the inventory or in ssh_config, or add one to ssh-agent",
            )
        case paramiko.ChannelException():
            return Unreachable(host.name, f"{place} cannot be reached from its jump host: {error.text}")
        case IncompatiblePeer():
            return Unreachable(host.name, f"no algorithm in common with {place}: {error}")
        case socket.gaierror():
            return Unreachable(host.name, f"the name {target.address} is not known", error.strerror or "")
        case TimeoutError():
            return Unreachable(host.name, f"no answer from {place}", "is the host up?")
        case ConnectionRefusedError():
            return Unreachable(host.name, f"nobody listens at {place}", "does sshd run there?")
        case EOFError():
            return Unreachable(host.name, f"{place} ended the connection")
        case OSError():
            return Unreachable(host.name, f"{place}: {error.strerror or error}")
        case _:
            return Unreachable(host.name, f"{place}: {error}")


def through(host: Host, hop: Host, error: HostError) -> HostError:
    """The failure of a jump host is a failure of the host behind it."""
    return type(error)(host.name, f"its jump host {hop.name}: {error.reason}", error.hint)
