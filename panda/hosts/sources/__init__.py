"""Where hosts come from: inventories become hosts that a topology's names can be looked up in.

The readers are pure and run nothing. Contacts no host.
"""

from panda.hosts.sources.detection import Form
from panda.hosts.sources.reading import open_source, read_source
from panda.hosts.sources.refusal import Problem, SourceRefused
from panda.hosts.sources.resolution import Hosts, local_hosts, resolve

__all__ = [
    "Form",
    "Hosts",
    "Problem",
    "SourceRefused",
    "local_hosts",
    "open_source",
    "read_source",
    "resolve",
]
