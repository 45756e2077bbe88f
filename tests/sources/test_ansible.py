"""An Ansible inventory becomes hosts, in both spellings, with the variables that Ansible would give them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from panda.hosts.host import Host
from panda.hosts.sources import Form, SourceRefused, read_source, resolve

INI = """\
# the controller's own
bastion.example ansible_port=2200

[brokers]
node[01:03].cluster  ansible_user=alice
node07.cluster:2222  ansible_host=10.0.1.7 ansible_ssh_private_key_file='~/keys/my key'

[clients]
gpu-[a:c]  ansible_python_interpreter=/usr/bin/python3.12

[experiment:children]
brokers
clients

[experiment:vars]
ansible_user=bob
ansible_ssh_common_args='-o ProxyJump=carol@bastion.example:2200 -o ForwardAgent=no'

[clients:vars]
ansible_user = dave
panda_root = /scratch/panda

[all:vars]
ansible_port=22
ntp_server=ntp.example
"""

YAML = """\
all:
  vars: {ansible_port: 22}
  hosts:
    bastion.example: {ansible_port: 2200}
  children:
    experiment:
      vars:
        ansible_user: bob
        ansible_ssh_common_args: -o ProxyJump=carol@bastion.example:2200
        some_secret: !vault |
          $ANSIBLE_VAULT;1.1;AES256
          6162
      children:
        brokers:
          hosts:
            node[01:03].cluster: {ansible_user: alice}
            node07.cluster:
              ansible_host: 10.0.1.7
              ansible_port: 2222
              ansible_ssh_private_key_file: ~/keys/my key
        clients:
          vars: {ansible_user: dave, panda_root: /scratch/panda}
          hosts:
            gpu-[a:c]: {ansible_python_interpreter: /usr/bin/python3.12}
"""
SPELLINGS = pytest.mark.parametrize("text", [INI, YAML], ids=["ini", "yaml"])
JUMP = "carol@bastion.example:2200"


@SPELLINGS
def test_every_host_comes_out_with_its_variables(text: str) -> None:
    hosts = {host.name: host for host in resolve(read_source(text).names(), read_source(text))}
    assert hosts["node02.cluster"] == Host("node02.cluster", "node02.cluster", user="alice", jump=JUMP)
    assert hosts["node07.cluster"] == Host(
        "node07.cluster", "10.0.1.7", 2222, "bob", ("~/keys/my key",), JUMP
    )
    assert hosts["gpu-c"] == Host(
        "gpu-c", "gpu-c", user="dave", jump=JUMP, root="/scratch/panda", python="/usr/bin/python3.12"
    )
    assert hosts["bastion.example"] == Host("bastion.example", "bastion.example", 2200)
    assert len(hosts) == 8


@SPELLINGS
def test_a_topology_may_name_a_host_by_its_address(text: str) -> None:
    (host,) = resolve(["10.0.1.7"], read_source(text))
    assert (host.name, host.address, host.port) == ("10.0.1.7", "10.0.1.7", 2222)


@SPELLINGS
def test_ansible_itself_sees_the_same_hosts_and_variables(text: str, tmp_path: Path) -> None:
    path = tmp_path / ("inventory.yml" if text is YAML else "inventory.ini")
    path.write_text(text.replace("!vault |\n          $ANSIBLE_VAULT;1.1;AES256\n          6162", "x"))
    answer = subprocess.run(
        [Path(sys.executable).with_name("ansible-inventory"), "-i", path, "--list"],
        capture_output=True,
        env={**os.environ, "HOME": str(tmp_path), "ANSIBLE_LOCALHOST_WARNING": "0"},
        check=True,
    )
    theirs = json.loads(answer.stdout)["_meta"]["hostvars"]
    ours = {host.name: host for host in resolve(read_source(text).names(), read_source(text))}
    assert set(theirs) == set(ours)
    for name, variables in theirs.items():
        host = ours[name]
        assert host.user == variables.get("ansible_user", "")
        assert host.port == int(variables["ansible_port"])
        assert host.address == variables.get("ansible_host", name)


def test_further_addresses_of_a_host_can_be_said() -> None:
    source = read_source("[a]\nnode1 ansible_host=login.example panda_aliases=10.0.1.1,10.0.2.1\n")
    (host,) = resolve(["10.0.2.1"], source)
    assert (host.name, host.address) == ("10.0.2.1", "login.example")


def test_a_local_connection_is_a_local_host() -> None:
    (host,) = resolve(["me"], read_source("[a]\nme ansible_connection=local\n"))
    assert host.local


def test_an_old_proxy_command_that_forwards_is_a_jump_host() -> None:
    text = "[a]\nx ansible_ssh_common_args='-o ProxyCommand=\"ssh -p 2222 -W %h:%p -q carol@jump\"'\n"
    (host,) = resolve(["x"], read_source(text))
    assert host.jump == "carol@jump:2222"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[a]\nnode[3:1]\n", "inventory:2:6: a range that ends before it begins"),
        ("[a]\nnode[1:99999999]\n", "more than 65536 hosts"),
        ("[a]\nn[1:300]m[1:300]\n", "more than 65536 hosts"),
        ("[a]\nnode[1-3]\n", "not a range such as 01:20"),
        ("[a]\nnode1 ansible_port=ssh\n", "inventory:2:7: ansible_port: a port is a number"),
        ("[a]\nnode1 ansible_host='{{ x }}'\n", "ansible_host is a template"),
        ("[a]\nnode1 ansible_host=-oProxyCommand=evil\n", "not a host name or address"),
        ("[a]\nnode1 ansible_user='a b'\n", "not a user name"),
        ("[a]\nnode1 ansible_user=$(id)\n", "not a user name"),
        ("[a]\nnode1 ansible_ssh_common_args='-o ProxyCommand=\"nc %h %p\"'\n", "which panda does not run"),
        ("[a]\nnode1 ansible_ssh_common_args='-J `id`'\n", "not a jump host"),
        ("[a]\nnode1 'x\n", "an unbalanced quote"),
        ("[a]\nnode1 verbose\n", "after a host come name=value pairs"),
        ("[a:kids]\nb\n", "inventory:1:1: an unknown kind of section: 'kids'"),
        ("[a:children]\nb\n[b:children]\na\n", "among its own children"),
        ("[a\n", "not a section"),
        ("[a:vars]\nx\n", "write name=value"),
        ("all:\n  hosts: [a, b]\n", "inventory:2:10: not a mapping"),
        ("all:\n  host:\n", "a group has hosts, vars and children"),
        ("all: &x\n  children: *x\n", "stands for nothing that is complete"),
        ("all: {children: {" + "a: {children: {" * 60, "too deep"),
        ("all:\n\t- x\n", "inventory:2:1: not YAML"),
        ("all: {hosts: {a: {ansible_port: 0}}}", "a port is a number"),
    ],
)
def test_a_refusal_has_its_place_and_a_hint(text: str, said: str) -> None:
    form = Form.ANSIBLE_YAML if text.startswith("all") else Form.ANSIBLE_INI
    with pytest.raises(SourceRefused) as refused:
        read_source(text, "inventory", form)
    assert said in str(refused.value)


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(SourceRefused) as refused:
        read_source("[a]\nnode[3:1]\nnode1 ansible_port=0\nb c\n[x:y]\n", "inventory", Form.ANSIBLE_INI)
    assert [problem.line for problem in refused.value.problems] == [2, 4, 5]


def test_a_small_file_cannot_describe_an_endless_tree() -> None:
    levels = "".join(
        f"a{n}: &a{n}\n  children: {{{', '.join(f'b{n}{i}: *a{n - 1}' for i in range(9))}}}\n"
        for n in range(1, 12)
    )
    with pytest.raises(SourceRefused) as refused:
        read_source("a0: &a0\n  hosts: {x: }\n" + levels, "inventory", Form.ANSIBLE_YAML)
    assert "more than" in str(refused.value) or "too large" in str(refused.value)


def test_a_password_in_the_inventory_is_not_remembered() -> None:
    source = read_source("[a]\nnode1 ansible_password=hunter2 ansible_become_pass=hunter3\n")
    assert "hunter" not in repr(source.entries)
