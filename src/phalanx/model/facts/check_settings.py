"""What `phalanx check` finds in the settings of libraries and in what is installed."""

from phalanx.model.fact import FactType


def _fact(name: str, text: str, /, **fields: str) -> FactType:
    return FactType(f"check.{name}", text, fields)


FACTS = (
    _fact(
        "versions-differ",
        "The version of {what} differs between the hosts: {told}",
        told="str",
        common="str",
        odd="str",
        tie="bool",
        what="str",
    ),
    _fact(
        "framework-missing-on-some-hosts",
        "The package {package} is not installed for {python} on {hosts}, but on {count} others",
        package="str",
        python="str",
        count="int",
        version="str",
    ),
    _fact(
        "variables-contradict",
        "Settings on {hosts} contradict each other or the host",
        switched_off="str",
        no_infiniband="str",
        hca="str",
        hca_missing="str",
        devices="str",
        family="str",
        both_lists="str",
        device_twice="str",
        few_devices="str",
        shown="str",
        local="str",
        threads="str",
        horovod_rank="str",
        horovod_size="str",
        inside_only="str",
    ),
    _fact(
        "debug-detail-crashes",
        "TORCH_DISTRIBUTED_DEBUG=DETAIL on {hosts} makes DistributedDataParallel of PyTorch {version} crash",
        version="str",
    ),
    _fact(
        "nccl-syntax-for-gloo",
        "{variable}={value} on {hosts} is NCCL's way of writing; {library} looks for an interface of just that name",
        variable="str",
        value="str",
        library="str",
        right="str",
    ),
    _fact(
        "value-not-known",
        "{name}={value} on {hosts} is none of the values that {library} knows: {choices}",
        name="str",
        value="str",
        library="str",
        choices="str",
    ),
    _fact(
        "value-misparsed",
        "{name}={value} on {hosts} is read by {library} as {parsed}",
        name="str",
        value="str",
        library="str",
        parsed="str",
        right="str",
    ),
    _fact(
        "variable-misspelt",
        "{name}{file? in {file}} on {hosts} is read by nothing; {library} reads {meant}",
        name="str",
        library="str",
        meant="str",
        value="str",
        file="str",
        exported="bool",
    ),
    _fact(
        "stray-characters-in-value",
        "{name}={value} on {hosts} has {what} in it",
        name="str",
        value="str",
        what="str",
        right="str",
    ),
    _fact(
        "framework-shadowed",
        "On {hosts} {file} would be imported as {name}, in place of {installed}",
        name="str",
        file="str",
        installed="str",
    ),
    _fact(
        "setting-differs",
        "{name} differs between the ranks: {told}",
        name="str",
        harm="str",
        told="str",
        common="str",
        odd="str",
        tie="bool",
    ),
)
