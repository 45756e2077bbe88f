"""Decides which words there are for what can fail: the same as on the command line."""

from __future__ import annotations

from panda.analysis.refusals import AnalysisFailed, AnalysisRefused
from panda.deploy.controller import Displaced
from panda.deploy.crew import HeldByAnother, HostsFailed
from panda.experiment.folder import Locked, RunRefused
from panda.hosts.bundle import BundleRefused
from panda.hosts.loopback import NoNetwork
from panda.hosts.remote import HostError
from panda.hosts.sources.refusal import SourceRefused
from panda.topology.problems import TopologyRefused

KNOWN = (RunRefused, BundleRefused, NoNetwork, HostError, AnalysisRefused, AnalysisFailed, OSError)


def words_of_failure(error: Exception) -> str:
    """What to tell; a failure that nobody foresaw is told as ours."""
    from broker_runtime.client import ClientError

    if isinstance(error, TopologyRefused | SourceRefused):
        return "\n".join(str(problem) for problem in error.problems)
    if isinstance(error, HostsFailed):
        return "\n".join(str(failure) for failure in error.failures)
    if isinstance(error, Locked):
        return f"another controller steers this run: {error.holder}"
    if isinstance(error, Displaced):
        return str(error)
    if isinstance(error, (*KNOWN, ClientError)):
        return str(error)
    return f"internal error: {type(error).__name__}: {error} (please report)"


def held_by(error: Exception) -> str:
    """Who else steers the run, if that is what keeps us from it."""
    if isinstance(error, Locked):
        return error.holder or "another controller"
    if isinstance(error, HostsFailed) and all(isinstance(each, HeldByAnother) for each in error.failures):
        return str(error.failures[0].reason) if error.failures else ""
    return ""
