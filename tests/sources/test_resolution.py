"""Names of a topology find their hosts; hostile input is refused and never does anything else."""

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panda.hosts.host import Host
from panda.hosts.sources import Form, SourceRefused, local_hosts, open_source, read_source, resolve
from panda.hosts.sources.detection import detect
from panda.hosts.sources.ranges import expand_slurm
from tests.sources.test_ansible import INI, YAML
from tests.sources.test_manifest import MANIFEST
from tests.sources.test_ssh_config import CONFIG

SLURM = "node[01-03,07],gpu1,r[1-2]n[08-10]"
SAMPLES = {
    Form.ANSIBLE_INI: INI,
    Form.ANSIBLE_YAML: YAML,
    Form.SSH_CONFIG: CONFIG,
    Form.MANIFEST: MANIFEST,
    Form.SLURM: SLURM,
}


def test_a_slurm_list_is_expanded() -> None:
    assert read_source(SLURM).names() == [
        *("node01", "node02", "node03", "node07", "gpu1"),
        *("r1n08", "r1n09", "r1n10", "r2n08", "r2n09", "r2n10"),
    ]
    assert read_source("a[1-2]\n# more\nb,c\n", form=Form.SLURM).names() == ["a1", "a2", "b", "c"]


@given(st.integers(0, 3000), st.integers(0, 3000), st.integers(0, 6))
def test_a_slurm_range_counts_and_pads(first: int, more: int, width: int) -> None:
    low, high = str(first).zfill(width), str(first + more).zfill(width)
    names = expand_slurm(f"n[{low}-{high}]x")
    padded = len(low) if low.startswith("0") else 0
    assert names == [f"n{str(number).zfill(padded)}x" for number in range(first, first + more + 1)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("node[1-3", "list:1:5: '[' without ']'"),
        ("a,node1]", "']' without '['"),
        ("node[[1-2]]", "a bracket within brackets"),
        ("node[3-1]", "ends before it begins"),
        ("node[001-10]", "different widths"),
        ("node[a-c]", "not a range"),
        ("a,,b", "a host without a name"),
        ("node[0-999999999]", "more than 65536 hosts"),
        ("[1-1000]" * 7, "more than 65536 hosts"),
        (",".join(f"{letter}[1-20000]" for letter in "abcd"), "more than 65536 hosts"),
        ("-oProxyCommand=x", "not a host name"),
    ],
)
def test_a_bad_slurm_list_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(SourceRefused) as refused:
        read_source(text, "list", Form.SLURM)
    assert said in str(refused.value)


@pytest.mark.parametrize("form", list(Form))
def test_a_form_is_recognised_by_its_content(form: Form) -> None:
    assert detect(SAMPLES[form]) is form


@pytest.mark.parametrize(
    ("text", "path", "form"),
    [
        ("a\nb\n", "hosts", Form.ANSIBLE_INI),
        ("a\nb\n", "hosts.yml", Form.ANSIBLE_YAML),
        ("a\n", "/home/me/.ssh/config", Form.SSH_CONFIG),
        ("a,b", "-", Form.SLURM),
        ("node[1:3]", "", Form.ANSIBLE_INI),
        ("", "", Form.ANSIBLE_INI),
    ],
)
def test_a_suffix_helps(text: str, path: str, form: Form) -> None:
    assert detect(text, path) is form


def test_the_form_can_be_said() -> None:
    assert read_source("a[1-2]", "list.yml", Form.SLURM).names() == ["a1", "a2"]


def test_an_unknown_host_is_named_with_the_nearest() -> None:
    with pytest.raises(SourceRefused) as refused:
        resolve(["node1", "nod2", "x"], read_source("node1\nnode2\n", "inv"))
    first, second = refused.value.problems
    assert str(first) == "inv: no host 'nod2' (did you mean node2?)"
    assert "node1, node2" in str(second)


def test_an_address_of_two_hosts_means_neither() -> None:
    source = read_source("[a]\nx ansible_host=10.0.0.1\ny ansible_host=10.0.0.1\n")
    with pytest.raises(SourceRefused, match="ambiguous"):
        resolve(["10.0.0.1"], source)


def test_a_name_comes_before_an_address() -> None:
    source = read_source("[a]\nx ansible_host=y\ny ansible_host=z\n")
    assert resolve(["y"], source)[0].address == "z"


def test_without_a_source_each_host_is_itself_once() -> None:
    assert resolve(["10.0.1.1", "b", "10.0.1.1"]) == [Host("10.0.1.1"), Host("b")]


def test_a_name_that_is_none_is_refused_without_a_source_too() -> None:
    with pytest.raises(SourceRefused):
        resolve(["-oProxyCommand=x", "a b", ""])


def test_local_hosts_have_addresses_and_folders_of_their_own(tmp_path: Path) -> None:
    hosts = local_hosts(["10.0.1.1", "b", "10.0.1.1", "fe80::1", "@9"[1:]], tmp_path)
    assert [host.address for host in hosts.values()] == [f"127.77.0.{n}" for n in range(1, 5)]
    assert all(host.local for host in hosts.values())
    assert hosts["10.0.1.1"].root == str(tmp_path / "10.0.1.1")
    many = local_hosts((f"h{n}" for n in range(65_000)), tmp_path)
    assert (
        len({host.address for host in many.values()}) == len({host.root for host in many.values()}) == 65_000
    )
    assert not any(host.address.endswith((".0", ".255")) for host in many.values())
    with pytest.raises(SourceRefused):
        local_hosts((f"h{n}" for n in range(65_001)), tmp_path)


names = st.text(max_size=30) | st.from_regex(r"[./]{0,4}[A-Za-z0-9_.:%/-]{1,12}", fullmatch=True)


@given(st.lists(names, max_size=6))
def test_no_name_leads_out_of_the_folder(wanted: list[str]) -> None:
    folder = Path("/srv/panda")
    try:
        hosts = local_hosts(wanted, folder)
    except SourceRefused:
        return
    roots = [Path(host.root) for host in hosts.values()]
    assert all(root.parent == folder and ".." not in root.parts and root != folder for root in roots)
    assert len(set(roots)) == len(roots)


HOSTILE = [
    "\0",
    "[",
    "]",
    "*",
    "&a",
    "<!DOCTYPE x [",
    "{{x}}",
    "`id`",
    "$(id)",
    "\u2028",
    "'",
    '"',
    "%",
    "-",
    "=",
    ":",
]


@settings(max_examples=300)
@given(
    st.sampled_from(list(Form)),
    st.lists(st.tuples(st.floats(0, 1), st.sampled_from(HOSTILE) | st.text(max_size=4), st.integers(0, 9))),
    st.sampled_from(list(Form)),
)
def test_whatever_a_source_says_it_is_read_or_refused(
    sample: Form, changes: list[tuple[float, str, int]], form: Form
) -> None:
    text = SAMPLES[sample]
    for place, piece, cut in changes:
        at = int(place * len(text))
        text = text[:at] + piece + text[at + cut :]
    said: list[str] = []
    for chosen in (form, sample, None):
        try:
            source = read_source(text, "input", chosen)
            hosts = resolve(source.names(), source)
        except SourceRefused as error:
            said.append(str(error))
            continue
        for host in hosts:
            for word in (host.where, host.user, host.jump):
                assert not word.startswith("-")
                assert not set(word) & set("\0\n\r `$;|&'\"<>()")
    assert not any("\n" in text for text in said)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for form in Form:
        with contextlib.suppress(SourceRefused):
            read_source(text, "input", form)


def test_what_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "large").write_bytes(b"a\n" * (3 * 2**20))
    for name in ("missing", "binary", "large", "."):
        with pytest.raises(SourceRefused):
            open_source(tmp_path / name)


def test_the_form_may_stand_before_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("nodes.yml").write_text("a[1-2]\n")
    assert open_source(Path("slurm:nodes.yml")).names() == ["a1", "a2"]
    assert open_source(Path("slurm:b[1-2],c")).names() == ["b1", "b2", "c"]
    with pytest.raises(SourceRefused, match="cannot read"):
        open_source(Path("manifest:missing"))


def test_a_list_may_come_through_a_pipe() -> None:
    code = (
        "from pathlib import Path; import panda.hosts.sources as s; print(s.open_source(Path('-')).names())"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], input=b"a[1-2],b\n", capture_output=True, check=True
    )
    assert answer.stdout == b"['a1', 'a2', 'b']\n"


def test_an_inventory_that_is_a_program_is_not_run(tmp_path: Path) -> None:
    path = tmp_path / "inventory.py"
    path.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    path.chmod(0o755)
    with pytest.raises(SourceRefused):
        open_source(path)
    assert not (tmp_path / "ran").exists()
