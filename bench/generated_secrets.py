"""How many generated secrets does redaction leave readable? Secrets are made from the expressions of gitleaks' rule set.

    python bench/generated_secrets.py --rules gitleaks.toml --seed 7

`gitleaks.toml` is `config/gitleaks.toml` of the gitleaks repository. A secret counts as left if its end or its middle can
still be read, line by line (as output is kept) or in one piece (as files are).
"""

from __future__ import annotations

import argparse
import json
import random
import re
import string
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote, quote_plus

from phalanx.sources.secrets import OutputRedactor, redact

_NAMED_RULE = r"[\w.-]{0,50}?"
_SPARE = {"generic-api-key", "kubernetes-secret-yaml", "private-key", "curl-auth-header", "curl-auth-user", "nuget-config-password", "sidekiq-sensitive-url", "hashicorp-tf-password", "pkcs12-file"}  # fmt: skip
_EXTRA = 12  # more characters than the least where a repeat has no upper bound


def _scoped(expression: str) -> str:
    """Go's expression for Python: flags in the middle become groups, POSIX classes become sets."""
    for posix, plain in (("[:alnum:]", "A-Za-z0-9"), ("[:alpha:]", "A-Za-z"), ("[:xdigit:]", "0-9A-Fa-f")):
        expression = expression.replace(posix, plain)
    expression = expression.replace(r"\z", r"\Z").replace("(?-i:", "(?:").replace("(?P<", "(?P<")
    out, open_flags, at, in_set = [], [0], 0, False
    while at < len(expression):
        sign = expression[at]
        if sign == "\\":
            out.append(expression[at : at + 2])
            at += 2
            continue
        if in_set:
            in_set = sign != "]"
        elif sign == "[":
            in_set = True
        elif expression.startswith("(?i)", at):
            out.append("(?i:")
            open_flags[-1] += 1
            at += 4
            continue
        elif sign == "(":
            open_flags.append(0)
        elif sign == ")":
            out.append(")" * open_flags.pop())
        elif sign == "|" and open_flags[-1]:
            out.append(")" * open_flags[-1] + "|" + "(?i:" * open_flags[-1])
            at += 1
            continue
        out.append(sign)
        at += 1
    return "".join(out) + ")" * open_flags[0]


class _Maker:
    """Makes one text that an expression matches, and remembers what its groups captured."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._mixes_case = chance.random() < 0.5
        self.groups: dict[int, str] = {}

    def text(self, parsed: object, caseless: bool = False) -> str:
        return "".join(self._item(str(kind), argument, caseless) for kind, argument in parsed)  # type: ignore[attr-defined]

    def _item(self, kind: str, argument: object, caseless: bool) -> str:
        if kind == "LITERAL":
            return chr(argument)  # type: ignore[arg-type]
        if kind == "NOT_LITERAL":
            return "x"
        if kind == "ANY":
            return "."  # rules write the dots of hosts and prefixes without a backslash
        if kind == "IN":
            return self._one_of(argument, caseless)
        if kind in {"MAX_REPEAT", "MIN_REPEAT"}:
            least, most, inner = argument  # type: ignore[misc]
            count = self._chance.randint(least, min(int(most), least + _EXTRA))
            return "".join(self.text(inner, caseless) for _ in range(count))
        if kind == "SUBPATTERN":
            number, flags, _, inner = argument  # type: ignore[misc]
            made = self.text(inner, caseless or bool(flags & re.IGNORECASE))
            if number:
                self.groups[number] = made
            return made
        if kind == "BRANCH":
            return self.text(self._chance.choice(argument[1]), caseless)  # type: ignore[index]
        return ""  # anchors and looks

    def _one_of(self, members: object, caseless: bool) -> str:
        signs: set[str] = set()
        for kind, argument in members:  # type: ignore[attr-defined]
            if str(kind) == "LITERAL":
                signs.add(chr(argument))
            elif str(kind) == "RANGE":
                signs |= {chr(code) for code in range(argument[0], min(argument[1], 126) + 1)}
            elif str(kind) == "NEGATE":
                return self._chance.choice(string.ascii_letters + string.digits)
            elif str(kind) == "CATEGORY":
                signs |= set({"CATEGORY_DIGIT": string.digits, "CATEGORY_WORD": string.ascii_letters + string.digits + "_", "CATEGORY_SPACE": " "}.get(str(argument), string.ascii_letters + string.digits))  # fmt: skip
        sign = self._chance.choice(sorted(signs - {"\n", "\r"} or signs))
        return self._chance.choice((sign.lower(), sign.upper())) if caseless and self._mixes_case else sign


def made(expression: str, chance: random.Random) -> str:
    """A secret of this kind: what the group behind a name captures, else nearly all of it."""
    maker = _Maker(chance)
    whole = maker.text(re._parser.parse(_scoped(expression)))  # type: ignore[attr-defined]
    first = next((maker.groups[number] for number in sorted(maker.groups) if len(maker.groups[number]) >= 8), whole)
    return first if _NAMED_RULE in expression or len(first) >= 0.8 * len(whole) else whole


BARE: tuple[Callable[[str], str], ...] = (
    lambda s: s, lambda s: f"2026-11-18T13:00:01Z INFO fetcher[42] using {s} for host a", lambda s: f"403 Forbidden ({s})", lambda s: f"<b>{s}</b>",
    lambda s: f"`{s}`", lambda s: f"[{s}]", lambda s: f"value='{s}'", lambda s: f"x;{s};y", lambda s: f"got={s}, retry in 3 s", lambda s: f"-> {s}\r",
    lambda s: json.dumps({"items": [{"v": s}]}), lambda s: json.dumps(json.dumps({"log": s + "\n"})), lambda s: f"/proxy/{s}/v1/models", lambda s: f"https://h.test/x?v={quote_plus(s)}",
    lambda s: f"curl -H 'X-Foo: {s}' https://h.test", lambda s: f"\x1b[1;33m{s}\x1b[0m", lambda s: f"| a | {s} |", lambda s: f"[rank3]:[E1118] {s}: bad", lambda s: f"KeyError: '{s}'",
    lambda s: f"main.py:12: f({s!r}, 3)", lambda s: f"{s}.", lambda s: f"- {s}  # prod", lambda s: f"id:{s}|ttl:30", lambda s: f"#{s}", lambda s: f"b'{s}'", lambda s: f"\t{s}\t", lambda s: f"({s},)",
)  # fmt: skip
_SUFFIXES = (
    "_API_KEY",
    "_TOKEN",
    "_SECRET",
    "_ACCESS_TOKEN",
    "_CLIENT_SECRET",
    "_AUTH_TOKEN",
    "_SECRET_KEY",
    "_PASSWORD",
)


def _camel(name: str) -> str:
    first, *others = name.lower().split("_")
    return first + "".join(part.capitalize() for part in others)


NAMED: tuple[Callable[[str, str], str], ...] = (
    lambda n, s: f"{n}={s}", lambda n, s: f"{n.lower()}: {s}", lambda n, s: f"  {_camel(n)}: \"{s}\",", lambda n, s: f"set {n}={s}", lambda n, s: f"{n} := \"{s}\"",
    lambda n, s: f"const {_camel(n)} = '{s}';", lambda n, s: f"os.environ[\"{n}\"] = \"{s}\"", lambda n, s: f"os.putenv('{n}', '{s}')", lambda n, s: f"environ({{'{n}': '{s}', 'HOME': '/root'}})",
    lambda n, s: f"-D{n.lower().replace('_', '.')}={s}", lambda n, s: f"./run.sh --{n.lower().replace('_', '-')}='{s}' --lr 3", lambda n, s: f"Namespace(lr=0.1, {n.lower()}='{s}', epochs=3)",
    lambda n, s: f"Config(\n    {n.lower()}={s!r},\n)", lambda n, s: f"X-{n.title().replace('_', '-')}: {s}", lambda n, s: f"\"{n}\" => \"{s}\"", lambda n, s: f":{n.lower()} => '{s}'",
    lambda n, s: f"{n.lower()}:\n- {s}\n", lambda n, s: f"{n.lower()}: !!str {s}", lambda n, s: f"<add key=\"{n}\" value=\"{s}\" />", lambda n, s: f"<{_camel(n)}>{s}</{_camel(n)}>",
    lambda n, s: f"| {n} | `{s}` |", lambda n, s: f"{n:<30} {s}", lambda n, s: f"{n.lower()} ......... {s}", lambda n, s: f"level=info msg=start {n.lower()}=\"{s}\" step=3",
    lambda n, s: json.dumps({"level": "info", "env": {n: s}}), lambda n, s: json.dumps({"message": f"{n}={s}\n"}), lambda n, s: f"{{\"Name\":\"{n}\",\"Value\":\"{s}\"}}", lambda n, s: f"Field(name='{n.lower()}', value='{s}')",
    lambda n, s: f"TypeError: connect() got {n.lower()}={s!r}", lambda n, s: f"[rank1]: {n.lower()} = {s!r}", lambda n, s: f"https://h.test/cb?{n.lower()}={quote(s, safe='')}&state=1", lambda n, s: f"the {n.lower().replace('_', ' ')} is {s}",
    lambda n, s: f"{n.lower().replace('_', ' ').capitalize()}: {s}", lambda n, s: f"docker run --env={n}={s} img", lambda n, s: f"kubectl create secret generic a --from-literal={n}={s}", lambda n, s: f"+ export {n}={s}",
    lambda n, s: f"++ {n}='{s}'", lambda n, s: f"{n}<<EOF\n{s}\nEOF", lambda n, s: f"{n}: ***{s}", lambda n, s: f"env: {{\"{n}\": \"{s}\"}}", lambda n, s: f"{{{{ {n} | default('{s}') }}}}", lambda n, s: f"${{{n}:-{s}}}",
    lambda n, s: f"getenv('{n}', default='{s}')", lambda n, s: f"assert {n.lower()} == '{s}'", lambda n, s: f"E   assert '{s}' == {n.lower()}", lambda n, s: f"{n.lower()}[0]='{s}'", lambda n, s: f"{n.lower()} (str): {s}",
    lambda n, s: f"ARG {n}={s}", lambda n, s: f"{n}\n{s}\n", lambda n, s: f"hparams: {n.lower()}={s} lr=0.1", lambda n, s: f"\x1b[34m{n.lower()}\x1b[0m \x1b[32m'{s}'\x1b[0m", lambda n, s: f"╭─ locals ─╮\n│ {n.lower()} = '{s}' │",
)  # fmt: skip


def _left(text: str, secret: str) -> bool:
    redactor = OutputRedactor()
    by_line = b"".join(redactor.clean(line) for line in text.encode().splitlines(keepends=True)).decode()
    middle = len(secret) // 2
    parts = {secret} if len(secret) < 16 else {secret[-8:], secret[middle : middle + 8]}
    parts |= {quote(part, safe="") for part in parts}
    return any(part in shown for shown in (redact(text), by_line) for part in parts)


def _cases(rules: list[dict[str, object]], seed: int, samples: int) -> Iterator[tuple[str, str, str, str, str]]:
    """Kind, rule, which surrounding, text, secret."""
    for rule in rules:
        name, expression = str(rule["id"]), str(rule.get("regex", ""))
        if not expression or name in _SPARE or name.endswith(("-client-id", "-access-id")):  # ids are public
            continue
        for sample in range(samples):
            chance = random.Random(f"{seed} {name} {sample}")
            secret = made(expression, chance).strip("\"'` ;,")
            word = re.sub(r"\W+", "_", name.split("-")[0]).upper()
            if _NAMED_RULE not in expression:
                for number, around in enumerate(BARE):
                    yield "bare", name, f"bare {number}", around(secret), secret
            for number, write in enumerate(NAMED):
                yield "named", name, f"named {number}", write(word + chance.choice(_SUFFIXES), secret), secret


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--rules", type=Path, required=True)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--samples", type=int, default=2)
    options.add_argument("--show", type=int, default=0, help="print so many of those that are left")
    given = options.parse_args()
    rules = tomllib.loads(given.rules.read_text())["rules"]
    tried: Counter[str] = Counter()
    left: Counter[str] = Counter()
    where: Counter[tuple[str, str]] = Counter()
    for kind, rule, surrounding, text, secret in _cases(rules, given.seed, given.samples):
        tried[kind] += 1
        if _left(text, secret):
            left[kind] += 1
            where[kind, rule] += 1
            where[kind, surrounding] += 1
            if sum(left.values()) <= given.show:
                print(f"{rule} in {surrounding}: {text!r} -> {redact(text)!r}")
    for kind in tried:
        print(f"{kind}: {left[kind]} of {tried[kind]} left")
    for (kind, place), count in where.most_common(40):
        print(f"  {kind:6} {place:40} {count}")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
