"""What an exception that no rule knows most likely is: its symptom, and the fixes that fit, by its words and where it was raised."""

from __future__ import annotations

import re
from dataclasses import dataclass

from phalanx.diagnose.threads import is_feeding
from phalanx.model import Event, Frame, Stage
from phalanx.model.lazy import lazy
from phalanx.sources.readers.tracebacks import TRUNCATED


@dataclass(frozen=True, slots=True)
class Guess:
    """A symptom, and patterns of fixes that are more likely than those of the symptom in general."""

    symptom: str
    patterns: tuple[str, ...] = ()


_Stages = dict[Stage | None, str]
_COMMUNICATION: _Stages = {None: "fail.communication-error", Stage.COMM: "comm.setup-failure", Stage.PREP: "prep.communication-error"}  # fmt: skip
_DEVICE: _Stages = {None: "fail.device-error", Stage.PREP: "prep.device-error", Stage.COMM: "prep.device-error"}
_MODEL: _Stages = {None: "fail.graph-execution-error", Stage.PREP: "prep.model-loading-failure"}
_LOADED: _Stages = {None: "fail.checkpoint-unusable", Stage.PREP: "prep.model-loading-failure"}
_API = ("fix-distributed-api-usage", "fix-behavior-logic", "fix-framework-version")
_OWN = ("fix-behavior-logic", "fix-dataset", "fix-command-line")
_OF_TENSORS = ("fix-model-construction", "fix-tensor-api-usage", "fix-data-type")
_TRACED = ("fix-tensor-api-usage", "fix-behavior-logic", "fix-model-construction")

# What the message says.
_WORDS: tuple[tuple[re.Pattern[str], _Stages, tuple[str, ...]], ...] = (
    (lazy(r"undefined symbol|cannot open shared object|^(?:ImportError|ModuleNotFoundError)"), {None: "build.import-error"}, ()),
    (lazy(r"out of memory|MemoryError|ResourceExhausted|OOM\b|bad_alloc|can't allocate memory", re.I), {None: "fail.out-of-memory"}, ()),
    (lazy(r"segmentation|SIGSEGV", re.I), {None: "fail.segmentation-fault"}, ()),
    (lazy(r"^TypeError: cannot pickle|^(?:\w+\.)?PicklingError|[Cc]an't pickle"), {None: "fail.other", Stage.PREP: "prep.other"}, ("fix-behavior-logic", "fix-distributed-api-usage", "fix-data-type")),
    (lazy(r"^\S*(?:Xla|Jax)RuntimeError: (?:UNIMPLEMENTED)"), {None: "fail.not-implemented"}, ("fix-distributed-api-usage", "fix-framework-version", "fix-communication-configuration")),
    (lazy(r"^\S*(?:Xla|Jax)RuntimeError: (?:NOT_FOUND|PERMISSION_DENIED)"), {None: "fail.path-error"}, ()),
    (lazy(r"^\S*(?:Xla|Jax)RuntimeError: (?:UNAVAILABLE|ABORTED|CANCELLED)"), _COMMUNICATION, ()),
    (lazy(r"^\S*(?:Xla|Jax)RuntimeError: (?:INVALID_ARGUMENT).*(?:shape|size|rank|dimension|type)"), {None: "fail.tensor-mismatch"}, _OF_TENSORS),
    (lazy(r"^\S*(?:Xla|Jax)RuntimeError: (?:INVALID_ARGUMENT|FAILED_PRECONDITION|INTERNAL|OUT_OF_RANGE)"), {None: "fail.graph-execution-error"}, ("fix-distributed-api-usage", *_TRACED[:1], "fix-framework-version")),
    (lazy(r"[Tt]h(?:is|e) optimizer (?:can only be called|cannot recogni[sz]e)"), {None: "fail.graph-execution-error"}, ("fix-optimizer", "fix-scope-assignment", "fix-model-construction")),
    (lazy(r"got an unexpected keyword argument|missing \d+ required (?:positional|keyword)"), {None: "fail.attribute-not-found"},
     ("fix-behavior-logic", "fix-framework-version", "fix-distributed-api-usage")),
    (lazy(r"state_dict|checkpoint|\bload_model\b|\.h5\b|unpickl|weights file|pickle", re.I), {None: "fail.checkpoint-unusable"}, ()),
    (lazy(r"initiali[sz]\w+ torch\.distributed|current RPC agent", re.I), {None: "comm.setup-failure"}, ("fix-communication-configuration", "fix-distributed-api-usage", "fix-command-line")),
    (lazy(r"gloo/(?:context|rendezvous)|connectFullMesh"), {None: "comm.setup-failure"}, ("fix-communication-configuration", "fix-network-setting", "fix-distributed-api-usage")),
    (lazy(r"Parallel wrappers|instance of torch\.nn\.parallel"), _MODEL, _API),
    (lazy(r"DistributedValues|PerReplica|replica[ _]context|cross[- ]replica|distribution strategy", re.I), _MODEL, _API),
    (lazy(r"^TypeError: \w*(?:reduce|gather|broadcast|alltoall|scatter)\w*\(\): incompatible function arguments"), _COMMUNICATION, _API),
    (lazy(r"\brendezvous (?:backend|configuration|endpoint|handler|nodes?|option|version)", re.I), {None: "comm.setup-failure"}, ("fix-communication-configuration", "fix-command-line", "fix-distributed-api-usage")),
    (lazy(r"\b(?:NCCL|nccl[A-Z]\w+|Gloo|MPI|socket|connection|connect|rendezvous|process group|peer|collective|grpc|UNAVAILABLE|UnavailableError|store)\b", re.I), _COMMUNICATION, ()),
    (lazy(r"^(?!(?:Type|Value)Error).*(?:timed? ?out|deadline exceeded)", re.I), {None: "perf.hang", Stage.COMM: "comm.hang-timeout", Stage.PREP: "prep.hang-timeout"}, ()),
    (lazy(r"\bCUDA\b|cuDNN|cuBLAS|\bGPU\b|(?<!replica \d on )\bdevice\b", re.I), _DEVICE, ()),
    (lazy(r"shape|size mismatch|dimension|dtype|scalar type|sizes of|same size|must match|Incompatible", re.I), {None: "fail.tensor-mismatch"}, _OF_TENSORS),
    (lazy(r"^(?:NotImplementedError|.*UnimplementedError)|not (?:implemented|supported)"), {None: "fail.not-implemented"}, ()),
    (lazy(r"^(?:AttributeError|NameError|UnboundLocalError)"), {None: "fail.attribute-not-found"}, ()),
    (lazy(r"^(?:FileNotFoundError|NotADirectoryError|IsADirectoryError|PermissionError|FileExistsError)|No such file"),
     {None: "fail.path-error", Stage.PREP: "prep.data-loading-failure"}, ()),
    (lazy(r"gradient|\bgrad\b|autograd|backward|\bgraph\b|tf\.function", re.I), _MODEL, ()),
)  # fmt: skip

# What the user's own line asked a library for, where the library raised it.
_CALLS: tuple[tuple[re.Pattern[str], _Stages, tuple[str, ...]], ...] = (
    (lazy(r"load_state_dict|(?:load|restore)_(?:from_)?checkpoint|load_weights|torch\.load\(|\brestore\(|\bsave\(|save_(?:checkpoint|state|model|weights)"), {None: "fail.checkpoint-unusable"}, ()),
    (lazy(r"load_model\(|from_pretrained\(|model_from_json\(|clone_model\("), {None: "prep.model-loading-failure"}, ("save-single-device-weights-only", "fix-distributed-api-usage", "fix-framework-version")),
    (lazy(r"load_dataset\(|DataLoader\(|Sampler\(|read_csv\(|read_parquet\(|TFRecordDataset\("), {None: "prep.data-loading-failure"}, ("fix-dataset", "fix-dataset-api-usage", "fix-behavior-logic")),
    (lazy(r"_object(?:_list)?\("), _COMMUNICATION, _API),
)  # fmt: skip
# JAX takes its own frames out of tracebacks, so that what it refuses seems to be raised by the user's own line.
_TRACES = lazy(r"\b(?:jnp|jax|lax|optax|flax|nnx)\.")

# A library's function that writes a model, anywhere below the user's line.
_SAVING = lazy(r" save(?:_(?:model|weights|checkpoint|state))?$")

# In which part of which library it was raised, told by the innermost frames that are not the user's.
_PARTS: tuple[tuple[re.Pattern[str], _Stages, tuple[str, ...]], ...] = (
    (lazy(r"torch/distributed/checkpoint/"), _LOADED, ()),
    # A file of text in another encoding; a queue that whoever fills it left empty.
    (lazy(r"^<frozen codecs>|/codecs\.py \w"), {None: "prep.data-loading-failure"}, ("fix-dataset", "fix-behavior-logic", "fix-consistency-between-devices")),
    (lazy(r"/(?:queue|queues)\.py get$"), {None: "prep.data-loading-failure"}, ("fix-dataset-api-usage", "fix-behavior-logic", "fix-memory-or-core-setting")),
    (lazy(r"torch/(?:nn/parallel|distributed)/.* \w*(?:broadcast|barrier|all_?reduce|all_?gather|reduce_?scatter|sync_(?:params|param|module)|verify_param)"), _COMMUNICATION, ()),
    (lazy(r"torch/utils/data/|tensorflow/python/data/|data_adapter|petastorm|webdataset|/datasets/|pandas/|pyarrow/|/PIL/|tfds|h5py/_hl/dataset"),
     {None: "prep.data-loading-failure"}, ("fix-dataset", "fix-dataset-api-usage", "fix-behavior-logic")),
    (lazy(r"jax/experimental/multihost_utils"), _COMMUNICATION, ("fix-consistency-between-devices", "fix-behavior-logic", "fix-distributed-api-usage")),
    (lazy(r"jax/_src/xla_bridge"), _DEVICE, ()),
    (lazy(r"jax/_src/(?:\w*sharding\w*|mesh|partition_spec|shard_map|array)\b"), _MODEL, ("fix-distributed-api-usage", "fix-batch-size-or-data-partition", "fix-device-assignment")),
    (lazy(r"jax/_src/(?:lax|numpy|ops|nn|scipy|dtypes)\b"), {None: "fail.tensor-mismatch"}, _OF_TENSORS),
    (lazy(r"optax/|keras/src/optimizers/"), {None: "fail.graph-execution-error", Stage.PREP: "prep.other"}, ("fix-optimizer", "fix-model-construction", "fix-scope-assignment")),
    (lazy(r"torch/serialization|saving/|saved_model|checkpoint|safetensors|orbax/|flax/serialization|h5py/_hl/files"), {None: "fail.checkpoint-unusable", Stage.PREP: "prep.model-loading-failure"}, ()),
    (lazy(r"torch/distributed/fsdp|torch/distributed/_composable|deepspeed/runtime|torch/nn/parallel"), _MODEL, ("fix-distributed-api-usage", "fix-model-construction")),
    (lazy(r"horovod/(?:spark|run|runner|ray)/"), {None: "comm.setup-failure"}, ("fix-communication-configuration", "fix-dependency-version", "fix-network-setting")),
    (lazy(r"distribute/cluster_resolver/|jax/_src/(?:distributed|clusters/)"), {None: "comm.setup-failure"}, ("fix-communication-configuration", "fix-command-line", "fix-distributed-api-usage")),
    (lazy(r"torch/distributed/(?:elastic|run|launcher|rendezvous|device_mesh)"), {None: "comm.setup-failure"}, ("fix-communication-configuration", "fix-command-line", "fix-distributed-api-usage")),
    (lazy(r"horovod/\w+/.* \w*(?:DistributedOptimizer|distributed_optimizer|gradients|reduce_grads)"), {None: "fail.graph-execution-error"}, ("fix-distributed-api-usage", "fix-optimizer", "fix-framework-version")),
    (lazy(r"torch/distributed/|horovod/(?:torch|tensorflow|keras|common)/|mpi4py|collective_util|cross_device"), _COMMUNICATION, _API),
    (lazy(r"torch/cuda/(?:nccl|comm)\b|torch/nn/parallel/comm\b"), _COMMUNICATION, _API),
    (lazy(r"torch/cuda/|/pynvml"), _DEVICE, ()),
    (lazy(r"torch/nn/functional|torch/nn/modules/(?:conv|linear|loss|sparse|normalization|batchnorm|rnn)|keras/.*(?:ops|layers|losses|metrics)/"),
     {None: "fail.tensor-mismatch", Stage.PREP: "prep.model-loading-failure"}, ("fix-model-construction", "fix-tensor-api-usage", "fix-data-type")),
    (lazy(r"torch/autograd|torch/_dynamo|torch/_inductor|torch/_tensor\.py|eager/(?:def_function|polymorphic|backprop|execute)|distribute/"), {None: "fail.graph-execution-error"}, ()),
    (lazy(r"torch/optim/|/optimizers?/"), {None: "fail.graph-execution-error", Stage.PREP: "prep.other"}, ("fix-optimizer", "fix-learning-rate", "fix-distributed-api-usage")),
    (lazy(r"/json/|/yaml/|configparser|omegaconf|hydra|argparse|tomllib|absl/flags"), {None: "prep.other"}, ("fix-command-line", "fix-behavior-logic")),
    (lazy(r"multiprocessing/(?:spawn|process|context|reduction|popen)|concurrent/futures"), {None: "prep.other", Stage.TRAIN: "fail.other"}, ("fix-behavior-logic", "fix-distributed-api-usage")),
    (lazy(r"jax/_src/|flax/|haiku/|equinox/"), _MODEL, _TRACED),
    (lazy(r"keras/|tensorflow/"), _MODEL, ()),
)  # fmt: skip

_DATA_PLACES = lazy(r"(?:^|/)\w*(?:data|dataset|dataloader|loader|sampler|reader|records?)\w*\.py$", re.I)
_DATA_FUNCTIONS = lazy(r"^(?:__getitem__|__next__|__iter__|__len__|\w*collate\w*|(?:load|read|parse|decode|fetch|get)_\w*(?:data\w*|records?|samples?|batch\w*|images?|rows?|shards?|labels?))$", re.I)  # fmt: skip
_DATA_LINES = lazy(
    r"\bopen\(.*\.(?:csv|tsv|txt|jsonl?|npy)\b|\bopen\(\w*(?:path|file)\w*\).*\bfor\b|\bfor \w+ in open\(|\.split\([\"'](?:,|\\t|;)[\"']\)|\bcsv\.|\bjson\.loads?\(\w*(?:line|row|rec)"
    r"|\b(?:batch|b|sample|item|record|row|example|features)\[[\"']"
    r"|\bnext\((?:iter\()?\w*(?:it|iter|loader|data|dl|train|gen)\w*\)|\bfor .+ in (?:enumerate\()?\w*(?:loader|dataset|data)\b"
)
_DATA_LISTS = lazy(r"\b(?:\w+_)?(?:shards?|files?|filenames|paths?|splits?|partitions?|urls?)\[", re.I)
_OF_THE_LANGUAGE = frozenset(
    ("KeyError", "IndexError", "NameError", "UnboundLocalError", "ZeroDivisionError", "TypeError", "UnicodeDecodeError")
)
# What the language says of words that are no numbers, and of rows with too many or too few of them.
_CONVERSIONS = lazy(
    r"could not convert string|invalid literal for|values to unpack|Expecting (?:value|property name|',' delimiter)"
)
# What the language itself says of types; other words are those of a library whose frames do not show.
_OF_TYPES = lazy(
    r"'\w+' object|unsupported operand|positional argument|unexpected keyword|not supported between|takes (?:no|from|exactly|\d)"
    r"|(?:string|list|tuple|sequence) ind|must be str|expected str|can only concatenate|multiple values for|must be a mapping|after \*"
)
_RENDEZVOUS_VARIABLES = lazy(
    r"environ.{0,12}\b(?:\w*(?:RANK|WORLD|MASTER|COORDINATOR|NPROC|NNODES)\w*|SLURM_\w+|OMPI_\w+|TF_CONFIG)\b"
)
_VARIABLES = lazy(r"\benviron(?:\[|\.__getitem__)")
_OF_VARIABLES = ("fix-command-line", "fix-communication-configuration", "fix-consistency-between-devices")
_STATES = lazy(
    r"load_state_dict|torch\.load\(|\b(?:ck(?:pt)?|checkpoint|snapshot|saved|loaded|state(?:_dict)?)\[[\"']"
)  # what a checkpoint was expected to hold
_DEVICES = lazy(r"\b\w*(?:gpus?|devices?|cuda)\w*\[", re.I)
_RAISES = lazy(r"(?:^|[:;] )(?:raise|assert)\b")
_BY_STAGE: _Stages = {
    Stage.BUILD: "build.import-error",
    Stage.COMM: "comm.setup-failure",
    Stage.PREP: "prep.other",
    Stage.TRAIN: "fail.other",
    None: "fail.other",
}
# Of an exception without telling words or frames: what such exceptions mostly are in training.
_BY_TYPE = {
    "AssertionError": "fail.graph-execution-error",
    "ValueError": "fail.graph-execution-error",
    "TypeError": "fail.graph-execution-error",
    "InvalidArgumentError": "fail.graph-execution-error",
    "InternalError": "fail.graph-execution-error",
    "FailedPreconditionError": "fail.graph-execution-error",
    "IndexError": "fail.tensor-mismatch",
    "XlaRuntimeError": "fail.graph-execution-error",
    "JaxRuntimeError": "fail.graph-execution-error",
}


def guess(event: Event, stage: Stage | None) -> Guess:
    """The likeliest symptom of an exception that no rule knows."""
    if event.source == "build":
        return Guess("build.install-failure")
    if stage is Stage.BUILD:
        return Guess("build.import-error")
    kind = str(event.data.get("type", "")).rsplit(".", 1)[-1]
    asked = event.user_frame.source if event.user_frame is not None else ""
    if _RENDEZVOUS_VARIABLES.search(asked):
        return Guess("comm.setup-failure", ("fix-communication-configuration", "fix-command-line"))
    if kind == "KeyError" and _VARIABLES.search(asked):
        return Guess(_BY_STAGE[stage], _OF_VARIABLES)
    own = _raised_by_user(event, kind)
    if (own is not None or _is_refused_there(event, kind)) and _is_about_data(event):
        return Guess("prep.data-loading-failure", ("fix-dataset", "fix-behavior-logic", "fix-dataset-api-usage"))
    if kind == TRUNCATED and (cut := _where_cut(event, stage)) is not None:
        return cut
    for pattern, by_stage, fixes in _WORDS:
        if pattern.search(event.text):
            return Guess(by_stage.get(stage, by_stage[None]), fixes or (_OWN if own is not None else ()))
    if _TRACES.search(asked) and own is None and event.frames[-1].is_user_code:
        return Guess(_MODEL.get(stage, _MODEL[None]), _TRACED)
    if own is not None and _STATES.search(own.source):
        return Guess(_LOADED.get(stage, _LOADED[None]))
    if own is not None and _DEVICES.search(own.source):
        return Guess(_DEVICE.get(stage, _DEVICE[None]), ("fix-device-assignment", "change-hardware"))
    if own is not None:
        return Guess(_BY_STAGE[stage], _OWN)
    paths = _library_paths(event)
    if any(_SAVING.search(path) for path in paths):
        return Guess("fail.checkpoint-unusable", ("save-single-device-weights-only", "fix-behavior-logic"))
    for text, table in ((asked, _CALLS), *((path, _PARTS) for path in paths)):
        for pattern, by_stage, fixes in table:
            if pattern.search(text):
                return Guess(by_stage.get(stage, by_stage[None]), fixes)
    if _is_about_data(event):
        return Guess("prep.data-loading-failure", ("fix-dataset", "fix-dataset-api-usage", "fix-behavior-logic"))
    if stage in (None, Stage.TRAIN):
        return Guess(_BY_TYPE.get(kind, _BY_STAGE[stage]))
    return Guess(_BY_STAGE[stage])


def _where_cut(event: Event, stage: Stage | None) -> Guess | None:
    """What mostly fails at a place, where the exception itself is cut off: gradients are exchanged in the backward pass of ranks, and
    layers refuse what does not fit them."""
    innermost = event.frames[-1]
    if stage is Stage.TRAIN and event.rank is not None and innermost.function == "_engine_run_backward":
        return Guess("fail.communication-error", ("fix-behavior-logic", *_API[:1], "fix-communication-configuration"))
    if innermost.is_user_code and innermost.function == "forward":
        return Guess("fail.tensor-mismatch", _OF_TENSORS)
    return None


def _raised_by_user(event: Event, kind: str) -> Frame | None:
    """The user's own frame, if the exception was raised there: by a statement of theirs, or by the language itself."""
    if not event.frames or not event.frames[-1].is_user_code:
        return None
    frame = event.frames[-1]
    by_language = kind in _OF_THE_LANGUAGE and (kind != "TypeError" or _OF_TYPES.search(event.text))
    is_own = by_language or _RAISES.search(frame.source) or _CONVERSIONS.search(event.text)
    return frame if is_own else None


def _is_refused_there(event: Event, kind: str) -> bool:
    """Native code that the user's own line called did not take what it was given."""
    return kind in ("TypeError", "ValueError") and bool(event.frames) and event.frames[-1].is_user_code


def _is_about_data(event: Event) -> bool:
    frames = [frame for frame in event.frames if frame.is_user_code]
    return is_feeding(event) or any(
        _DATA_PLACES.search(frame.path) or _DATA_FUNCTIONS.match(frame.function)
        for frame in frames
    ) or bool(frames and (_DATA_LINES.search(frames[-1].source) or _lacks_an_entry(event, frames[-1])))  # fmt: skip


def _lacks_an_entry(event: Event, frame: Frame) -> bool:
    """A list of files or shards is shorter than the ranks that take from it."""
    return event.text.startswith(("IndexError", "KeyError")) and _DATA_LISTS.search(frame.source) is not None


def _library_paths(event: Event) -> list[str]:
    """Files and functions of libraries below the user's last frame, the innermost first."""
    paths: list[str] = []
    for frame in reversed(event.frames):
        if frame.is_user_code:
            break
        paths.append(f"{frame.path} {frame.function}")
    return paths
