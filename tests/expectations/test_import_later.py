"""A module that was put off is the real one as soon as it is used."""

import sys

import pytest

from expectations.import_later import put_off


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    (tmp_path / "made_up_charts.py").write_text("def draw():\n    return 'drawn'\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "made_up_charts"
    sys.modules.pop("made_up_charts", None)


def test_it_is_loaded_when_it_is_first_used_and_not_before(made_up):
    with put_off(made_up):
        import made_up_charts
    assert made_up not in sys.modules
    assert made_up_charts.draw() == "drawn"
    assert made_up in sys.modules


def test_it_may_be_used_at_once(made_up):
    with put_off(made_up):
        from made_up_charts import draw
    assert draw() == "drawn"


def test_others_import_the_real_one_afterwards(made_up):
    with put_off(made_up):
        pass
    import made_up_charts

    assert made_up_charts.__file__.endswith("made_up_charts.py")


def test_one_that_is_there_already_stays(made_up):
    import made_up_charts

    with put_off(made_up):
        assert sys.modules[made_up] is made_up_charts
    assert sys.modules[made_up] is made_up_charts


def test_the_charts_that_great_expectations_put_off_can_still_be_drawn():
    import expectations

    expectations.warm_up()
    from great_expectations.expectations.core import expect_column_kl_divergence_to_be_less_than as charts

    assert charts.alt.Chart.__name__ == "Chart"
    assert charts.stats.entropy([0.5, 0.5]) == pytest.approx(0.6931, abs=1e-4)
