"""Words by which people ask or wish, instead of telling what is wrong: such posts get no verdict of words alone."""

from __future__ import annotations

import re

from phalanx.diagnose.cues import FAILURE, HANG

# A title that asks how something is done. "Why" and "when using" complain.
QUESTION = re.compile(
    r"^\W*(?:(?:q|hi|hello|help|dear \w+)\W+)?(?:how (?:do|does|to|can|could|should|is|are)|when (?:to|will|should|do|does|is|are|can)|(?:when|why)/|what|where|who|is (?:it|there|\w+ (?:a )?necessary)|are there"
    r"|does|do i|can|could|should|would|will|may i|questions?\b|i (?:just )?(?:want|would like|wish) to (?:know|confirm|ask))\b"
    r"|\bfeature requests?\b|^\W*support (?:for|of)\b[^?]*\?",
    re.I,
)
# A title that asks whether something is so, which may also complain.
YES_OR_NO = re.compile(r"^\W*(?:is|are|was|were|has|have|did)\b[^?]*\?\W*$", re.I)
# Any other that is one clause and ends in a question mark. "Why" complains.
ENDS_IN_QUESTION = re.compile(r"^(?!.*(?:\bwhy\b|为什么|怎么|[.!,] )).*[?？]\W*$", re.I)
# A title that wants something made or written, and the headings of forms for it. Such a post says what would be good, seldom what broke.
REQUEST = re.compile(
    r"^\W*(?:\[?(?:\w+ )?(?:feat(?:ure)?s?|requests?|rfc|proposals?|docs?|documentation|enhancements?|discussion|roadmap|ask|wip|chore|refactor|benchmarks?|suggestions?|ideas?|wish|improvements?|tracking|epic|poc)\b[\]:(]"
    r"|(?:feat(?:ure)?|enhancement)s? (?:request|proposal|idea)|proof of concept|benchmarks?\b|roadmap\b|rfc\b"
    r"|(?:please )?(?:add|support|allow|enable|implement|provide|document|update|improve|introduce|expose|consider|investigate|create|clarify|explain|leave|extend|refactor|migrate|publish|release|share|integrate)\b(?! (?:is|are|was|does|did|not)\b))",
    re.I,
)
REQUEST_FORM = re.compile(
    r"#{1,4} \W*(?:pitch|🚀 feature|feature (?:request|description)|feature, motivation|proposal|the doc issue|describe the (?:task|solution|feature)|is your feature request|suggest a potential alternative|alternatives)\b"
    r"|is your feature request related|🚀 feature\b|\ba feature request (?:would be|is|could be)\b|\bsuggested improvements?\b|i (?:would )?(?:suggest|propose) (?:adding|to add|that)|it would be (?:great|nice|useful|helpful|good) (?:to|if)\b"
    r"|\bwe (?:need to|should|want to) (?:make|add|support|provide|implement|extend|allow)\b|\bwe can choose\b|\b(?:nicer|better|clearer) error messages?\b"
    r"|\bi (?:would )?suggest (?:the|this|that|we|you|adding)\b|\bwe should (?:also |probably |just |at least )?(?:try to|consider|use|have|be able to)\b|\bwhy do you think this is important\b|\bwhat should the final outcome look like\b",
    re.I,
)
# Headings that nobody fills in who tells of a fault: with them a word for slowness in the title says what could be faster.
FEATURE_FORM = re.compile(
    r"🚀 feature\b|#{1,4} \W*(?:pitch|feature (?:request|description)|feature, motivation)\b", re.I
)
# What becomes of a thing in a title that opens like a wish, and is a complaint then: "Enable fp16 crashes".
BREAKS = re.compile(
    r"\b(?:fail(?:s|ed|ing)?|crash\w*|breaks?|broken|do(?:es)?(?:n[’']?t| not)|did(?:n[’']?t| not)|can ?not|can[’']?t|not work\w*|hangs?|hung|stuck|freez\w*|unable|rais(?:es|ed)|throws?|caus(?:es|ed|ing)|leads?|results? in|got|gets?)\b",
    re.I,
)
# A change that somebody hands in: it tells of trouble that it mends.
CHANGE = re.compile(
    r"^\W*(?:fix|feat|chore|docs?|refactor|perf|tests?|ci|build|style)(?:\([\w ./-]+\))?!?: |\bwhat does this pr do\b|\bdoes this pr introduce\b|\bthis (?:\w+ )?(?:pr|pull request|commit|patch) (?:adds?|fix\w*|propos\w+|chang\w+|make\w*|introduc\w+|marks?|allow\w*|enabl\w*|implement\w*|remov\w*|updat\w*|provid\w*|improv\w*|aims?|address\w*|resolv\w*|refactor\w*|support\w*|moves?|replac\w*|lets?|ensur\w*|prevent\w*|includ\w*)\b",
    re.I,
)
# The title of one, as no report of trouble begins, and what its description says of the tickets that it closes.
TITLE_OF_CHANGE = re.compile(
    r"^\W*(?:\[[\w ./-]{1,30}\]\W*)?fix(?:es|ed|ing)?\b(?!(?: for)? (?:me|this|it|please|my)\b)[^?？]*$"
    r"|^(?!\w*(?:Error|Exception|Warning):)[\w./-]{2,30}: (?:add|remove|make|use|handle|avoid|support|allow|set|move|fail|update|improve|enable|disable|refactor|rename|replace|bump|introduce|implement|skip|ensure|return|raise|wrap|convert|drop)\b(?! (?:to|in|on|with|when|while|during)\b)[^?？]*$",
    re.I,
)
CLOSES = re.compile(
    r"\b(?:resolves|closes|fixes|addresses|implements):? #\d+\b|\b(?:list|summary) of changes\b|\bsigned-off-by:|\bhow has this been tested\b|\btest plan:|\btypes? of changes?\b|\bdifferential revision\b|\bchecklist before submitting\b|\breview process to land\b",
    re.I,
)
# The same by a verb in the past: "Moved the barrier …". With a word of trouble it tells what was done before that.
DONE = re.compile(
    r"^\W*(?:add(?:s|ed)|remov(?:es|ed)|updat(?:es|ed)|replac(?:es|ed)|mov(?:es|ed)|renam(?:es|ed)|refactor(?:s|ed)|improv(?:es|ed)|correct(?:s|ed)|(?:in|un)dented|introduc(?:es|ed)|revert(?:s|ed)|simplif(?:y|ies|ied)|bump(?:s|ed)?|clean(?:s|ed)? up|(?:re)?implement(?:s|ed))\b",
    re.I,
)
# What is written about a thing, and what is wrong with that.
OF_DOCUMENTS = re.compile(
    r"\btypos?\b|\b(?:documentation|docs?|docstrings?|readme|tutorials?|guides?|wiki)\b[^.?!]{0,60}\b(?:discrepanc\w*|out ?(?:of ?)?date\w*|reflect|missing|unclear|misleading|confus\w+|mention\w*|inconsisten\w+|deprecat\w+|link)\b"
    r"|\b(?:discrepanc\w*|outdated|missing|unclear|misleading|confusing|inconsisten\w+|broken links?|no) (?:\w+ ){0,3}(?:documentation|docs?|docstrings?|readme|tutorials?|guides?|wiki)\b",
    re.I,
)
# The same with verbs that also open the report of a fault ("Use DDP but …").
WISH = re.compile(r"^\W*(?:use|run|make|move|switch|try|test)\b(?!.*\b(?:but|and (?:got?|get))\b)", re.I)
# Words that no wish needs.
TROUBLE = re.compile(
    r"报错|失败|错误|(?:error|exception)s?\b|\b(?:fail\w*|crash\w*|broken|unable|not able|not work\w*)\b", re.I
)
# Somebody checks what they have understood: what differs there is how things are meant, not what went wrong.
UNDERSTANDING = re.compile(
    r"\b(?:is|was) (?:my|this|that|the) understanding (?:correct|right)\b|\b(?:according to|in) my understanding\b|\b(?:am i|did i) (?:underst(?:an|oo)d\w*|right|correct)\b",
    re.I,
)
# Somebody helps others with what they found out themselves.
HELP = re.compile(
    r"^\W*(?:if (?:you|anyone|someone) (?:have|has|are having|meets?|encounters?|gets?|faces?)|for (?:those|anyone|everyone|people) who)\b|\bhere(?: is|'s|’s| are) (?:the|my|a|an|some) (?:\w+ )?(?:solutions?|fix(?:es)?|workarounds?|guide|instructions)\b|^\W*(?:my |a |the )?(?:solutions?|workarounds?) (?:for|to)\b",
    re.I,
)
# What somebody wants to know, in the text: with no word of trouble beside it, nothing is wrong.
ASKING = re.compile(
    r"\b(?:i|we)(?: am|'m|’m|m| was| were| are)? (?:just |also |only )?(?:wonder(?:ing)?|curious|(?:would|'d) (?:like|love) to (?:know|ask|understand)|want(?:ed)? to (?:know|ask|confirm|understand)|interested)\b"
    r"|\bi want (?:to )?(?:use|run|train)\b[^.?!]{0,80}[.,;\s]+how (?:can|do|should) (?:i|we)\b|\bi (?:have|had|encounter(?:ed)?) (?:a|some|one|another|two|few|a few)?\s?(?:\w+ )?questions?\b|\b(?:could|can|would|will) you (?:please |plz |kindly )?(?:add|share|provide|release|publish|tell|explain|clarify|confirm)\b(?! (?:\w+ ){0,3}(?:repro\w*|minimal|full|complete|logs?|output|traceback|stack|script|command|snippet|environment)\b)"
    r"|\b(?:can|does|do|could|will) (?:the |this |that |your |it |\w+ ){0,2}support (?!me\b)[^.!]{0,120}\?|\bis there (?:any|a|an|some) (?:plan|example|benchmark|tutorial|guide|way|doc\w*|support)\b|\bin my understanding\b|\bam i (?:understanding|right|correct)\b|\bdoes (?:that|this|it) make sense\b|\bwhy not (?:\w+ ){0,2}(?:use|using|add|set)\b[^.!]{0,120}\?|\bis (?:that|this|there) (?:for )?any (?:particular |special |specific )?reason\b",
    re.I,
)
# Titles call any question a problem.
NO_TROUBLE = re.compile(r"\b(?:problems?|issues?)\b|\b(?:on|upon|in case of|after an?) (?:errors?|failures?)\b", re.I)
FEWEST_POINTS = 2.0  # below this the words of a report say nothing


def hands_in_change(title: str, body: str, *, is_told: bool) -> bool:
    """A change is handed in: whatever it shows of a failure, it mends."""
    if any(sign.search(title) or sign.search(body) for sign in (CHANGE, CLOSES)) or TITLE_OF_CHANGE.search(title):
        return True
    return DONE.search(title) is not None and not is_told and not FAILURE.search(title) and not HANG.search(title)


def only_wants(title: str, body: str, points: dict[str, float], *, is_told: bool, is_named: bool = True) -> bool:
    """Somebody wants something made or to be told something, and says nothing of trouble beyond that there is an "issue".

    A symptom is named where more than that word speaks for it.
    """
    if OF_DOCUMENTS.search(title) or HELP.search(title):
        return True
    if UNDERSTANDING.search(body) and "?" in body and not TROUBLE.search(body) and not HANG.search(body):
        return True
    is_wish = REQUEST.search(title) is not None and not BREAKS.search(title)
    plain = NO_TROUBLE.sub(" ", title)
    if (FAILURE.search(plain) or HANG.search(title)) and not is_wish:
        return False
    if REQUEST_FORM.search(body) and (is_wish or not is_told or FEATURE_FORM.search(body)):
        return True
    if TROUBLE.search(body) or HANG.search(body):
        return False
    if REQUEST.search(title):
        return True
    if WISH.search(title) and not is_told:
        return True
    tells_little = max(points.values(), default=0.0) < FEWEST_POINTS or not is_named
    return tells_little and ASKING.search(body) is not None
