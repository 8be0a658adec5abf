"""What a hook of git runs in the tests: a program beside pictures of the repository before and after it.

IN_A_HOOK=out.json IN_A_HOOK_RUNS='["velodrome", …]' python in_a_hook.py

What git has exported for the hook is the environment of all of it. Writes `before`, `after`, `code` and `output`.
"""

import hashlib
import json
import os
import subprocess
from pathlib import Path

LISTED = (
    ("status", "--porcelain=v2", "--branch", "--untracked-files=all", "--ignored"),
    ("diff", "--cached"),
    ("diff",),
    ("for-each-ref",),
    ("reflog", "--all"),
    ("rev-parse", "HEAD"),
    ("config", "--list", "--show-origin"),
    ("worktree", "list", "--porcelain"),
    ("stash", "list"),
)


def picture(folder: str, **variables: str) -> dict[str, str]:
    """Return all there is of a repository: every file of it byte by byte, and what git says of it."""
    env = {**os.environ, **variables, "GIT_OPTIONAL_LOCKS": "0"}

    def git(*words: str) -> str:
        result = subprocess.run(["git", *words], capture_output=True, cwd=folder, env=env, check=False)
        return (result.stdout + result.stderr).decode()

    roots = [
        git("rev-parse", "--path-format=absolute", word).strip() for word in ("--git-dir", "--git-common-dir")
    ]
    roots.append(git("rev-parse", "--path-format=absolute", "--show-toplevel").strip())
    found = {}
    for root in dict.fromkeys(roots):
        for path in sorted(Path(root).rglob("*")):
            if path.is_file() and not path.is_symlink():
                found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
            else:
                found[str(path)] = "a folder or a link"
    return {**found, **{" ".join(words): git(*words) for words in LISTED}}


def main() -> None:
    out, runs = Path(os.environ.pop("IN_A_HOOK")), json.loads(os.environ.pop("IN_A_HOOK_RUNS"))
    before = picture(".")
    ran = subprocess.run(runs, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    after = picture(".")
    exported = sorted(name for name in os.environ if name.startswith("GIT_"))
    output = ran.stdout + ran.stderr
    facts = {"before": before, "after": after, "code": ran.returncode, "output": output, "exported": exported}
    out.write_text(json.dumps(facts))


if __name__ == "__main__":
    main()
