"""What ranks asked of one another, by the journals that the watch inside keeps for TensorFlow and Horovod."""

from phalanx.model.fact import FactType

FACTS = (
    FactType(
        "calls.deviated",
        "{skipped?{ranks} skipped {skipped} in {round}; {others} called it}{extra?{ranks} called {extra} in {round}; {others} did not}{counted?{ranks} {counted}}{way?; {way}}",
        {
            "skipped": "str",  # the call that the accused did not make: `allreduce at train.py:40`
            "extra": "str",  # the call that only the accused made
            "round": "str",  # in which pass of the loops: `epoch 1, step 7`
            "others": "str",
            "counted": "str",  # how many calls the accused made in this round, beside the rest
            "way": "str",  # by which line the call can have been passed by
            "status": "str",  # how the accused ended, where that was well: `ended with status 0 after step 29`
        },
    ),
    FactType(
        "calls.none",
        "{count} ranks ended well and never called one another",
        {"framework": "str", "met": "bool", "count": "int"},
    ),
)
