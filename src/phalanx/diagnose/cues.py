"""Words by which people say what is wrong with their job, and the symptom that each speaks for.

Programs' messages are the rules' business. This table reads the person's own sentences: it settles which of several
claims the report is about, and gives a symptom where no rule knows the words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from phalanx.model import Stage


@dataclass(frozen=True, slots=True)
class Cue:
    """An expression and how much it speaks for a symptom; in a title it counts more."""

    symptom: str
    points: float
    pattern: re.Pattern[str]
    is_vague: bool = False  # says with which thing it fails, not how: less than the exception does that was pasted


_FAIL = (
    r"(?:fail\w*|faild|falied|errors?|erroring|problems?|issues?|bugs?|crash\w*|broken|exceptions?|unable|invalid|trouble|asserts?|raises?|throws?"
    r"|can ?not|can[’']?t|could(?:n[’']?t| not)|does(?:n[’']?t| not)(?! (?:require|need|matter|mean|include|have to)\b)|did(?:n[’']?t| not)|do(?:n[’']?t| not)(?= (?:work|run|start|load|compile|train|fit|match|save|restore|finish|exit|support|agree|communicate|connect)\b)|won[’']?t|not (?:able|work\w*|possible|(?:load|sav|start|connect|compil)ing)|nothing (?:\w+ ){0,2}works?)"
)
_BREAK = r"(?:fail\w*|\w*errors?|erroring|crash\w*|broken|exceptions?|asserts?|raises?|throws?)"  # where "does not" says too little
# Gaps and words give nothing back (++): a ruler of dashes could be divided between them in so many ways that it took hours.
_GAP = r"[^\w.?!;()]++"  # within a sentence
_WORD = r"[.'’-]*+\w++(?:[.'’-]++\w++)*+"
_NEAR = rf"{_GAP}(?:{_WORD}{_GAP}){{0,5}}?"  # a word's last character is no full stop


_LIBRARIES = r"nccl|rccl|hccl\w*|gloo"  # which carry what ranks exchange

# A model that was trained or saved on several devices, and what is done with it afterwards.
_SEVERAL = r"(?:train\w*|sav\w*|stored?|wrapped|weights|model) (?:\w+ ){0,4}(?:multi(?:ple)?[- _]?gpus?|multi_gpu\w*|(?:two|2|4|8|several|many) gpus|data ?parallel|ddp|distributed\w*|parallel)\b"
_LOADED = r"\b(?:re)?load(?:s|ed|ing)?\b|load_\w+|restor\w+|predict\w*|inference|transfer\w*"
# What has a number, and words for a number that is not the one it should be.
_NUMBERS = r"loss(?:es)?|results?|outputs?|gradients?|grads?|weights|metrics?|accurac(?:y|ies)|parameters|predictions?|learning rates?|scores?|perplexity|logits|embeddings|statistics|wers?|cers?|bleu|rouge|psnr|ssim|fid|m?iou|m?ap|auc|eer|rmse|rewards?"
_UNLIKE = r"differs?|differ from|different(?! (?:gpus?|devices?|nodes?|process\w*|ranks?|machines?|workers?|cards?|servers?|hosts?)\b)|differences?|discrepanc(?:y|ies)|wrong|incorrect|inconsisten\w+|inaccurate|mismatch\w*|disagrees?|do(?:es)? ?n[o’']t (?:match|agree|equal)|not (?:match\w*|the same|equal|identical|correct|right|consistent|averaged|synced|synchroni[sz]ed|in sync\w*)|out of sync"


def _near(what: str, how: str, gap: int) -> str:
    """Both within a sentence, at most so many words apart, in either order."""
    between = rf"{_GAP}(?:{_WORD}{_GAP}){{0,{gap}}}?"
    return rf"\b(?:{what})\b{between}(?:{how})\b|\b(?:{how}){between}(?:{what})\b"


def _failing(what: str, fail: str = _FAIL) -> str:
    """The thing and the failure, near each other, in either order."""
    return rf"\b(?:{what})\b{_NEAR}{fail}\b|\b{fail}{_NEAR}(?:{what})\b"


_START_FAILS = _failing(
    r"launch(?:es|ing|ed)?|(?<!epoch )start(?:s|ing|ed)?(?! (?:to |the )?(?:valid|eval|test|infer))"
)
_DDP_FAILS = _failing(r"ddp|distributeddataparallel", _BREAK)
# By which code a process ended; shells and launchers print that of a signal in three ways.
_ENDED = r"\b(?:exit(?:s|ed|ing)?|return(?:s|ed|ing)?|fail(?:s|ed)?|error)[ -]?(?:with )?(?:an? )?(?:exit|return|error)?[ -]?(?:codes?|status)\b"
_TABLE: tuple[tuple[str, float, str], ...] = (
    ("build.install-failure", 3, _failing(r"install(?:ation|ing)?|(?<!nightly )(?<!dev )builds?|building|(?<!model )(?<!model\.)compil(?:e|es|ing|ation)|pip|setup\.py|cmake|(?<!t )make(?! (?:sense|use|sure|it|the|an?|any|my|this|much|no|up|training|things)\b)")),
    ("build.install-failure", 3, r"\b(?:try(?:ing)?|tried|attempt\w*) to (?:install|build|compile)\b[^.?!]{0,100}\b(?:nothing|not|n[’']t|fail\w*|errors?|unable)\b"),
    ("build.install-failure", 2, r"fail\w* (?:to )?build\w* wheel|\bbdist_wheel\b|undefined reference|no matching distribution|\bcmake (?:error|version)|how to (?:install|build|compile)"),
    ("build.import-error", 3, r"\bimport ?errors?\b|modulenotfound|\bno module named\b|can ?not import|undefined symbol|shared object file|has not been built|" + _failing(r"imports?|importing|imported")),
    ("comm.setup-failure", 2.5, r"connection refused|no route to host|address (?:is )?already in use|\borted?\b|not enough slots|unable to (?:find|connect)|could not resolve|passwordless|(?:pods?|workers?|master|job|containers?)\W++(?:\w++\W++){0,3}?(?:not|never|n[’']t) (?:getting |being |get )?(?:start\w*|created?|launched|scheduled|com(?:e|ing) up)|\bport (?:is )?(?:already )?in use"),
    ("comm.setup-failure", 2, _failing(r"init_process_group|hvd\.init\(?\)?|process ?groups?|rendezvous|tcp ?store|ssh|mpirun|mpiexec|horovodrun|torchrun|cluster ?spec|tf_config|connect(?:ion|ing)?|new_group|initiali[sz](?:e|es|ed|ing|ation)")),
    ("comm.setup-failure", 2, _START_FAILS),
    ("comm.setup-failure", 2, _failing(r"local[-_ ]?rank\w*|world[-_ ]?size|master[-_ ](?:addr\w*|port)|node_rank|nproc_per_node|rdzv\w*")),
    ("comm.setup-failure", 2.5, r"can ?(?:not|[’']?t)(?: be)? connect\w*|(?:not|n[’']t|never) (?:find|reach|see|join) (?:the )?(?:other|second|remote) (?:node|machine|host|server)"),
    ("comm.setup-failure", 2.5, _failing(r"init_rpc|initiali[sz]\w* rpc|set_device_map|device_maps?|tensor ?pipe")),
    ("comm.setup-failure", 1.8, _failing(r"rpc")),
    ("fail.communication-error", 2, _failing(r"rpc")),
    ("comm.setup-failure", 1.5, _failing(r"(?:two|2|multi(?:ple)?|several|remote|different)[- ]?(?:nodes?|machines?|hosts?|servers?)|docker|kubernetes|k8s|slurm|cluster|distributed mode")),
    ("comm.setup-failure", 2, rf"\b{_FAIL}\b[^.?!;]{{0,60}}\b(?:between|across|over|on) (?:the )?(?:two |2 |several |multiple |different )?(?:nodes|machines|hosts|servers)\b"),
    ("comm.unexpected-protocol", 3, r"(?:rdma|infiniband|\bib\b|gdrdma|gpu ?direct|nvlink|\broce\b|\bnccl\b)\W++(?:\w++(?:[.'’-]++\w++)*+\W++){0,4}?(?:(?:is|are|was|being)? ?not (?:be(?:ing)? )?(?:used|enabled|shown)|(?:is |are |was |being )*disabled|instead of)|(?:why|does(?:n.?t| not)|not|isn.?t)\W++(?:\w++(?:[.'’-]++\w++)*+\W++){0,5}?(?:use|using|used|show)\W++(?:\w++(?:[.'’-]++\w++)*+\W++){0,4}?(?:rdma|infiniband|\bib\b|gdrdma|gpu ?direct|nvlink|nccl)"),
    ("prep.model-loading-failure", 1.5, _failing(r"(?:model|weights)\W++(?:\w++\W++){0,3}?(?:re)?load(?:s|ed|ing)?")),
    ("prep.model-loading-failure", 2, _failing(r"(?:re)?load(?:ing|s|ed)? (?:the |a |my |pre-?train(?:ed)? |saved |replicated )*(?:model|weights)|load_model|load\w* [\w. ]{0,40}from_pretrained|(?:model )?weights (?:are |were |is |being )?(?:\w+ )?loaded|build(?:ing)? (?:the |a |my )*model|wrap(?:ping)? (?:the |a |my )*model|clone_model|model_from_json|model construction|sub-?classed model")),
    ("prep.data-loading-failure", 2, _failing(r"data ?sets?|downloads?|downloading|data ?loaders?|dataload\w*|tf\.data|petastorm|parquet|tf_?records?|\w*samplers?|num_workers|tokeni[sz]\w+|data (?:pre-?)?process\w*|input pipeline|load(?:ing)? (?:the )?data")),
    ("prep.iteration-failure", 2, _failing(r"iterators?|iterat(?:e|ing)|steps_per_epoch|stopiteration")),
    ("prep.iteration-failure", 3, r"end of sequence|epochs? (?:\w+ ){0,3}(?:stop|end)s? (?:\w+ ){0,2}(?:early|soon)\b|out_?of_?rangeerror|ran out of data|iterator (?:is )?exhausted"),
    ("prep.communication-error", 1.5, _failing(r"broadcast_\w+|broadcastglobalvariables\w*|broadcast(?:ing)? (?:the )?(?:variables|parameters|weights|state)|barrier")),
    ("prep.other", 2.2, _failing(r"jupyter|notebooks?|mp\.spawn|ddp_spawn|pickl\w+")),
    ("prep.device-error", 1.5, _failing(r"set_device|device ordinal|visible_devices|model\.cuda|model\.to|gpu_options|set_visible_devices")),
    ("fail.communication-error", 2, r"can ?not communicate|lost (?:the )?connection|unavailableerror|finished reduction|find_unused_parameters|ready (?:twice|only once)|has been shut ?down|connection (?:reset|closed)|nccl error|unhandled cuda error|ncclsystemerror|ncclinternalerror|mismatched|" + _failing(r"all_?reduc\w+|all_?gather\w*|reduce_?scatter|all_?to_?all|gradient sync\w*|send|recv")),
    ("fail.communication-error", 2, _DDP_FAILS),
    ("fail.communication-error", 2, _failing(_LIBRARIES, _FAIL.replace("|problems?|issues?|bugs?", ""))),
    ("fail.communication-error", 1.3, _failing(_LIBRARIES)),  # an "issue" with it may as well be that it is slow
    ("fail.communication-error", 2.5, r"\b(?:connection|communication|gpu|nccl|socket)s? time[ds]?[- ]?outs?\b"),
    ("fail.communication-error", 2.5, r"\b(?:all|other|remaining|alive|surviving) (?:the )?workers? (?:also )?(?:fail\w*|die[ds]?|exit\w*|crash\w*)|horovod background loop"),
    ("fail.device-error", 2.5, r"(?<!unhandled )cuda (?:runtime )?error|cudnn|cublas|device-side assert|illegal memory access|same device|invalid device|no (?:cuda|gpu)s? (?:device )?(?:is |are )?(?:available|found|detected)|assign a device|can ?not find (?:the )?gpus?|tensors? (?:\w+ ){0,4}different devices|xid\b"),
    ("fail.graph-execution-error", 2, r"tf\.function|replica context|cross-replica|merge_call|no gradients?|none gradients?|(?:same|different) graph|graph (?:mode|execution|is finalized|disconnected)|autograd\b"),
    ("fail.graph-execution-error", 1, r"(?:invalidargument|failedprecondition|internal|assertion)error"),
    ("fail.graph-execution-error", 2, rf"(?:(?<!worker)mirrored[ _]?strategy|multi_gpu_model|tf\.distribute\w*)\b[^.?!;]{{0,80}}\b{_BREAK}\b"),
    ("fail.graph-execution-error", 1.5, _failing(r"(?<!worker)mirrored[ _]?strategy|tf\.distribute\w*|multi_gpu_model|distribut(?:ed|ion) strategy|strategy\.(?:run|scope)|custom (?:\w+ )?(?:layers?|loss|objects?|training loop)|estimators?|distributed_?optimizer|model\.fit|model\.compile|model compilation")),
    ("fail.graph-execution-error", 2, _failing(r"pjit|p?jit(?:ted)?|pmap(?:ped)?|xmap|shard_map|(?<!fully )(?<!optimizer )shardings?", _BREAK)),
    ("fail.tensor-mismatch", 2.5, r"(?:shape|size|dtype|dimension|type)s?[- ]mismatch\w*|mismatch\w* (?:in |of )?(?:tensor )?(?:shape|size|dtype|dimension|type)s?|incompatible shapes?|wrong (?:shape|size|dtype|dimension)s?|shapes? (?:must|do not|don.?t)|expected (?:scalar type|input|tensor|shape)|must be (?:an? )?(?:matrix|vector|[1-5]-?d\b)|(?:invalid|unexpected) shape|(?:shape|size|dtype)s? (?:is|are|was|were) (?:not (?:ok|right|correct|the same|equal)|wrong|different)|index(?:error)?:? .{0,20}out of (?:range|bounds)|\b(?:shapes?|sizes?|dimensions?) of (?:the |a |my )?(?:tensors?|outputs?|inputs?|gradients?|batch\w*)\b[^.?!;]{0,60}\b(?:strange|weird|odd|wrong|incorrect|unexpected|different)\b|" + _failing(r"tensor (?:sizes?|shapes?|dimensions?)")),
    ("fail.out-of-memory", 4, r"out[ -_]of[ -_]memory|\boom\b|resource ?exhausted|run(?:s|ning)? out of (?:gpu |cuda |host )?(?:memory|ram)|(?:too much|all|not enough|insufficient) (?:of )?(?:the )?(?:gpu |cuda |device )?memory|\bmemory (?:\w+ )?(?:is |was )?(?:not|n[’']t) (?:enough|sufficient)|\bmemory (?:shortage|insufficien\w+|overflow\w*)"),
    ("fail.out-of-memory", 4, r"exit ?code\W{1,3}-9\b|\bsignal 9\b|\bprocess(?:es)? (?:\w+ ){0,2}killed\b|killed by (?:the )?(?:oom|kernel|system)|exit(?:ed)? (?:code|status)\W{1,3}137\b|\bsigkill\b|killed by (?:signal )?9\b|\bkilled (?:python|process|worker)\b|\b(?:received|got|gets?|says?|shows?|prints?|printed|just|was|is|were) \W{0,2}killed\b(?! by)"),
    ("fail.out-of-memory", 1.8, r"(?:more|high|extra|full|too much|enough) (?:gpu |cuda |device |cpu |host |system )?(?:memory|ram)\b|memory (?:\w+ ){0,3}exceed\w*|exceed\w* (?:\w+ ){0,3}memory"),
    ("fail.out-of-memory", 2.2, r"\b(?:us(?:e|es|ed|ing)|consum\w+|tak(?:e|es|en|ing)|needs?|requir\w+) (?:\w+ ){0,2}more (?:\w+ )?(?:memory|vram)\b"),
    ("fail.out-of-memory", 3, r"\b(?:huge|enormous|massive|excessive|insane|gigantic|unreasonable) (?:\w+ ){0,2}(?:memory|ram|vram)\b|\b(?:memory|ram|vram) (?:\w+ ){0,2}(?:blow\w*|blew|explod\w*|skyrocket\w*)|\b(?:can ?not|can[’']?t|could(?:n[’']?t| not)|only|unable to) (?:able to )?(?:set|use|increase|fit|double|raise) (?:\w+ ){0,3}batch[ _-]?size"),
    ("fail.out-of-memory", 3, r"显存(?:不足|不够|溢出|爆)|爆显存|内存(?:不足|溢出)"),
    ("fail.checkpoint-unusable", 3, _failing(r"checkpoints?|model ?checkpoint|sav(?:e|es|ing|ed)|\w*save_(?:model|weights|checkpoint)|load_weights|\w*state_dict|restor(?:e|es|ing|ed)|serializ\w+|pickl\w+|export(?:ing)?|resum(?:e|ing)", rf"(?:{_FAIL}|mismatch\w*|missing keys?)")),
    ("fail.checkpoint-unusable", 3, rf"\b{_FAIL}\b[^.?!;]{{0,60}}(?:{_LOADED})[^.?!;]{{0,80}}(?:{_SEVERAL})|(?:{_SEVERAL})[^.?!;]{{0,80}}(?:{_LOADED})[^.?!;]{{0,60}}\b{_FAIL}\b|(?:{_SEVERAL})[^.?!;]{{0,60}}\b{_FAIL}\b[^.?!;]{{0,40}}(?:{_LOADED})|(?:{_SEVERAL})[^.?!;]{{0,60}}\bnot (?:be(?:ing)? )?(?:load|restor)\w*"),
    ("fail.checkpoint-unusable", 3, r"\b(?:checkpoints?|(?:saved |trained )?(?:model|weights|adapters?)) (?:\w+ ){0,3}?(?:saved|stored|written|exported)\b[^.?!;]{0,60}\b(?:incorrect|wrong|corrupt\w*|broken|empty|incomplete|useless|different)\b|\b(?:incorrect|wrong|corrupt\w*|empty|incomplete) (?:\w+ ){0,2}(?:checkpoints?|saved (?:model|weights))\b"),
    ("fail.segmentation-fault", 4.5, rf"seg(?:mentation|ment)?[ -_]?(?:fault|error)\w*|segfault\w*|\bsigsegv\b|signal 11|core dump(?:ed)?|address not mapped|invalid permissions|{_ENDED}[^.?!]{{0,30}}?(?:-11|139|245|-6|134|250)\b"),
    ("fail.memory-issue", 4.5, rf"{_ENDED}[^.?!]{{0,30}}?(?:-7|135|249)\b|\bsigbus\b"),
    ("fail.attribute-not-found", 2.5, _failing(r"attributes?")),
    ("fail.attribute-not-found", 3.5, r"attribute ?error|has no attribute|no attribute\b|have the attribute"),
    ("fail.other", 3, r"unexpected keyword argument|missing \d+ required (?:positional|keyword)"),
    ("fail.memory-issue", 3, r"memory leak\w*|leak\w* memory|\bshm\b|shm-size|shared memory|double free|memory corrupt\w*|(?:memory|ram) (?!by\b)(?:\w+ ){0,4}(?:grow|incr|keeps?|diverg|ris(?:e|ing)|climb|explod|accumulat)\w*|(?:grow|incr|ris|climb)\w*ing (?:\w+ ){0,3}(?:memory|ram)\b|bus error"),
    ("fail.path-error", 2, r"(?<!\.c: )(?<!\.cc: )(?<!\.cpp: )(?<!\.cu: )(?<!\.h: )no such file|file ?not ?found|permission denied|(?:file|path|directory|folder) (?:does not|doesn.?t|not) (?:exist|found)|can(?:not|.?t) (?:find|open|read) (?:the )?(?:file|path|directory|script)"),
    ("fail.not-implemented", 3, r"not ?implemented|unimplemented\w*"),
    ("fail.not-implemented", 1.5, r"(?<!operation )not (?:yet |currently )?supported|unsupported|does(?:n.?t| not) (?:yet |currently )?support"),
    ("perf.unexpected-parallelization-or-device", 3, r"only (?:sees?|finds?|detects?|recogni[sz]es|lists?) (?:\w+ )?(?:one|1|a single|single|first)\b|only (?:on )?(?:one|1|a single|the first|single|gpu[ :]?0|rank 0|half|\d of)\b(?: of (?:the|my|its|them))?(?:[\w' ]{0,30})\b(?:used?|using|utili[sz]ed|runs?|running|works?|working|busy|active|under load|train\w*|gpus?|core|process)|(?:uses?|using|utili[sz]\w+|train\w*|runs?|running|happen\w*|works?) (?:only )?(?:on )?only (?:on )?(?:one|1|a single|the first|single|2|two|gpu[ :]?0)|only us(?:es|ing) (?:one|1|a single|the first|single|gpu[ :]?0|(?:two|three|\d) (?:gpus|cards|devices))"),
    ("perf.unexpected-parallelization-or-device", 3, r"(?:gpus?|cards?|devices?|cores?|nodes?|machines?|workers?) (?:is|are|was|were|remains?|stays?|sits?|set|sitting|staying|being|keeps?)?(?: still| just| completely)? ?(?:not (?:be(?:ing)? )?(?:used|utili[sz]ed|working|recogni[sz]ed|participating)|unused|idle|.?0 ?%)|not (?:using|utili[sz]ing|use|taking|seeing|detecting|recogni[sz]ing) (?:all|both|multiple|the (?:second|other|gpu)|second|my|any|more)|size\(\)\W{0,3} (?:is|returns?|always|equals?|=+)|(?:size|rank|world_?size) (?:is |returns? |always |equals? |gives? )+(?:is )?[01]\b|(?:every|all|each|multiple|extra|additional|more)\W++(?:\w++\W++){0,3}?process(?:es)?\W++(?:\w++\W++){0,6}?gpu[ :#]?0|(?:processes|memory) (?:are |is )?(?:\w+ ){0,2}on (?:the )?(?:gpu[ :#]?0|first gpu|same gpu)|more (?:gpus|processes) (?:are )?(?:used )?than|wrong (?:gpu|device)|(?:fall\w*|switch\w*|run\w*) (?:back )?(?:to|in) (?:serial|single[- ]process|sequential)\b|gpu-?util\w* (?:is |was |stays? |remains? )?(?:always |still )?0 ?%|can(?:not|.?t) (?:do|use|run|make) multi(?:ple)?[- ]?gpus?|(?:on|to|share|sharing|use|using) (?:the )?same gpu\b(?! num)|(?:only|all|everything|always) (?:\w+ ){0,3}gpu[ :#]?0\b|只(?:有|用|使用|能用)\S{0,8}(?:一张|一块|单卡|一个)"),
    ("perf.unexpected-parallelization-or-device", 2.5, r"\b(?:process(?:es|ors?)?|ranks|workers|jobs?|models?|training|batch(?:es)?)\b(?! per\b)(?:(?!still\b)[^.?!;]){0,60}\b(?:on|in|to|of|use[sd]?|using|run(?:s|ning)?|bound|occup(?:y|ies|ied)) (?:\w+ ){0,3}?(?:all|each of|every|same|wrong|only|both) (?:\w+ )?(?:the )?(?:\d+ ?)?(?:gpus?|cards?|devices?)\b|\b(?:one|each|a single|every) process(?:es)?\b[^.?!;]{0,40}\b(?:two|2|all|both|multiple|several|4|8) (?:of )?(?:the )?(?:gpus|cards|devices)|\b(?:another|other|second|rest)(?: one| card| gpu)?s? (?:is|are|was|were|stays?|remains?) (?:\w+ )?(?:idle?|idel|unused|empty|free|not (?:used|working))"),
    ("perf.unexpected-parallelization-or-device", 2.5, r"\b(?:it|still|keeps?|always|would|but)\b(?:\W++\w++){0,3}?\W++(?:assign|plac|put|distribut|spread|us|occup|load|alloc|tak)(?:s|es|ed|e|ing|ting|y|ies)?\b(?:\W++\w++){0,4}?\W++(?:all|every|both|the other)(?: the| of the| my| \d+| available| visible)* (?:gpus?|cards?|devices)\b"),
    ("perf.unexpected-parallelization-or-device", 2.5, r"\ball (?:the |my |of the )?(?:other |visible |available )?(?:\d+ )?(?:gpus?|cards|devices)\b (?:will be|are|is|were|get|gets|still) (?:\w+ )?(?:trained|used|occupied|running|allocated|taken|busy)\b"),
    ("perf.unexpected-parallelization-or-device", 2.5, r"\bonly (?:got|get|see|saw|have|had|find|found) (?:\w+ ){1,4}(?:occupied|used|busy|utili[sz]ed|working|running|active)\b|\brefuses? to use (?:more|all|both|the other|multiple)\b|\bnot all (?:\w+ ){0,2}(?:gpus?|cards?|devices?|cores)\b"),
    ("perf.unexpected-parallelization-or-device", 1.5, r"same gpu\b(?! num)|gpu[ :#]?0\b"),
    ("perf.unexpected-parallelization-or-device", 2, r"(?:work|runn?|happen|execut|plac|comput|reduc)(?:e|s|es|ed|ing)? on (?:the )?cpu\b|on (?:the )?cpu ?\?|cpu instead of (?:the )?gpus?"),
    ("perf.unexpected-parallelization-or-device", 3, r"(?:load|memory|gpu|usage|utili[sz]ation)\W++(?:\w++\W++){0,2}?(?:im|un)balanc\w*|(?:im|un)balanced?\W++(?:\w++\W++){0,2}?(?:load|memory|gpus?|usage|utili[sz]ation)|(?:\b(?:first|one|main|master|rank[- ]?0|0th)\b|(?:gpu|card|device)[ :#-]?0\b)\W*+(?:gpu|card|device|process)?\W*+(?:\w+\W+){0,3}?(?:more|higher|most|extra|too (?:much|high|many)) (?:\w+ ){0,2}(?:memory|vram|ram)|(?:tak(?:es?|ing)(?: up)?|us(?:es?|ing)|occup(?:y|ies|ying)|allocat(?:es?|ing)) (?:\w+ ){0,3}memory on (?:the |my )?(?:main|primary|first|master|one)\b|memory\W++(?:\w++\W++){0,4}?(?:than|compared (?:with|to)) (?:the )?other (?:gpus|cards|devices)"),
    ("perf.other", 3.5, r"\b(?:still|keeps?|remains?|stays?|left) (?:running|active|alive|up)\b[^.?!;]{0,30}\bafter\b[^.?!;]{0,60}\b(?:complet\w+|finish\w*|succe\w+|ended|done|over|failed)\b|\b(?:master|chief|ps|worker|server|pods?|driver|launcher|job)s? (?:\w+ )?(?:failed|died|exited|completed?|succeeded) but\b[^.?!;]{0,60}\b(?:still|keeps?|remains?|status|is|are) (?:\w+ ){0,2}(?:running|active|alive|up)\b"),
    ("perf.other", 3, r"\b(?:ctrl ?\W? ?c\b|kill(?:ed|ing)?\b|interrupt\w*|terminat\w+|stop(?:ped|ping)?\b|ends?\b|ended\b|finish\w*)[^?!]{0,100}?(?:(?:memory|vram|gpus?|process(?:es)?|ports?)\b[^.?!]{0,40}\b(?:still|not (?:be )?(?:released|freed|killed|cleaned)|never released|remain\w*|left behind|occupied)|\b(?:still|left behind|remain\w*)\b[^.?!]{0,40}(?:memory|vram|process(?:es)?))|\bzombie|\borphan\w* process|\bleft behind\b"),
    ("perf.low-efficiency", 1.5, r"\bspeed[- ]?up\b|\bspeed\b(?! (?:comparison|test|benchmark|between)\b)|\bscal(?:ing|es?|ability)\b(?! (?:the )?(?:learning|lr|batch|loss|factor))|throughput|\befficien\w+|\bbandwidth\b"),
    ("perf.low-efficiency", 1.5, r"\bspeed[- ]?up\b|\bspeed\b|\bscal(?:ing|es?|ability)\b(?! (?:the )?(?:learning|lr|batch|loss|factor)|(?: linearly| quadratically)? (?:with|w/) )|throughput|\befficien\w+|\bbandwidth\b"),
    ("perf.low-efficiency", 3, r"\bslow(?:er|ly|s|ness|down|downs)?\b|(?:low|poor|bad|worse|no|not|less|half|drop\w*|decreas\w+) (?:\w+ ){0,3}(?:speed(?:[- ]?up)?|scal(?:ing|ability)|throughput|efficien\w+|bandwidth)\b|(?:speed(?:[- ]?up)?|scal(?:ing|ability)|throughput|efficiency|bandwidth) (?:\w+ ){0,4}(?:low|poor|bad|wors|drop|decreas|degrad|half|only|not|n[’']t|limit)\w*|\binefficien\w+|(?:太|很|变|更|越来越|速度)慢|(?:no|not|n[’']t) (?:\w+ ){0,3}(?:any |much )?(?:gain|benefit)s?\b|time (?:\w+ ){0,3}(?:almost |nearly |about |roughly )?(?:the )?same\b(?! (?:settings?|config\w*|hyper\w*|parameters?|batch\w*|models?|data\w*|codes?|scripts?|commands?))|(?:\bno|\bnot|n[’']t|should be|expect\w*|supposed) (?:\w+ ){0,5}faster\b|\bfaster (?:on|with|using|than) (?:\w+ )?(?:one|1|a single|single|multi\w*)\b|(?:not|n[’']t) (?:\w+ ){0,2}(?:shorten|reduce|save|cut|change|increase|decrease|affect) (?:\w+ ){0,2}(?:training |running )?(?:time|speed)\b|bottleneck|(?:takes?|took) (?:\w+ ){0,3}(?:longer|more time|too long|forever)|(?:train\w*|epoch|it) (?:takes|took) (?:around |about )?\d+ ?(?:hours|mins?|minutes)|low (?:gpu )?(?:util|usage)\w*|gpu[- ]?(?:util|usage)\w* (?:\w+ ){0,3}(?:low|drop|poor|decreas|fluctuat|fell|falls?\b|falling|goes down)\w*|time per (?:step|epoch|iteration)|(?:load(?:ing)?|data|step|iteration|epoch|training|running) time (?:\w+ ){0,3}(?:increas|grow|longer|doubl)\w*|overhead|(?:no|not) (?:\w+ ){0,3}(?:performance|speed) (?:boost|gain|improvement)|(?:performance|speed|throughput|bandwidth) (?:\w+ ){0,3}(?:not|n[’']t) (?:\w+ )?improv\w*"),
    ("perf.low-efficiency", 2, _near(r"(?:training|step|epoch|iteration|running|execution|data|loading)? ?(?:times?|speeds?|throughputs?)|images?/sec\w*|samples/sec\w*|fps", r"differs?|differences?|var(?:y|ies)|gaps?|regress\w*|degrad\w*|doubl\w+|increas\w+|the same|longer|decreas\w*|reduced|unstable", 5)),
    ("perf.low-efficiency", 2.5, r"\b(?:training |running |epoch |step )?(?:time|speed)s?\b[^.?!;]{0,60}\b(?:not (?:too |very |that |so |much )*(?:different|changed|better)|no (?:big |much |obvious |significant )?(?:difference|change)|(?:almost |nearly |roughly )(?:the )?(?:same|equal|unchanged))\b"),
    ("perf.low-efficiency", 1.4, _near(r"performance", r"differs?|differences?|var(?:y|ies)|gaps?|regress\w*|degrad\w*|doubl\w+|increas\w+|the same|decreas\w*|reduced|unstable", 5)),
    ("perf.low-efficiency", 3, r"\b(?:only|just|about|around|at most|less than|below|up to|merely) (?:gets? |got |reach(?:es)? |have |see )?(?:about |around )?\d[\d.]* ?(?:[kmgt]i?b(?:it)?s?|[kmgt])(?:/s(?:ec)?|ps)\b"),
    ("perf.low-efficiency", 1.5, r"(?:performance|perf) (?:\w+ ){0,3}(?:drop|decreas|degrad|los|wors|regress|bad|poor|issue|problem|did not|doesn.?t)\w*|(?:poor|bad|low|worse) (?:\w+ )?performance"),
    ("perf.unexpected-intermediate-result", 2.5, r"(?:different|wrong|inconsistent|incorrect|unexpected|weird|strange|inaccurate|bad) (?:\w+ ){0,2}(?:loss(?:es)?|results?|outputs?|gradients?|grads?|weights|values?|metrics?|accurac(?:y|ies)|parameters?|predictions?|behaviou?rs?|learning rate)|\bsame (?:\w+ )?(?:loss(?:es)?|results?|outputs?|gradients?|grads?|values?|metrics?|predictions?)\b|(?:wrong|inconsistent|incorrect|unexpected|weird|strange) (?:\w+ ){0,2}(?:numbers?|models?)\b|(?:low|lower|worse|poor) (?:validation |test |eval\w* |val )?results? (?:when|if|after) (?:validat|evaluat|test|infer)\w*|(?:validation|evaluation) (?:\w+ ){0,5}(?:is |are )(?:broken|wrong|incorrect)|only (?:sees?|ha(?:s|ve)|gets?|contains?|returns?) (?:half|its (?:own )?(?:share|part)|(?:a |the )?(?:part|fraction|subset|portion))\b|inconsisten\w+ (?:in|of|between) (?:\w+ ){0,3}(?:validation|eval\w*|results?|metrics?)|(?:loss(?:es)?|results?|outputs?|gradients?|grads?|weights|values?|metrics?|accuracy|parameters?|predictions?|learning rate) (?:\w+ ){0,4}(?:differ(?!ent (?:gpus?|devices?|nodes?|process\w*|ranks?|machines?|workers?|cards?)\b)\w*|wrong|inconsistent|incorrect|not (?:the )?(?:same|equal|averaged|synced|synchroni[sz]ed|reduced|updated|shared|match\w*)|mismatch\w*|diverge\w*|zero|lower|higher|too (?:high|low))|not (?:averag|reduc|synchroni[sz]|aggregat|updat)\w+|(?:not|n[’']t) (?:give|be|get) (?:you )?(?:back )?the (?:exact|average|same|right|correct)\b|\bnot the (?:exact|same|right) (?:result|loss|value|gradient)s?"),
    ("perf.unexpected-intermediate-result", 2.5, _near(_NUMBERS, _UNLIKE, 8)),
    ("perf.unexpected-intermediate-result", 2.5, rf"\b(?:{_NUMBERS}) (?:\w+ ){{0,6}}(?:inferior|worse|poor(?:er)?|degraded)\b|\b(?:inferior|worse|poorer|degraded) (?:\w+ ){{0,2}}(?:{_NUMBERS})\b"),
    ("perf.unexpected-intermediate-result", 2, r"\btraining (?:mismatch(?:es)?|discrepanc(?:y|ies)|differences?) (?:between|among|across)\b"),
    ("perf.unexpected-intermediate-result", 2.5, rf"\b(?:{_NUMBERS}|acc|behaviou?rs?)\b[^.?!;]{{0,120}}\b(?:is|are|was|were) (?:\w+ )?different (?:from|with|to|than|compared)\b"),
    ("perf.unexpected-intermediate-result", 2, r"\bmetrics? (?:\w+ )?(?:errors?|issues?|problems?|bugs?)\b|\b(?:logged|reported|aggregated|averaged) (?:metrics?|values?|loss\w*)\b[^.?!;]{0,80}\b(?:issues?|problems?|wrong|incorrect|different|misplaced|not)\b"),
    ("perf.unexpected-intermediate-result", 2.5, rf"\bno (?:effect|influence|impact) on (?:the |my )?(?:\w+ )?(?:{_NUMBERS})|\bsurpris\w+,? [^.?!;]{{0,60}}(?:the same|identical|different)\b"),
    ("perf.unexpected-intermediate-result", 3, r"\b(?:no|without|breaks?|broken|missing|lost|skips?|disables?) (?:the )?gradient (?:sync\w*|reduction|communication|averaging|exchange|all-?reduce)"),
    ("perf.unexpected-intermediate-result", 1.5, r"\b(?:wrong|incorrect|uncorrect|unexpected|curious|weird|strange|inconsistent) (?:\w+ ){0,3}(?:steps?|batches|samples|iterations|epochs?|global_?steps?|values?|averages?)\b|\b(?:steps?(?: per epoch)?|batches|samples|iterations|global_?steps?|metrics?|averages?) (?:\w+ ){0,6}(?:wrong|incorrect|uncorrect|unexpected|curious|weird|strange|inconsistent)\b"),
    ("perf.non-convergence", 4, r"(?:my|the) (?:metric|score) is|\bf1\b (?:score|on)"),
    ("perf.non-convergence", 3, r"\b(?:loss(?:es)?|rewards?|accurac(?:y|ies)|scores?|both|metrics?|curves?)\b[^.?!;]{0,40}\b(?:fluctuat\w+|oscillat\w+)|\bno (?:upward|downward) \w+"),
    ("perf.non-convergence", 3, r"不收敛|损失不下降|掉精度|(?:精度|准确率)\S{0,12}(?:下降|降低|减小|变低|更低|不如|很低|较低)|\baccuracy (?:\w+ ){0,2}(?:issue|problem|gap)s?\b|(?:difference|gap) in accuracy|less accurate|\bflat[- ]?lin(?:e|es|ed|ing)\b|(?:not?|never|n[’']t|fail\w* to|hard to|slow\w*|without|worse|poor) (?:\w+ ){0,2}converg\w*|converg\w* (?:\w+ ){0,3}(?:issue|problem|slow|wors|differ|fail|bad|poor)\w*|\bdiverg\w+|(?<![a-z])nans?(?![a-z])|loss (?:\w+ ){0,3}(?:explod|(?:very |too |extremely )?(?:large|huge|high\b)|not (?:decreas|drop|go|chang|improv)|\w*n[’']t (?:decreas|drop|go|chang|improv)|increas|stuck|constant|inf)\w*|(?:not|n[’']t) (?:learn|train)\w* (?:anything|well|at all|properly|correctly)|(?:accura?c?y|accuracies|accuarate|score|auc|map|bleu|performance) (?:\w+ ){0,4}(?:less than|drop|lower|decreas|degrad|wors|poor|bad|much low|stays?|stuck|low)\w*|(?:lower|worse|bad|poor|low|less) (?:\w+ ){0,2}(?:accuracy|score|auc|map|bleu)|(?:much|far|very|extremely|way) (?:higher|larger|bigger|large|huge) loss\w*|ideal accuracy|different accurac(?:y|ies)|reproduc\w+ (?:\w+ ){0,3}(?:accuracy|results?)"),
)  # fmt: skip
_VAGUEST = 1.5  # points: cues of these failures with as few name no more than the thing
_OF_THINGS = frozenset(
    ("comm.setup-failure", "prep.communication-error", "prep.device-error", "prep.model-loading-failure", "fail.graph-execution-error")
)  # fmt: skip
CUES = tuple(
    Cue(
        symptom,
        points,
        re.compile(text, re.IGNORECASE),
        (points <= _VAGUEST and symptom in _OF_THINGS) or text in (_DDP_FAILS, _START_FAILS),
    )
    for symptom, points, text in _TABLE
)

FAILURE = re.compile(rf"\b{_FAIL}\b(?:{_GAP}[\w./'’-]+){{0,6}}", re.IGNORECASE)
# An error in so many words, where FAILURE is content with "does not".
ERROR = re.compile(
    r"报错|失败|错误|(?:error|exception)s?\b|\b(?:fail\w*|crash\w*|broken|bugs?|problems?|issues?|trouble|unable|not able|not work\w*|no longer (?:work\w*|supported|possible)|snag|(?:fix|solve|resolve) (?:it|this|that)|can ?(?:not|[’']?t)(?: be)? (?:connect|work|start|communicate)\w*)\b",
    re.I,
)
# Reports of others, and a question whether there would be trouble, tell of none.
MENTION = re.compile(
    r"\bsame (?:issue|problem|question)s?\b(?: here)?|\bthanks? (?:you )?for (?:reporting|filing|opening|raising)\b[^.?!]{0,40}|\bth(?:is|e) (?:issue|thread|question) (?:has been|was|is|will be) (?:automatically )?(?:marked|closed|locked|stale|reopened)\b[^.?!]{0,80}|"
    r"https?://\S+|\btr(?:y|ied|ying) (?:\w+ ){0,4}on (?:different|other|another|several) (?:machines?|servers?|computers?|clusters?)\b[^.?!]{0,30}|\bi (?:do|did|could|can)(?: ?not|n[’']?t) (?:really |quite |\w+ly )?(?:know|understand|get (?:it|this|that|the point)|figure|start|use|run|set|have|need|want)\b|\b(?:make|making|be) sure (?:that )?(?:nothing|everything|no|it|this|all)\b[^.?!]{0,60}|\b(?:when|if|in case|once) (?:some|an?|one|any|the|several)\b(?: [\w-]+){0,5} (?:fails?|dies?|crash(?:es)?|go(?:es)? down|(?:is|are|get|gets) (?:lost|killed))\b[^.?!]{0,80}\?|\b(?:read\w*|see|saw|seen|found|search\w*|look\w*|refer\w*|according to|mentioned|through|from|per|related to)\W++(?:\w++\W++){0,3}?issues?\b"
    r"|\b(?:is|are|will|would|can|could) there (?:be )?(?:any |an? |some )?(?:problems?|issues?|bugs?|errors?|troubles?)\b[^.!?]{0,80}\?"
    r"|\bis (?:it|this|that) (?:just |maybe |perhaps )?an? (?:\w+ )?(?:bug|issue|problem|error)\b(?! that)"
    r"|\b(?:duplicated?|related|similar) issues?\b|\b(?:could|can) ?(?:not|n[’']?t) find (?:a|an|any|the)\b[^.?!]{0,80}\b(?:example|tutorial|doc\w*|guide|sample|information|explanation)s?\b"
    r"|\b(?:no|not|never|without) hang(?:s|ing)?\b"
    # layers that do not learn stand still on purpose
    r"|\b(?:un)?(?:freez(?:e|es|ing)|frozen)(?:[_-]?(?:batch|bn)\w*| (?:the |all |some |my |other |these |those |its |bottom |first |last |lower |pre-?trained |\d+ )*(?:weights?|layers?|backbones?|encoders?|decoders?|param\w*|model weights|bn|batch\w*|embed\w*|stages?|bert|modules?|networks?|generator|discriminator|llm|vit|unet|vae|text encoder)\b)"
    r"|\b(?:layers?|weights|parameters|params|backbone|encoder|model) (?:is|are|was|were|be|being|kept|get) (?:\w+ly )?frozen\b"
    # who cannot go on from a checkpoint, and is not kept waiting
    r"|(?<=not )continue(?= (?:\w+ ){0,3}from\b)|(?<=[’']t )continue(?= (?:\w+ ){0,3}from\b)"
    # who is stuck, and not what
    r"|\b(?:i|we)(?:[’']?m| am|[’']re| are| was| were| have been|[’']ve been| got| get| feel) (?:\w+ly |so |a bit |kind of )?stuck(?: (?:on|with|at|in|here|there) (?:this|that|it|the (?:issue|problem|error))\b(?! (?:line|step|point|stage|part|place|function|call|epoch|iteration))| here\b)|\b(?:i|we)(?:[’']?m| am|[’']re| are| have been|[’']ve been) \w+ly stuck\b"
    r"|\bnot (?:really |quite |entirely )?sure (?:if|whether) (?:it|this|that)(?: is|[’']s)? (?:an? |intended|expected)[^.?!]{0,60}"
    r"|\bless (?:of )?an? (?:bug|issue|problem|error)\b|\bnot (?:really |actually |exactly )?an? (?:bug|issue|problem|error)\b"
    # what cured it, and with what it may be seen
    r"|\b(?:(?:re|un)?install\w*|downgrad\w*|upgrad\w*|updat\w*|switch\w*|revert\w*|roll\w* back|mov\w+) (?:back )?(?:to )?[\w.=<>~`-]++(?: [\w.=<>~`-]++){0,4}? (?:fix\w*|solv\w*|resolv\w*|help(?:s|ed)|works?|worked|cur\w+)\b[^.?!¶]{0,40}|\b(?:notebook|colab|gist|script|code|repo\w*)\b(?: \w+){0,3} to reproduce\b[^.?!¶]{0,60}"
    # what authors did, what would be if, what may be, and what is not so
    r"|\bwhy (?:are|do|did|have) you\b[^.!?]{0,120}\?|(?<![^.!?¶] )\bif (?:you|i|we|one) (?:use|train|run|want|set|keep|change)\b[^.!?]{0,160}\?"
    r"|\b(?:may|might|could) (?:also |even |well )?(?:result in|lead to|cause|run into|be)\b[^.!?]{0,40}|\bif (?:there is|there's) (?:something|anything) wrong\b"
    # with what it was compared: "did not happen when I used only 1 GPU"
    r"|\b(?:when|if|while|with|using|than|by|on) (?:i |we |you |it )?(?:am |are |is )?(?:us(?:e|es|ed|ing)|train(?:ed|ing)?|r[ua]n(?:ning)?|set|have|had)? ?(?:on |with |it on )?only (?:one|1|a single|single)\b(?: \w+)?"
    r"|\b(?:i (?:only )?(?:have|used?|tried)|there (?:is|are)|(?:have|has|but|with) just|(?:i|we) (?:just )?have got) only (?:one|1|a single|single)\b(?: \w+)?"
    r"|\b(?:will|would|may|might|could|can) (?:\w+ )?be (?:\w+ )?(?:slow(?:er)?|faster|different)\b"
    r"|\bthere (?:is|are) no such (?:problem|issue|error)s?\b|\b(?:issues?|problems?) (?:regarding|concerning)\b|\bno (?:issues?|problems?|errors?) (?:when|with|at all|if|on)\b|\b(?:works?|worked|runs?|ran|train\w*|complet\w+|finish\w*) (?:\w+ ){0,4}without (?:any )?(?:errors?|problems?|issues?)\b",
    re.I,
)
HANG = re.compile(
    r"(?<!about )(?<!about a )\bhang(?:s|ed|ing|up|ups|-ups?)?\b|\bhung\b|\bstucks?\b|\bfreez\w+|\bfroze\w*|(?<!fixes a )(?<!fixed a )dead ?lock\w*"
    r"|\bnever (?:halts?|(?:\w+ ){0,2}(?:g[eo]ts?|got|went|goes|exec\w+|proceed\w*|mov\w+|pass\w*) (?:beyond|past|any further|further))\b"
    r"|\bnever (?:halts?\b|(?:\w+ ){0,2}(?:g[eo]ts?|got|went|goes|exec\w+|proceed\w*|mov\w+|pass\w*) (?:beyond|past|any further|further)\b)|\bno (?:any )?(?:further|more) steps (?:are|were|is|get) "
    r"|never (?:returns?|finish\w*|ends?|exits?|starts?|complet\w*)|blocks? (?:forever|for ever|indefinitely)|\bblock(?:s|ed|ing)? (?:at|in|on) (?!list)|\bstall(?:s|ed|ing)?\b"
    # it has stopped, and holds its GPUs
    r"|\b(?:stop(?:s|ped|ping)?|interrupted)\b[^?]{0,300}?(?:\bmemory (?:\w+ )?(?:still |keeps? |be )?(?:occupied|held|in use)\b|util\w*\W++(?:\w++\W++){0,4}?(?:0|100)\b|\bused 100 ?%|\b(?:0|100) ?% (?:gpu )?util|\bstops? (?:out)?putting)"
    r"|waits? (?:forever|for ever|indefinitely)|wait(?:s|ed|ing)? (?:for )?(?:about |more than |over )?(?:a |several |some |many |few |long |\d+ )*(?:hours|minutes|mins|days|time)\b|no (?:response|output|reaction|progress)|(?:sees?|gets?|prints?|shows?) no logs?\b|not respond\w*|nothing (?:happens|is (?:printed|output))"
    r"|not? (?:exit|terminat|proceed|progress|continu)\w*|time[ds]?[- ]?out(?!\W{1,3}(?:arg\w*|param\w*|values?|settings?|options?|flags?|config\w*|handling)\b)|timing out|卡(?:在|住|死|主)|一直不动|不动了|挂起|没有?反应|死锁|超时",
    re.I,
)
# At which stage a job that stands still stands: each time one of these is said.
STAGES: tuple[tuple[Stage, float, re.Pattern[str]], ...] = (
    (Stage.COMM, 1.5, re.compile(r"init_process_group|init_\w*(?:group|process|method)|hvd\.init|\.init\(\)|\binit\b|\binit\w*[sz](?:e[sdr]?|ing|ation)\b|rendezvous|tcp ?store|master_addr|createsession|waiting for (?:response|workers?|session)|server\.join|started server|tf_config", re.I)),
    (Stage.COMM, 1.0, re.compile(r"\bspawn(?:s|ing|ed)?\b|\b(?:at|on|during|when|while|in) (?:the )?(?:start\w*|begin\w*|launch\w*|connect\w*|setup)|mpirun|horovodrun|torchrun|mpiexec|ssh\b|no (?:output|log|error)|nothing|(?:two|2|multi(?:ple)?|several|different)[- ]?(?:nodes?|machines?|hosts?|servers?|containers?)|docker|multi[- ]?worker\w*|firewall|(?<!user )interface|network (?:interface|card|setting|config\w*|problem|connection)s?|same network|kubectl|kube\w+|(?:pytorch|mpi|tf|train)jobs?\b|\bpods?\b|operator|placement groups?|ray status|autoscaler|(?:does|did|do|will)(?:n.?t| not) (?:run|start)\b|never (?:gets? )?start(?:s|ed)?\b|not start(?:ing|ed)?\b", re.I)),
    (Stage.PREP, 2.0, re.compile(r"tokeni[sz]\w+|pre-?process\w*|dataset\.map|main_process_first|(?:data ?set|data)\W++(?:\w++\W++){0,2}?(?:load|process|map|prep\b|prepar|read|download)\w*|prepp?(?:ing|ed)? (?:the |my |a )?data\w*|before (?:the |actual )*train\w*|(?:DDP|DistributedDataParallel|DataParallel|FSDP) ?\(|broadcast_\w+|broadcastglobalvariables\w*|broadcasting|(?:load|read|download|prepar)(?:s|ing)? (?:the |my |a )?(?:data|dataset|model|weights)|from_pretrained|line \d+,? .{0,40}(?:DDP|DistributedDataParallel)|parallel/distributed\.py\W.{0,20}in __init__|_verify_(?:model|param)\w+|_sync_module_states|creat(?:e|es|ing) (?:the )?model|prepare\(|deepspeed\.initialize|load(?:s|ed|ing)? (?:the |a |my |pre-?train(?:ed)? )+(?:model|weights|checkpoint)|wrap(?:s|ping)?\b|(?:to|\.cuda)\(", re.I)),
    (Stage.TRAIN, 1.5, re.compile(r"after (?:the |a |an |about |around |several |some |few |one |first )*(?:\d[\d,.k~-]*\w* ?)?(?:th )?(?:epochs?|steps?|iterations?|batch(?:es)?|hours?|days?|minutes?|while|training|time)|epochs?\b|iterations?\b|(?<!this )(?<!that )(?<!following )(?<!next )\bsteps?\b(?! to reproduce)(?! \d\s?:)|during (?:the )?train\w*|in the middle|randomly|sometimes|intermittent\w*|occasionally|backward|validation|evaluat\w+|end of (?:the )?train\w*|all_?reduce|all_?gather|barrier|stall\w*|optimizer|dataloader", re.I)),
    # what has been got over already
    (Stage.TRAIN, 3.0, re.compile(r"(?:model|weights|checkpoint|data ?sets?|data)(?: is| are| was| were| gets?| has been| have been| all)+ (?:\w+ly )?loaded|connect(?:s|ed)? to each other|(?:process ?group|nccl|distributed|ddp)(?: is| was| gets?| has been)+ (?:\w+ly )?initiali[sz]ed|train\w*(?: process| loop)? (?:does|do|did|will)(?: not|n[’']?t) (?:continue|proceed|progress|go on|move)", re.I)),
    (Stage.TRAIN, 0.7, re.compile(r"\btrain(?:s|ed|ing)?\b|model\.fit|\bfit\b|deadlock|gpu[- ]util\w*|100 ?%", re.I)),
)  # fmt: skip
HANG_AT = {Stage.COMM: "comm.hang-timeout", Stage.PREP: "prep.hang-timeout", Stage.TRAIN: "perf.hang"}
HANG_POINTS = 4.0

# What a failure is about of which nothing else is told: words that a report of this symptom has more often than others.
TOPICS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (symptom, re.compile(text, re.IGNORECASE))
    for symptom, text in (
        ("comm.setup-failure", r"multi[- ]?nodes?|(?:two|2|several|different|multiple) (?:nodes|machines|hosts|servers|instances|containers)|launch\w*|slurm|docker|kubernetes|k8s|\bpods?\b|mpirun|torchrun|init\w*|rendezvous|connect\w*"),
        ("prep.model-loading-failure", r"from_pretrained|pre-?trained|load_(?:state_dict|model|weights)|load\w* (?:\w+ ){0,3}(?:models?|weights|checkpoints?)\b|(?:model|weights) (?:\w+ ){0,2}load\w*"),
        ("prep.other", r"config\w*|arguments?|yaml|preprocess\w*|environment variables?|prepar\w+"),
        ("fail.communication-error", r"distributed(?! optimizer)|workers?\b|backend|fsdp|pipeline|process groups?|parameter ?servers?\b|restart\w*|peers?\b|ranks?\b|nccl|gloo|\brpc\b|ddp|all_?reduce|broadcast|elastic|\bps\b"),
        ("fail.device-error", r"\bgpus?\b|devices?\b|cuda|driver"),
        ("fail.graph-execution-error", r"strategy\b|estimators?\b|keras|graphs?\b|tf\.function|layers?\b|compil\w+|gradient|backward|autograd|optimizer"),
        ("fail.tensor-mismatch", r"shapes?\b|tensors?\b|dimensions?|dtype|loss function|float\d*|labels?\b|inputs?\b"),
    )
)  # fmt: skip

# Symptoms that the same words may mean: what is said for one of them speaks for a known cause of another, too, if less.
FAMILIES: tuple[frozenset[str], ...] = (
    frozenset(HANG_AT.values()),
    frozenset(("prep.communication-error", "fail.communication-error")),
    frozenset(("perf.non-convergence", "perf.unexpected-intermediate-result")),
)
