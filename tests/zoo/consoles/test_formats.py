from phalanx.zoo.consoles.formats import formats, render


def test_a_text_is_taken_from_the_newest_release_that_is_not_younger():
    work = formats("torch")["work"]
    assert "NumelIn" not in work.text("2.0")
    assert "NumelIn" in work.text("2.2")
    assert work.text("2.4") == work.text("2.2")


def test_releases_compare_as_numbers_not_as_words():
    assert formats("torch")["dump.received"].text("2.13")
    assert formats("torch")["dump.received"].text("2.6") == ""


def test_an_empty_text_ends_a_statement_in_later_releases():
    status = formats("torch")["watchdog.timeout_status"]
    assert status.text("2.4")
    assert status.text("2.6") == ""


def test_every_format_names_its_source():
    for program in ("torch", "nccl", "kernel", "launchers"):
        assert all(one.source for one in formats(program).values())


def test_render_fills_the_fields():
    text = render("nccl", "socket.closed", "2.21.5", peer="10.0.0.1<4>")
    assert text == "socketProgress: Connection closed by remote peer 10.0.0.1<4>"
