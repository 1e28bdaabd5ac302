"""Takes the person's own words out of a bug report or question, and tells such a text from a log."""

from __future__ import annotations

import re
from functools import cache

from phalanx.model.lazy import lazy
from phalanx.sources.fences import FENCE, LONE_TICK, names_in, outside_and_inside, points_below
from phalanx.sources.glossary import has_ideograms, with_english
from phalanx.sources.progress import position_of
from phalanx.sources.scanner import Needle, NeedleSet
from phalanx.sources.text import fold

# First person singular: programs say "we", "you" and "please" too ("we are taking the entire process down").
_PERSONAL = lazy(r"\b(?:I|I'm|I've|I’m|I’ve|Im|[Mm]y|anyone|anybody|[Tt]hanks|[Tt]hank you)\b")
# The same less surely: lower case as people type it, and "we" with what people do and programs do not.
_PERHAPS_PERSONAL = lazy(
    r"\b(?:i|[Ww]e) (?:am|was|don[’']?t|do not|can[’']?t|cannot|have|had|run|ran|tr(?:y|ied)|get|got|use|used|want|need|found|see|saw|met|meet|did|could|can|install\w*|train\w*|follow\w*|start\w*|observe\w*)\b"
    r"|\b(?:[Hh]i|[Hh]ello|[Dd]ear)\b[ ,!]|\b(?:[Ww]hy|[Hh]ow) (?:do|does|did|can|is|are|should|could|to)\b|\bany (?:ideas?|suggestions?|help|advice)\b"
    r"|\bplease (?:suggest|advi[sc]e|help)\b|\b(?:has|did|have) (?:any|some)(?:one|body)\b"
)
# Marks of a person in Chinese, Japanese and Korean: "I", "may I ask", "how", "why", "thanks", "reports an error", "is stuck at".
_PERSONAL_ELSEWHERE = lazy(
    r"请问|请教|我|您|疑问|怎么|如何|为什么|求助|谢谢|大佬|您好|你好|报错|遇到|出现|卡(?:在|住|死)|教えて|ください|ですか|エラー|私|안녕하세요|감사합니다|에러|문제"
)
_HEADING = lazy(r"^#{1,3} \S+ \S")  # a Markdown title; a shell's prompt and a tool's table have no empty line below
_HEADINGS = (
    r"(?:Environment|Bug (?:report|description|summary)|Describe the (?:bug|problem|issue|task|(?:current|expected) behaviou?r)|What happened|To Reproduce|Reproduction|"
    r"Steps to reproduce|(?:Expected|Current|Actual) behaviou?r|System info(?:rmation)?|Feature request|Motivation|"
    r"Your question|Checklist|Framework version|Horovod version|Versions|Additional context|Question|Issue description)\b"
)
_TEMPLATE = lazy(r"^\W*" + _HEADINGS, re.I)
_BARE_HEADING = lazy(rf"^\W*{_HEADINGS}(?: and [\w ]{{1,30}})?\W*$", re.I)
# What the forms of the frameworks' trackers say themselves, of hangs and docker too.
_FORM = lazy(
    r"Did you (?:search issues|check if you(?:r)? question)|If your question is about (?:hang|docker)|Please (?:ask your question here|describe erroneous behavio)"
    r"|Have I written custom code|OS Platform and Distribution|Mobile device \(e\.g|You (?:can|must) (?:also obtain|collect some of|obtain)|installed from \(source or binary\)"
    r"|Please make sure that (?:this is|you)|As per our GitHub Policy|GitHub Policy\]|A clear and concise description|Provide a reproducible test case|tag:bug_template"
    r"|URL\(s\) with the issue|Description of issue \(what needs changing\)"
    r"|code to reproduce the (?:issue|problem|bug)\W*$|Other info ?/ ?logs|Source code ?/ ?logs"
    r"|Include any logs or source code|GPU model and memory|(?:CUDA|cuDNN|CUDA/cuDNN|Bazel|Python|GCC/Compiler|NCCL|MPI|Horovod|Framework|TensorFlow|PyTorch|Spark[ /\w]*|CMake|OS and|Ray) version\b.{0,40}$"
    r"|^\W*\d?\d?\W*Framework: \("
    r"|^\W*(?:[xX\d]\W+)?(?:The problem arises? when using|The tasks? I am working on is|Model I am using \(|Language I am using the model|(?:The|An) official(?:ly supported)? (?:example scripts|task)|My own (?:modified scripts|task or dataset)|an official GLUE)"
    r"|Thanks for your error report|I have (?:searched|read|checked|verified|included) (?:related issues|the|that|in the)\b.{0,80}(?:issues|documentation|README|help|bug reports?|branch|section|requests?|list|guide|log)|The bug has not been fixed in the latest|Search before asking|Are you willing to submit a PR|I[’']d like to help by submitting|What command or script did you run|Did you (?:make any modifications|understand what you have modified)|What dataset did you use|Please run `\S+ ?\S+` to collect|You may add addition that may be helpful|How you installed PyTorch",
    re.I,
)
# What people answer to it on a line of its own: "no, not hang" complains of nothing.
_ANSWER = lazy(r"^\W*(?:yes|yep|no|not|none|n/?a)\b.{0,40}$", re.I)
# What a change says of the ticket it is for, and of who made it.
_CHANGE = lazy(r"^\W*(?:(?:resolves|closes|fixes|addresses|implements)\W{1,3}#\d|signed-off-by:)", re.I)
# A line of code that somebody marked: "dist.barrier()  # hangs here".
_MARKED = lazy(
    r"#.{0,30}\b(?:hang\w*|stuck|block\w*|freez\w*|stops?|fail\w*|errors?|crash\w*|exits?)\b.{0,20}\b(?:here|this line)\b",
    re.I,
)
# Headings of forms that put the person's own words into a fence of code.
_WORDS_WANTED = lazy(r"^#{1,4} \W*(?:(?:Current|Actual|Expected) Behaviou?r|What happened)", re.I)
_TITLE_END = " ¶ "  # stands between the title and the rest
_TITLE_WORD = lazy(r"^[A-Za-z][\w'’]*(?:[-/][A-Za-z][\w'’]*)*[,.;:?!)]*$")
_WORD = lazy(r"^[A-Za-z][a-z'’]*[,.;:?!)]*$|^I$|^[a-z_.]+\(\)$")
_ADDRESS = lazy(r"https?://\S+")
_FENCES = ("```", "~~~")
_RAISED = lazy(r"^(?:\[[^\]]{1,40}\] ?)?[\w.]*(?:Error|Exception)(?:: \S|:?\s*$)")
_MESSAGE_TITLE = lazy(r"(?:[A-Za-z_][\w.]*\.)?\w*(?:Error|Exception)(?:: \S|:?\s*$)|File \"")
_MACHINE = lazy(r"^\s*(?:> ?)?(?:File \"|at |>>|\$ |#include|import (?!errors?\b|fail|issues?\b|problems?\b)|from \w+ import|\d{4}-\d\d-\d\d|[MTWFS][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:|\[[^\]]*\d[^\]]*\]|Traceback|[IWEF]\d{4} \d\d:\d\d|[DIWEF] {1,3}(?:master|chief|worker|ps)-(?:replica-)?\d|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)[: ]|[\w.]*(?:Error|Exception|Warning):|\W{0,3}\S+\.py:\d+: \w*Warning:)")  # fmt: skip
_MACHINE_ANYWHERE = lazy(_MACHINE.pattern, re.MULTILINE)
_TROUBLE = lazy(
    r"\w(?:Error|Exception)\b|\bWARN\b|FATAL|[Ii]ncompatible|\b[Ee]rror \d+\b|terminate called after throwing|End of sequence|undefined symbol: |cannot open shared object|\b(?:[Ff]ailed|[Oo]ut of range|[Cc]annot|[Uu]nable|[Ee]rror:)"
)
_MOST_MESSAGES = 40
_SHORT = 12  # lines
_WHOLE_SENTENCES = 2  # of ten words and more, to their end: below a title no program writes them
_FEWEST_SIGNS = 6  # of a language that is written without spaces: a sentence, not a name
_LONGEST_TITLE = 300  # characters
_CUT_OUT = 80  # lines: more is a log, whatever stands above it
# A title that tells of trouble as people do: what, and in which circumstances.
_TOLD_TITLE = lazy(
    r"(?=.*(?:[Ee]rror|[Ee]xception|[Ff]ail|[Cc]rash|[Hh]ang|stuck|[Cc]annot|[Cc]an't|[Uu]nable|[Nn]ot |[Ss]low|[Ww]rong|[Dd]iffer|[Ii]ncreas|[Dd]rop|[Ll]ower|[Oo]nly|NaN|[Ww]hy|problem|issue|[Bb]roken|[Ll]eak|[Ff]reez|[Uu]neven|[Mm]ismatch)).*\b(?:when|while|with|after|during|if|using|on|in|for)\b"
)
_LEAST_SENTENCES = 0.1  # of the lines: a log that shows what a language model says has fewer
_MOST_TRAINING = 0.4  # of the lines
_LONGEST_PROSE = 12 << 10  # what is wrong is said in the title and the first paragraphs


def words_of_person(text: str, name: str = "") -> str | None:
    """The prose of a report, white space folded; None if the text is a program's output.

    A document by its name is a report. Otherwise it must speak of "I" and "we", follow an issue form, or consist
    of whole sentences in good part.
    """
    is_document = name.lower().endswith((".md", ".html", ".rst"))
    if not is_document and _is_output(text):
        return None
    prose: list[str] = []
    title = _message_as_title(text)
    machine, personal, perhaps, sentences, whole, template, training = 0, 0, 0, 0, 0, 0, 0
    personal_first = 0  # before anything that tells of steps
    lines = [line for line in text.splitlines() if line.strip()]
    is_form = asks_for_words = False
    by_ticks = (
        len(LONE_TICK.findall(text)) % 2 == 0
    )  # some people fence with one: an odd number of them closes what began within a line
    pointed: list[str] = []  # what is pasted below a sentence that says that it hangs there
    for line, in_fence in outside_and_inside(lines, by_ticks=by_ticks):
        is_code = in_fence or _MACHINE.match(line) is not None
        if is_code and prose and points_below(prose[-1]):
            pointed.append(line)
        elif pointed:
            prose.append(names_in(pointed))
            pointed = []
        training += position_of(line) is not None
        if line.startswith("#"):
            asks_for_words = _WORDS_WANTED.search(line[:80]) is not None
        if is_code and not (in_fence and asks_for_words and not _MACHINE.match(line)):
            machine += not in_fence
            if in_fence and _MARKED.search(line[:300]):
                prose.append(line)
            continue
        if _TEMPLATE.match(line):
            template += 1
        was_form, is_form = (
            is_form,
            _FORM.search(line[:300]) is not None,
        )  # a form's lines are short; a hostile line is not
        if is_form or (was_form and _ANSWER.match(line[:60])) or (title and _BARE_HEADING.match(line[:80])):
            continue
        words = _ADDRESS.sub(" ", line).split()
        plain = sum(1 for word in words if _WORD.match(word))
        elsewhere = not line.isascii() and _PERSONAL_ELSEWHERE.search(line[:2000]) is not None
        is_foreign = elsewhere or has_ideograms(line, _FEWEST_SIGNS)
        is_sentence = is_foreign or (len(words) >= 4 and plain >= 0.6 * len(words))
        is_title = line.startswith("#") or (len(prose) == 0 and (len(words) >= 2 or elsewhere))
        if is_sentence or 2 <= len(words) == plain:
            perhaps += bool(_PERHAPS_PERSONAL.search(line[:2000]))
        if is_sentence:
            sentences += 1
            personal += elsewhere or bool(_PERSONAL.search(line))
            personal_first = personal if not training else personal_first
            whole += len(words) >= 10 and line.rstrip().endswith((".", "?", "!", ":"))
        if is_title and not title and not prose:
            title = line.strip("# ")
            continue
        if is_sentence or is_title or _CHANGE.match(line[:60]) or (len(words) >= 2 and plain >= 0.8 * len(words)):
            prose.append(line)
        elif prose and points_below(prose[-1]):
            prose.append(names_in([line]))
    prose += [names_in(pointed)] if pointed else []
    fences = sum(1 for line in lines if FENCE.match(line) or (by_ticks and LONE_TICK.match(line)))
    is_titled = _has_title(text)
    is_asked_first = is_titled and personal_first >= 1
    if not (is_document or fences or template or is_asked_first) and training >= _MOST_TRAINING * len(lines):
        return None  # a log of training that shows what a language model says
    is_mostly_said = sentences >= 0.3 * len(lines)
    is_report = (
        is_document
        or (personal >= 2 and (fences >= 1 or template >= 1 or sentences >= _LEAST_SENTENCES * len(lines)))
        or template >= 2
        or (personal >= 1 and (fences >= 2 or is_titled or is_mostly_said))
        or (perhaps >= 1 and (is_titled or is_mostly_said))
        or (whole >= 1 and machine == 0 and whole >= 0.3 * len(lines))
        or (template >= 1 and (whole >= 1 or sentences >= 2))
        or (is_titled and fences >= 1)
        or (is_titled and len(lines) <= _CUT_OUT and _TOLD_TITLE.match(lines[0][:_LONGEST_TITLE]) is not None)
        or (is_titled and machine == 0 and len(lines) <= _SHORT and (perhaps or sentences) >= 1)
        or (is_titled and machine == 0 and training == 0 and whole >= _WHOLE_SENTENCES)
        or (
            is_titled
            and text.lstrip().startswith("#")
            and (sentences >= 1 or fences >= 2 or template >= 1 or len(lines) == 1)
        )
    )
    if not is_report:
        return None
    return fold(with_english(title) + _TITLE_END + with_english(" ".join(prose)))[:_LONGEST_PROSE]


def _message_as_title(text: str) -> str:
    """A program's message on the first line, with nothing below it: what the person asks about."""
    first, _, rest = text.lstrip().partition("\n")
    stands_alone = bool(rest.strip()) and not rest.partition("\n")[0].strip()
    return first[:_LONGEST_TITLE] if stands_alone and _MESSAGE_TITLE.match(first) else ""


def _has_title(text: str) -> bool:
    """The first line stands alone above an empty one, and is a heading or made of words."""
    first, _, rest = text.lstrip().partition("\n")
    if rest.partition("\n")[0].strip() or not (rest.strip() or first.startswith("#")):
        return False
    words = first.split()
    plain = sum(1 for word in words if _TITLE_WORD.match(word))
    is_worded = (len(words) >= 3 and plain >= 0.5 * len(words)) or (
        len(words) == 2 and all(_WORD.match(word) for word in words)
    )
    if not first.isascii():
        is_worded |= _PERSONAL_ELSEWHERE.search(first[:300]) is not None or has_ideograms(first, _FEWEST_SIGNS)
    if _RAISED.match(first):
        told = rest.lstrip()[:_LONGEST_TITLE].partition("\n")[0]
        is_told = _PERSONAL.search(told) or _PERHAPS_PERSONAL.search(told) or _PERSONAL_ELSEWHERE.search(told)
        if is_told or any(fence in rest for fence in _FENCES):
            return True  # nobody but a person writes so, or sets a program's words into a fence
    return _HEADING.match(first) is not None or (is_worded and _MACHINE.match(first) is None)


def split_title(prose: str) -> tuple[str, str]:
    """The title and the rest of what `words_of_person` returned."""
    title, mark, body = prose.partition(_TITLE_END.strip())
    return (title.strip(), body.strip()) if mark else ("", prose)


def messages_in(text: str) -> tuple[str, ...]:
    """What programs say of trouble among the lines of a report: error lines pasted without their traceback, too."""
    lines = (line.strip().strip(">*`# ") for line in text.splitlines())
    found = [line[:300] for line in lines if _TROUBLE.search(line)]
    return tuple(found[:_MOST_MESSAGES])


@cache
def _words() -> NeedleSet:
    """What a report holds and most logs do not."""
    return NeedleSet(
        [
            Needle(_PERSONAL.pattern, is_expression=True, once=True),
            Needle(_PERHAPS_PERSONAL.pattern, is_expression=True, once=True),
            Needle(_HEADINGS, is_expression=True, ignores_case=True, once=True),
        ]
    )


def _is_output(text: str) -> bool:
    """True only if the text cannot be a report: no title, no word of a person or of an issue form, and a line of a program in it."""
    if (
        _FENCES[0] in text
        or _FENCES[1] in text
        or _HEADING.match(text.lstrip())
        or _words().scan(text.encode("utf-8", "replace"))
        or (not text.isascii() and _PERSONAL_ELSEWHERE.search(text))
        or (_TOLD_TITLE.match(text.lstrip()[:_LONGEST_TITLE].partition("\n")[0]) and _has_title(text))
    ):
        return False
    return _has_machine_line(text)


def _has_machine_line(text: str) -> bool:
    """Whether a program wrote some line. Asked line by line: a search would try every character."""
    start = 0
    while _MACHINE_ANYWHERE.match(text, start) is None:
        start = text.find("\n", start) + 1
        if not start:
            return False
    return True
