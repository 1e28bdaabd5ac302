"""Works out at which stage of its life the job was when something happened: frames first, then progress."""

from __future__ import annotations

import re
from collections.abc import Sequence

from phalanx.model import Event, Frame, Stage
from phalanx.model.lazy import lazy
from phalanx.sources import FileSurvey

_IMPORT = lazy(r"^\s*(?:import\s+\w|from\s+[\w.]+\s+import\s)")
_COMM = lazy(
    r"init_process_group|init_rpc\(|\bhvd\.init\(|\bhorovod\.\w+\.init\(|rendezvous|setup_dist|init_dist|ddp_setup"
    r"|MultiWorkerMirroredStrategy\(|CollectiveAllReduceStrategy\(|ParameterServerStrategy\w*\(|distribute\.Server\(|train\.Server\("
    r"|distribute\.MultiWorker|jax\.distributed\.initialize|init_device_mesh|connect_to_cluster|MPI\.Init|TCPStore\("
    r"|_store_based_barrier|launch_agent|Accelerator\(\)|ray\.init\(|new_group\("
)
_PREP = lazy(
    r"DistributedDataParallel\(|\bDDP\(|\bFSDP\(|FullyShardedDataParallel\(|fully_shard\(|multi_gpu_model\(|DataParallel\("
    r"|load_state_dict|torch\.load\(|from_pretrained|load_dataset|load_model\(|load_weights\(|load_data\(|DataLoader\(|Sampler\("
    r"|broadcast_parameters|broadcast_optimizer_state|broadcast_global_variables|broadcast_variables|BroadcastGlobalVariables"
    r"|\.cuda\(|set_device\(|\.to\(\s*(?:device|rank|local_rank|args|f?[\"']cuda)|deepspeed\.initialize|\.prepare\(|build_model|create_model"
    r"|make_dataset|get_dataset|Dataset\(|download|read_csv|open\(|scope\(\)|\.compile\(|tokeniz|_verify_param_shape|_sync_module_states"
    r"|\bTrainer\(|TrainingArguments\(|experimental_distribute_dataset|load_checkpoint|restore\(|tf\.Variable\(|tf\.device\("
)
_TRAIN = lazy(
    r"\.backward\(|optimizer\.step|\.step\(|\.fit\(|fit_generator|train_step|training_step|train_one_epoch|train_epoch|\.train\(|\btrain\("
    r"|evaluate\(|validate\(|train_on_batch|strategy\.run|run_step|sess\.run|model\(|net\(|criterion\(|loss_fn\("
    r"|for \w+(?:, ?\(?[\w, ]+\)?)? in |apply_gradients|_training_loop|inner_training_loop|synchronize\(|\.item\(\)|save\("
)
# What ranks exchange in the loop, unless the function is one of those that prepare.
_EXCHANGES = lazy(r"all_reduce\(|allreduce|all_gather(?!_object)|reduce_scatter|all_to_all|alltoall")
# Batches are moved to the device in the loop, models before it.
_BATCH_MOVE = lazy(
    r"\b(?:inputs?|labels?|images?|imgs?|targets?|batch|data|features|tokens|x|y|xb|yb|input_ids)\b[^=]*=[^=].*\.(?:cuda|to)\("
)
_WRAPPERS = lazy(r"torch/nn/parallel/distributed\w*\.py$|torch/distributed/fsdp/")  # whatever name the user gave them
_MEETINGS = lazy(r"barrier\(|broadcast|_object(?:_list)?\(|\bscatter\(")  # which most scripts call before the loop
_TRAIN_FUNCTIONS = lazy(r"train|fit|step|epoch|eval|valid|forward|backward|run_loop", re.I)
_PREP_FUNCTIONS = lazy(
    r"^(?:load|build|create|make|prepare|setup|get|init)_?\w*(?:data|model|loader|dataset|net|checkpoint)|^__init__$"
    r"|^(?:prepare|set_?up|configure|build|load|init|initiali[sz]e|restore|resume)(?:_(?!\w*(?:step|batch|epoch))\w*)?$",
    re.I,
)
_STEPS = lazy(r"backward\(|train_step\(|_call_impl\(")  # of libraries
# TensorFlow names what it executes in its statuses: the function of Keras that makes a step.
_STEP_OF_GRAPH = lazy(r"__inference_\w*(?:train|test|predict)_(?:function|step)_\d")
_BUILD_SIGNS = lazy(r"setup\.py|pip[/ ]|pip-(?:install|req-build|build)-|CMake|building '|egg_info|bdist_wheel")


def stage_of(event: Event, file: FileSurvey | None, after_progress: bool) -> Stage | None:
    """The stage an event happened at; None where the evidence does not tell."""
    if is_building(event):
        return Stage.BUILD
    by_frames = _by_frames(event)
    if by_frames is Stage.BUILD:
        return by_frames
    if after_progress or _progressed_before(event, file) or _STEP_OF_GRAPH.search(event.text):
        return Stage.TRAIN
    return by_frames


def assumed_stage(event: Event, file: FileSurvey | None, is_waiting: bool, has_trained: bool) -> Stage | None:
    """What to assume where nothing tells the stage, and none of the user's lines speaks of a loop: what another rank tells of its steps, which
    ranks make together, or else that nothing was trained yet.

    Ranks that wait mostly wait in training, and many a script prints nothing there; barriers and broadcasts are for before it.
    """
    frame = event.user_frame
    if file is None or frame is None or (is_waiting and not _MEETINGS.search(frame.source)):
        return None
    return Stage.TRAIN if has_trained else Stage.PREP


def is_building(event: Event) -> bool:
    """A package is being built or installed: what fails to be imported there is missing for the build."""
    return event.source == "build" or any(_BUILD_SIGNS.search(frame.file) for frame in event.frames)


def _progressed_before(event: Event, file: FileSurvey | None) -> bool:
    if file is None:
        return False
    own = file.ranks.get(event.rank)
    entries = [own] if own is not None and event.rank is not None else list(file.ranks.values())
    return any(entry.first_progress is not None and entry.first_progress < event.line for entry in entries)


def _by_frames(event: Event) -> Stage | None:
    """The innermost of the user's frames that says anything decides; library frames help where it does not."""
    frames = event.frames
    if not frames:
        return None
    user = [frame for frame in frames if frame.is_user_code] or list(frames)
    if _IMPORT.match(user[-1].source):
        return Stage.BUILD
    told = next((stage for frame in reversed(user) if (stage := _by_frame(frame)) is not None), None)
    return told or _by_library(frames)


def _by_frame(frame: Frame) -> Stage | None:
    line, function = frame.source, frame.function
    prepares = _PREP_FUNCTIONS.search(function) is not None
    if _COMM.search(f"{function} {line}"):
        return Stage.COMM
    if _BATCH_MOVE.search(line):
        return Stage.TRAIN
    if _PREP.search(line):
        # Data may also be loaded, and models moved, in the middle of training; `train` and `fit` often do everything.
        is_loop = _TRAIN_FUNCTIONS.search(function.lower().replace("train", "").replace("fit", "")) is not None
        return Stage.TRAIN if is_loop and not prepares else Stage.PREP
    if _TRAIN.search(line) or (_EXCHANGES.search(line) and not prepares):
        return Stage.TRAIN
    if prepares and function != "__init__":
        return Stage.PREP
    return Stage.TRAIN if _TRAIN_FUNCTIONS.search(function) else None


def _by_library(frames: Sequence[Frame]) -> Stage | None:
    if any(frame.function == "__init__" and _WRAPPERS.search(frame.path) for frame in frames):
        return Stage.PREP
    library = " ".join(f"{frame.function}(" for frame in frames if not frame.is_user_code)
    if _COMM.search(library):
        return Stage.COMM
    return Stage.TRAIN if _STEPS.search(library) else None
