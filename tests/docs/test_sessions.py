"""The rules by which pages are read and compared: what must agree, and what need not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.comparison import is_as_said
from tests.docs.pages import Command, parse_page
from tests.docs.terminal import Disagreement, Terminal

PAGE = """\
# A page

```
$ echo one \\
    two
one two
$ true
```

<!-- not run: it would never end -->
```
$ yes
```

```yaml
# claim.yaml
kind: ResourceClaim
```

1. in a list

   ```
   $ allot up
   ready
   ^C
   stopping
   ```
"""


def test_what_a_page_asks_for() -> None:
    page = parse_page(PAGE)

    assert page.commands == (
        Command(4, "echo one \\\n    two", ("one two",)),
        Command(7, "true", ()),
        Command(23, "allot up", ("ready",)),
        Command(25, "^C", ("stopping",)),
    )
    assert page.files == {"claim.yaml": "# claim.yaml\nkind: ResourceClaim\n"}


@pytest.mark.parametrize(
    ("said", "printed"),
    [
        pytest.param("pod/a   Running   5s", "pod/a  Running  1m12s", id="ages-and-columns"),
        pytest.param("web-2zd67b6hl-488pf", "web-5bcdf78gh-x7w2k", id="generated-names"),
        pytest.param("on https://127.0.0.1:6443", "on https://127.0.0.1:41231", id="ports"),
        pytest.param("ready after 0.9 s", "ready after 12.1 s", id="seconds"),
        pytest.param("a … c", "a b b c", id="any-text"),
        pytest.param("a\n…\nd", "a\nb\nc\nd", id="any-lines"),
        pytest.param("a\n…", "a", id="no-lines-are-any-lines"),
        pytest.param("a", "\na\n\n", id="empty-lines-around"),
    ],
)
def test_agrees(said: str, printed: str) -> None:
    assert is_as_said(said.splitlines(), printed.splitlines())


@pytest.mark.parametrize(
    ("said", "printed"),
    [
        pytest.param("pod/a Running", "pod/a Pending", id="another-word"),
        pytest.param("a", "a\nb", id="more-lines"),
        pytest.param("a\nb", "a", id="fewer-lines"),
        pytest.param("a\nb", "b\na", id="another-order"),
        pytest.param("TOTAL 16", "TOTAL 15", id="another-number"),
        pytest.param("", "error: no", id="says-nothing"),
        pytest.param("a\n…\nd", "a\nb\nc", id="any-lines-then-none"),
    ],
)
def test_disagrees(said: str, printed: str) -> None:
    assert not is_as_said(said.splitlines(), printed.splitlines())


def test_a_terminal_keeps_its_state(tmp_path: Path) -> None:
    with Terminal(tmp_path, Path("page.md")) as terminal:
        terminal.try_command(Command(1, "export WORD=kept; cd examples", ()))
        terminal.try_command(
            Command(2, "echo $WORD; basename $PWD; (exit 3)", ("kept", "examples"))
        )
        terminal.try_command(Command(3, "echo $?", ("3",)))


@pytest.mark.parametrize("command", [Command(7, "echo two", ("one",)), Command(7, "false", ())])
def test_a_disagreement_names_its_place(command: Command, tmp_path: Path) -> None:
    with (
        Terminal(tmp_path, Path("page.md")) as terminal,
        pytest.raises(Disagreement, match=r"page\.md:7"),
    ):
        terminal.try_command(command)
