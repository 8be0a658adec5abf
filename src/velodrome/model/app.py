"""A user's own app, as what is served in place of a recipe."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from velodrome.guest.recipe import Recipe
from velodrome.model.request import Request
from velodrome.model.third_party import ThirdParty


@dataclass(frozen=True)
class App:
    """What is served: where it is found, how it is called, in what it runs, and what is asked of it.

    Plain data that is stored with every result, so it holds names of environment variables and of headers that its user
    gives, and never their values: these may be secrets, and are the lab's (`run/lab.py`).
    """

    path: str
    """`module:attribute`, as its user wrote it; over Django the settings module or its `wsgi.py`."""
    interface: str
    """How servers call it: name of an interface, such as `wsgi`; stacks of that interface can serve it. Of a Django
    site, which has two, the first; `interfaces` are all."""
    python: str
    """Path of its interpreter."""
    cwd: str
    """Folder it runs in; first on its import path."""
    requests: tuple[Request, ...] = (Request("/"),)
    """What is asked of it, without values of headers that may be secrets (`withheld.py`)."""
    form: str = "application"
    """What the attribute is: `application`, `factory` (called without arguments), `coroutine` (a factory that has to
    be awaited), `asgi2`, `django`, `servicer`."""
    served: Mapping[str, str] = field(default_factory=dict)
    """What servers are told instead of `path`, by interface: `wsgi` to `shop.wsgi:application`; of a servicer, what
    adds it to a server."""
    what: str = ""
    """For a sentence: `a Flask`, `the function create_app that makes a FastAPI`."""
    packages: Mapping[str, str] = field(default_factory=dict)
    """Version of every package installed beside it, by name: these win over what stacks pin."""
    variables: tuple[str, ...] = ()
    """Names of the environment variables that its user sets for it."""
    third_parties: tuple[ThirdParty, ...] = ()
    proto: str = ""
    """Path of the `.proto` file of a gRPC servicer; empty: it is none."""
    source: str = ""
    """Folder its module is imported from beside `cwd`, relative to that or absolute: `src`; empty: there is none."""
    revision: str = ""
    """Of its source, where several are compared; empty: as it is."""
    named_interface: str = ""
    """The interface its user named, because it cannot be told by itself; empty: it was found out."""
    headers: tuple[str, ...] = ()
    """Names of the headers that its user gives every request."""

    @property
    def simulated(self) -> tuple[str, ...]:
        """Variables behind which simulated third parties stand."""
        return tuple(one.variable for one in self.third_parties)

    @property
    def interfaces(self) -> tuple[str, ...]:
        """Every interface it can be served through."""
        return tuple(self.served) or (self.interface,)

    def told(self, interface: str) -> str:
        """Return the `module:attribute` that a server of that interface is told."""
        return self.served.get(interface, self.path)

    @property
    def recipe(self) -> Recipe:
        """The app where a recipe stands: it has no steps, because nothing is known of what it does."""
        asked = ", ".join(f"{one.method} {one.path}" for one in self.requests[:3])
        more = f" and {len(self.requests) - 3} more" if len(self.requests) > 3 else ""
        name = self.path + (f" at {self.revision}" if self.revision else "")
        return Recipe(name, f"answers {asked}{more} as {name} does", ())
