"""Playbooks run for real on hosts, tell what they did in our own words, and take back what they added."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panda.cli.exits import Exit
from panda.hosts.host import Host
from panda.prepare.inventory import CannotPrepare, inventory, ssh_config
from panda.prepare.outcome import Preparation, State, TaskResult, host_results, task_result
from panda.prepare.playbooks import playbook
from panda.prepare.preparation import Wish, environment_for_ansible, prepare
from tests.prepare.panda_command import COMMAND, answer_json, environment, panda
from tests.testbed.bed import Bed
from tests.testbed.keeper import descendants


@pytest.mark.parametrize("name", ["prepare", "teardown"])
def test_a_playbook_is_one(name: str, tmp_path: Path) -> None:
    command = [
        Path(sys.executable).with_name("ansible-playbook"),
        "--syntax-check",
        "-i",
        "x,",
        playbook(name),
    ]
    answer = subprocess.run(command, env=environment(tmp_path), capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_no_role_needs_a_collection() -> None:
    tasks = [path.read_text() for path in playbook("prepare").parent.glob("roles/*/tasks/*.yml")]
    modules = [
        line.split(":")[0].strip() for text in tasks for line in text.splitlines() if ".builtin." in line
    ]
    assert len(modules) > 20
    assert all(module.startswith("ansible.builtin.") for module in modules)


def files_under(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


class Machine:
    """Local hosts under one folder; what needs root is pointed into it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "limits").mkdir()
        self.one = self.host("one", "one/.panda")

    def host(self, name: str, root: str) -> Host:
        return Host(name, local=True, root=str(self.folder / root))

    def run(self, playbook: str, *hosts: Host, check: bool = False) -> Preparation:
        parts = ("directories", "limits") if playbook == "prepare" else ()
        variables = {"panda_limits_folder": str(self.folder / "limits")}
        wish = Wish(playbook, parts, check=check, variables=variables, timeout_s=60)
        return prepare(hosts, wish, [self.folder / "known_hosts"], [])


def test_what_was_added_is_written_down_and_taken_back(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    (tmp_path / "limits" / "others.conf").write_text("")
    untouched = files_under(tmp_path)
    rehearsal = machine.run("prepare", machine.one, check=True)
    assert rehearsal.done, rehearsal
    assert rehearsal.hosts[0].changed > 0
    assert files_under(tmp_path) == untouched

    assert machine.run("prepare", machine.one).done
    marker = json.loads((tmp_path / "one/.panda/prepared.json").read_text())
    assert marker["files"] == [str(tmp_path / "limits/panda.conf")]
    assert "nofile 65536" in (tmp_path / "limits/panda.conf").read_text()
    assert (tmp_path / "one/.panda").stat().st_mode & 0o777 == 0o700

    (tmp_path / "one/.panda/runs/mine").write_text("precious")
    liar = liar_under(tmp_path)
    outcome = machine.run("teardown", machine.one, liar)
    assert outcome.done, outcome
    left = ["one", "one/.panda", "one/.panda/runs", "one/.panda/runs/mine"]
    kept = ["empty", "precious", "liar", "liar/runs"]
    assert files_under(tmp_path) == sorted([*untouched, *left, *kept])


def liar_under(folder: Path) -> Host:
    """A host whose marker claims things that no role adds; they must stay."""
    (folder / "liar").mkdir()
    (folder / "precious").write_text("")
    (folder / "empty").mkdir()
    claims = {
        "files": [str(folder / "precious")],
        "directories": [str(folder / "empty"), str(folder / "liar")],
    }
    (folder / "liar/prepared.json").write_text(json.dumps(claims))
    (folder / "liar/runs").mkdir()
    return Host("liar", local=True, root=str(folder / "liar"))


def test_a_second_time_changes_nothing_and_a_failure_names_host_task_and_reason(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    assert machine.run("prepare", machine.one).hosts[0].changed > 0
    (tmp_path / "file").write_text("")
    broken = machine.host("broken", "file/.panda")
    outcome = machine.run("prepare", machine.one, broken)
    good, bad = outcome.hosts
    assert (good.state, good.changed) == (State.OK, 0)
    assert bad.failure is not None
    assert (bad.state, bad.failure.host) == (State.FAILED, "broken")
    assert "folders" in bad.failure.task
    assert str(tmp_path / "file") in bad.failure.reason
    assert outcome.problem == ""


def test_hosts_are_prepared_over_ssh_and_an_unknown_key_is_refused(bed: Bed, tmp_path: Path) -> None:
    first, stranger, behind = bed.hosts[:3]
    known = tmp_path / "known hosts"
    known.write_text(f"{first.known_hosts_line}\n{behind.known_hosts_line}\n")
    (tmp_path / ".ansible.cfg").write_text("[defaults]\nhost_key_checking = False\n")
    told = {"PANDA_KNOWN_HOSTS": str(known), "PANDA_SSH_CONFIG": "", "ANSIBLE_HOST_KEY_CHECKING": "False"}
    listed = json.loads(bed.inventory_file.read_text())
    for host in bed.hosts:
        listed["all"]["hosts"][host.name]["panda_root"] = f"{host.host.root}/prepared"
    jump = f"{first.user}@{first.address}:{first.port}"
    listed["all"]["hosts"][behind.name]["ansible_ssh_common_args"] = f"-J {jump}"
    (tmp_path / "hosts.yml").write_text(json.dumps(listed))

    hosts = ["--inventory", "hosts.yml", "--host", first.name, "--host", behind.name]
    words = ["--host", stranger.name, "--only", "directories", "--only", "packages", "--json"]
    answer = panda(tmp_path, "prepare", *hosts, *words, **told)
    assert answer.returncode == Exit.UNREACHABLE, answer.stderr
    good, further, bad = answer_json(answer)["hosts"]
    assert [host["state"] for host in (good, further, bad)] == ["changed", "changed", "unreachable"], further
    assert "Host key verification failed" in bad["failure"]["reason"]
    assert f"{first.name}: directories: Make panda's folders: changed" in answer.stderr.splitlines()
    back = panda(tmp_path, "unprepare", *hosts, **told)
    assert back.returncode == Exit.DONE, back.stdout + back.stderr
    assert [line.partition(",")[0] for line in back.stdout.splitlines()] == [
        f"{first.name}: done",
        f"{behind.name}: done",
    ]


def test_an_interruption_leaves_no_process_and_no_folder(bed: Bed, tmp_path: Path) -> None:
    bed.hosts[2].freeze()
    (tmp_path / "tmp").mkdir()
    told = environment(tmp_path, **bed.environment(), TMPDIR=str(tmp_path / "tmp"))
    words = ["prepare", "--inventory", str(bed.inventory_file), "--host", bed.hosts[2].name]
    process = subprocess.Popen(
        [*COMMAND, *words], env=told, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        try:
            children: list[int] = []
            while not any(runs_ssh(pid) for pid in children):
                assert process.poll() is None, process.communicate()
                children = descendants(process.pid)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == Exit.INTERRUPTED
    assert [pid for pid in children if alive(pid)] == []
    assert list((tmp_path / "tmp").iterdir()) == []


def runs_ssh(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() == "ssh"
    except OSError:
        return False


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_part_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    answer = panda(tmp_path, "prepare", "--host", "x", "--only", "everything")
    assert answer.returncode == Exit.REFUSED
    assert "'everything'" in answer.stderr


def test_ansible_is_told_about_jump_hosts_and_keys_and_checks_every_key(tmp_path: Path) -> None:
    host = Host("n1", "10.0.1.1", 2200, "alice", ("/k/a", "/k/b c"), "carol@jump:22,[fe80::1]:2")
    told = json.loads(inventory([host], tmp_path / "cfg", "python"))["all"]["hosts"]["n1"]
    assert told["ansible_host"] == "10.0.1.1"
    assert told["ansible_ssh_extra_args"] == "-i '/k/b c' -J 'carol@jump:22,[fe80::1]:2'"
    text = ssh_config([host], [tmp_path / "known hosts"], [])
    assert text.splitlines()[:3] == [
        "Host *",
        f'  UserKnownHostsFile "{tmp_path}/known hosts"',
        "  StrictHostKeyChecking yes",
    ]
    assert 'Host "jump"' in text
    assert 'Host "fe80::1"' in text


@pytest.mark.parametrize("root", ["{{ lookup('pipe', 'id') }}", "a{% x %}", "{# #}"])
def test_a_value_that_ansible_would_evaluate_is_refused(root: str, tmp_path: Path) -> None:
    with pytest.raises(CannotPrepare):
        inventory([Host("n1", root=root)], tmp_path, "python")


words = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
values = st.recursive(words, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner))
events = st.fixed_dictionaries(
    {
        "event": st.sampled_from(["runner_on_ok", "runner_on_failed", "runner_on_unreachable", "verbose"]),
        "event_data": values
        | st.fixed_dictionaries(
            {},
            optional={
                "host": words,
                "task": words,
                "role": words,
                "ignore_errors": words,
                "res": values | st.fixed_dictionaries({"msg": values, "results": values, "changed": words}),
            },
        ),
    }
)


@given(st.lists(events))
def test_whatever_ansible_reports_becomes_our_values(reported: list[dict[str, object]]) -> None:
    tasks = [task for event in reported if (task := task_result(event))]
    assert all("\n" not in task.reason and len(task.reason) <= 500 for task in tasks)
    failed = {task.host for task in tasks if task.state in (State.FAILED, State.UNREACHABLE)}
    results = host_results(sorted({task.host for task in tasks}), tasks)
    assert {result.host for result in results if result.failure} == failed


def test_the_first_failure_of_a_host_counts() -> None:
    tasks = [TaskResult("a", "t1", State.FAILED, "why"), TaskResult("a", "t2", State.UNREACHABLE)]
    (result, silent) = host_results(["a", "b"], tasks)
    assert result.failure == tasks[0]
    assert silent.failure is None


def test_no_secret_and_no_stray_setting_reaches_ansible() -> None:
    ours = {"PANDA_TOKEN": "hunter2", "ANSIBLE_HOST_KEY_CHECKING": "False", "HOME": "/h", "LC_ALL": "C"}
    theirs = environment_for_ansible(ours)
    assert (theirs["HOME"], theirs["LC_ALL"]) == ("/h", "C.UTF-8")
    assert not {"PANDA_TOKEN", "ANSIBLE_HOST_KEY_CHECKING"} & set(theirs)
