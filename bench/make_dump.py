"""Writes a dump like Stack Exchange's Posts.xml, of any size, the same for the same seed."""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import quoteattr

WORDS = [
    "the",
    "model",
    "and",
    "data",
    "in",
    "my",
    "code",
    "with",
    "a",
    "loss",
    "that",
    "is",
    "training",
    "batch",
    "python",
    "list",
    "value",
    "error",
    "function",
    "class",
    "file",
    "server",
    "request",
    "page",
    "table",
    "button",
    "query",
    "string",
    "array",
    "index",
    "thread",
    "memory",
    "import",
    "module",
    "return",
    "print",
    "object",
    "type",
    "null",
    "date",
    "time",
    "user",
    "select",
    "join",
    "window",
    "event",
]
TAGS = [
    "java",
    "javascript",
    "c#",
    "python",
    "html",
    "css",
    "sql",
    "android",
    "php",
    "jquery",
    "c++",
    "reactjs",
    "node.js",
    "arrays",
    "json",
]
WANTED = ["pytorch", "tensorflow", "keras", "horovod"]


def rows(seed: int = 1, new_tags: bool = False) -> Iterator[bytes]:
    """Rows without end: two answers to a question; 1 question in 100 about deep learning, a third of them distributed."""
    dice = random.Random(seed)
    number = 0
    while True:
        number += 1
        body = "".join(f"<p>{' '.join(dice.choices(WORDS, k=40))}</p>\n" for _ in range(dice.randint(2, 7)))
        body += f"<pre><code>{' '.join(dice.choices(WORDS, k=30))} if a < b && c > d:\n    return &quot;x&quot;</code></pre>"
        stamp = f"20{10 + number % 14:02}-0{1 + number % 9}-1{number % 9}T10:{number % 60:02}:00.123"
        if number % 3:
            yield f'  <row Id="{number}" PostTypeId="2" ParentId="{number // 3 * 3 + 3}" CreationDate="{stamp}" Score="1" Body={quoteattr(body)} OwnerUserId="{number % 999}" LastActivityDate="{stamp}" CommentCount="0" />\r\n'.encode()
            continue
        tags, title = dice.sample(TAGS, 3), "How do I do this"
        if dice.random() < 0.01:
            tags[1] = dice.choice(WANTED)
            title = "DistributedDataParallel hangs on two nodes" if dice.random() < 0.33 else "How do I train this"
        spelled = f"|{'|'.join(tags)}|" if new_tags else "".join(f"<{tag}>" for tag in tags)
        owner = f'OwnerUserId="{number % 999}"' if number % 50 else 'OwnerDisplayName="user1"'
        yield f'  <row Id="{number}" PostTypeId="1" CreationDate="{stamp}" Score="1" ViewCount="10" Body={quoteattr(body)} {owner} LastActivityDate="{stamp}" Title={quoteattr(title)} Tags={quoteattr(spelled)} AnswerCount="2" />\r\n'.encode()


def write_dump(path: Path, size: int, seed: int = 1, new_tags: bool = False) -> int:
    """Write at least `size` bytes; a few thousand rows are made and repeated with numbers of their own. Returns the rows."""
    maker = rows(seed, new_tags)
    block = [next(maker) for _ in range(6000)]
    written = count = 0
    with path.open("wb") as file:
        written += file.write('\ufeff<?xml version="1.0" encoding="utf-8"?>\r\n<posts>\r\n'.encode())
        while written < size:
            for row in block:
                count += 1
                head, _, tail = row.partition(b'Id="')
                written += file.write(head + b'Id="%d"' % count + tail[tail.index(b'"') + 1 :])
        file.write(b"</posts>\r\n")
    return count


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("gigabytes", type=float)
    given = parser.parse_args()
    print(write_dump(given.path, int(given.gigabytes * (1 << 30))), "rows")
