"""A GENI or CloudLab manifest becomes hosts that an experiment's own addresses lead to."""

import pytest

from panda.hosts.sources import SourceRefused, read_source, resolve

MANIFEST = """\
<?xml version="1.0" encoding="UTF-8"?>
<rspec xmlns="http://www.geni.net/resources/rspec/3" type="manifest"
       xmlns:emulab="http://www.protogeni.net/resources/rspec/ext/emulab/1">
  <node client_id="node-0" component_id="urn:publicid:IDN+emulab.example+node+pc1" exclusive="true">
    <sliver_type name="raw"/>
    <emulab:vnode name="pc1"/>
    <interface client_id="node-0:if0" mac_address="02aabbccddee">
      <ip address="10.10.1.1" type="ipv4" netmask="255.255.255.0"/>
    </interface>
    <interface client_id="node-0:if1"><ip address="10.10.2.1" type="ipv4"/></interface>
    <services>
      <login authentication="ssh-keys" hostname="pc1.emulab.example" port="22" username="alice"/>
      <login authentication="ssh-keys" hostname="pc1.emulab.example" port="22" username="bob"/>
    </services>
    <host name="node-0.exp.proj.emulab.example" ipv4="155.98.36.1"/>
  </node>
  <node client_id="vm-1">
    <services>
      <login authentication="ssh-keys" hostname="host7.example" port="30010" username="alice"/>
    </services>
    <interface client_id="vm-1:if0"><ip address="10.10.1.2" type="ipv4"/></interface>
  </node>
  <node client_id="switch"><services/></node>
  <link client_id="lan"><interface_ref client_id="node-0:if0"/></link>
</rspec>
"""


@pytest.mark.parametrize("name", ["node-0", "10.10.1.1", "10.10.2.1", "155.98.36.1", "pc1.emulab.example"])
def test_every_address_of_a_node_leads_to_its_login(name: str) -> None:
    (host,) = resolve([name], read_source(MANIFEST))
    assert (host.name, host.address, host.port, host.user) == (name, "pc1.emulab.example", 22, "alice")


def test_a_virtual_machine_has_a_port_of_its_own() -> None:
    (host,) = resolve(["10.10.1.2"], read_source(MANIFEST))
    assert (host.address, host.port) == ("host7.example", 30010)


def test_of_several_logins_the_asked_user_gets_his() -> None:
    (host,) = resolve(["node-0"], read_source(MANIFEST, user="bob"))
    assert host.user == "bob"


def test_a_node_without_a_login_is_no_host() -> None:
    with pytest.raises(SourceRefused, match="no host 'switch'"):
        resolve(["switch"], read_source(MANIFEST))


BOMB = """<?xml version="1.0"?>
<!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol1 "&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;">]>
<rspec><node client_id="&lol1;"/></rspec>"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BOMB, "m:2:16: a document type or entity declaration"),
        ('<!DOCTYPE rspec SYSTEM "http://127.0.0.1:1/x.dtd"><rspec/>', "document type"),
        ("<rspec><node>", "m:1:14: not well-formed XML"),
        ('<rspec type="request"/>', "not a manifest"),
        ("<html/>", "not an <rspec>"),
        ("<rspec>" + "<a>" * 100, "nested more than"),
        ("<rspec><node/></rspec>", "a host without a name"),
        ('<rspec><node client_id="a"/><node client_id="a"/></rspec>', "appears twice"),
        ('<rspec><node client_id="a"><login hostname="-x"/></node></rspec>', "not a host name"),
        ('<rspec><node client_id="a"><login hostname="x" port="99999"/></node></rspec>', "login port"),
        ('<rspec><node client_id="a"><login hostname="x" username="a;b"/></node></rspec>', "not a user name"),
        ('<rspec><node client_id="a"><ip address="a b"/></node></rspec>', "not a host name or address"),
    ],
)
def test_a_refusal_says_what_and_where(text: str, said: str) -> None:
    with pytest.raises(SourceRefused) as refused:
        read_source(text, "m")
    assert said in str(refused.value)


def test_a_declared_encoding_cannot_hide_anything() -> None:
    with pytest.raises(SourceRefused, match="document type"):
        read_source('<?xml version="1.0" encoding="utf-16"?><!DOCTYPE x []><rspec/>')
