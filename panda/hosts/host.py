"""What is known of a host before anybody has spoken to it; connects to nothing."""

from dataclasses import dataclass

PORT = 22
ROOT = ".panda"


@dataclass(frozen=True, slots=True)
class Host:
    """One machine of a topology. A port of 22 and empty fields leave the word to ssh_config."""

    name: str
    address: str = ""
    port: int = PORT
    user: str = ""
    keys: tuple[str, ...] = ()
    jump: str = ""
    root: str = ROOT
    python: str = "python3"
    local: bool = False

    def __post_init__(self) -> None:
        problems = [
            f"{field} {value!r} has blanks or control characters"
            for field, value in (("name", self.name), ("address", self.address), ("user", self.user))
            if not value.isprintable() or any(letter.isspace() for letter in value)
        ]
        if not self.name:
            problems.append("the name is empty")
        if not 1 <= self.port <= 65535:
            problems.append(f"port {self.port} is not between 1 and 65535")
        problems += [
            f"{field} {value!r} has control characters"
            for field, value in (("root", self.root), ("python", self.python), ("jump", self.jump))
            if not value.isprintable()
        ]
        problems += [f"{field} is empty" for field in ("root", "python") if not getattr(self, field)]
        if problems:
            raise ValueError(f"host {self.name!r}: {'; '.join(problems)}")

    @property
    def where(self) -> str:
        """What a connection asks for: a name for ssh_config and the resolver."""
        return self.address or self.name
