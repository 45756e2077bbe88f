"""An ssh_config becomes hosts as ssh itself would see them; nothing in it is run."""

import shutil
import subprocess
from pathlib import Path

import pytest

from panda.hosts.sources import Form, SourceRefused, open_source, read_source, resolve

CONFIG = """\
Host bastion
    HostName bastion.example.org
    Port 2222
    User carol

Host node* !node9 gpu?
    User=alice
    IdentityFile ~/.ssh/cluster
    ProxyJump carol@bastion.example.org:2222,second

Host node1
    HostName 10.0.1.1
    User ignored
    IdentityFile "~/.ssh/the other"

Host old
    HostName %h.example.org
    ProxyCommand ssh -q -W %h:%p carol@bastion

Host *
    Port 2022
    IdentityFile none

Match exec "touch /tmp/never"
    Port 1
"""


def test_a_host_has_what_its_patterns_say() -> None:
    (host,) = resolve(["node1"], read_source(CONFIG))
    assert (host.address, host.port, host.user) == ("10.0.1.1", 2022, "alice")
    assert host.keys == ("~/.ssh/cluster", "~/.ssh/the other")
    assert host.jump == "carol@bastion.example.org:2222,second"


def test_a_name_that_only_a_pattern_matches_is_known() -> None:
    hosts = resolve(["node77", "gpu1"], read_source(CONFIG))
    assert [(host.name, host.address, host.user) for host in hosts] == [
        ("node77", "node77", "alice"),
        ("gpu1", "gpu1", "alice"),
    ]


@pytest.mark.parametrize("name", ["node9", "elsewhere", "gpu12"])
def test_a_name_that_only_the_star_matches_is_not_known(name: str) -> None:
    with pytest.raises(SourceRefused, match=f"no host '{name}'"):
        resolve([name], read_source(CONFIG))


def test_an_address_finds_its_host() -> None:
    (host,) = resolve(["10.0.1.1"], read_source(CONFIG))
    assert (host.name, host.address, host.user) == ("10.0.1.1", "10.0.1.1", "alice")


def test_a_forwarding_proxy_command_is_a_jump_host() -> None:
    (host,) = resolve(["old"], read_source(CONFIG))
    assert (host.address, host.jump) == ("old.example.org", "carol@bastion")


@pytest.mark.parametrize("name", ["node1", "node77", "bastion", "old"])
def test_ssh_itself_says_the_same(name: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(CONFIG.partition("Match exec")[0])
    ssh = shutil.which("ssh")
    assert ssh is not None
    answer = subprocess.run([ssh, "-G", "-F", path, name], capture_output=True, text=True, check=True)
    theirs = dict(line.split(" ", 1) for line in answer.stdout.splitlines())
    (host,) = resolve([name], open_source(path))
    assert theirs["hostname"] == host.address
    assert int(theirs["port"]) == host.port
    assert host.user in ("", theirs["user"])
    if name != "old":
        assert theirs.get("proxyjump", "") == host.jump


def test_included_files_are_read_and_may_not_include_themselves(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("Host a\n  Include more/*.conf\n  Port 7\n")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "x.conf").write_text("User eve\nHost b\n  User bob\n")
    a, b = resolve(["a", "b"], open_source(tmp_path / "config"))
    assert (a.user, a.port, b.user, b.port) == ("eve", 7, "bob", 22)
    (tmp_path / "more" / "x.conf").write_text("Include x.conf ../config more/x.conf\n")
    with pytest.raises(SourceRefused, match="included more than"):
        open_source(tmp_path / "config")


def test_a_host_that_cannot_be_used_is_refused_when_it_is_asked_for() -> None:
    text = "Host a\n  ProxyCommand nc %h %p\nHost b\n  Port 2200\nHost c\n Port ssh\n"
    source = read_source(text, "config")
    assert resolve(["b"], source)[0].port == 2200
    with pytest.raises(SourceRefused) as refused:
        resolve(["a", "c"], source)
    assert [problem.line for problem in refused.value.problems] == [2, 6]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('Host "a\n', "config:1:1: not a line of ssh_config"),
        ("Host\n", "not a line of ssh_config"),
        ("Host -oProxyCommand=x\n", "not a host name or address"),
        ("Host " + "a" * 2000 + "\n", "longer than"),
        ("Host a\n" * 5000, "more than 4096 host patterns"),
    ],
)
def test_a_refusal_says_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(SourceRefused) as refused:
        read_source(text, "config", Form.SSH_CONFIG)
    assert said in str(refused.value)


def test_a_pattern_full_of_stars_costs_little() -> None:
    source = read_source(f"Host {'*a' * 400}b\n", "config", Form.SSH_CONFIG)
    with pytest.raises(SourceRefused, match="no host"):
        resolve(["a" * 250], source)
