"""When runs end and what is kept of them: statuses, one time limit for a call, checkpoints that survive."""

import json
import time

import numpy as np
import pytest
from examples import example
from safetensors import safe_open

from subchain import CVI, HMM, SCVI, SVI, VI, Categorical, Gibbs
from subchain.core.files import HEADER, read_arrays, write_arrays
from subchain.errors import FileFormatError, InputError
from subchain.inference.run.checkpoint import KIND
from subchain.inference.run.journey import RunSummary
from subchain.inference.run.progress import Progress

pytestmark = pytest.mark.filterwarnings("ignore::subchain.errors.ConvergenceWarning")


@pytest.fixture
def data():
    return example("categorical", "many")[1]


def model(inference, **settings):
    return HMM(3, Categorical(n_categories=5), inference=inference, random_state=0, n_jobs=1, **settings)


class TestStatus:
    @pytest.mark.parametrize(
        "inference",
        [
            SVI(max_updates=20, length=10, batch=4),
            SCVI(max_passes=1, length=10, batch=4),
            SVI(length=10, batch=4),
            Gibbs(n_samples=4, burn_in=2, n_chains=1),
        ],
    )
    def test_a_run_that_did_what_was_asked_is_completed(self, inference, data):
        fitted = model(inference).fit(data)
        assert fitted.status_ == "completed"
        assert fitted.runs_[0].status == "completed"

    @pytest.mark.parametrize("inference", [VI(max_iter=2), CVI(max_iter=2)])
    def test_one_that_should_converge_and_did_not_is_stopped_by_its_limit(self, inference, data):
        assert model(inference).fit(data).status_ == "max_iter"

    def test_files_of_earlier_versions_say_max_iter_for_both(self, data, tmp_path):
        model(Gibbs(n_samples=4, burn_in=2, n_chains=1)).fit(data).save(tmp_path / "m")
        arrays, header = read_arrays(tmp_path / "m", "model")
        header["status"] = "max_iter"
        header["runs"] = [{"objective": -1.0, "status": "max_iter", "iterations": 6}]
        write_arrays(tmp_path / "m", arrays, header)
        old = HMM.load(tmp_path / "m")
        assert old.status_ == "max_iter"
        assert old.runs_ == [RunSummary(-1.0, "max_iter", 6)]
        assert old.runs_[0].seconds is None

    def test_a_summary_with_impossible_seconds_is_refused(self):
        plain = {"objective": -1.0, "status": "completed", "iterations": 6, "n_states": 2, "seconds": -3.0}
        with pytest.raises(FileFormatError, match="seconds of a run are -3.0"):
            RunSummary.from_json(plain)


class TestTimeLimit:
    def test_it_is_no_reason_to_run_longer(self, data):
        plain, limited = SVI(length=10, batch=4), SVI(length=10, batch=4, time_limit=600.0)
        assert len(model(limited).fit(data).trace_) == len(model(plain).fit(data).trace_)

    def test_it_counts_the_present_call_only(self, data, tmp_path):
        """A resumed fit has as much time as the first had, so a long run can be done in several calls."""
        inference = VI(max_iter=10**6, tolerance=0.0, time_limit=0.2)
        first = model(inference).fit(data, checkpoint=tmp_path / "c")
        again = model(inference).fit(data, checkpoint=tmp_path / "c", resume=True)
        assert first.status_ == again.status_ == "time_limit"
        assert again.trace_.seconds[-1] >= first.trace_.seconds[-1] + 0.19
        assert again.trace_.objective[: len(first.trace_)] == first.trace_.objective

    def test_it_is_one_for_all_restarts(self, data):
        inference = VI(max_iter=10**6, tolerance=0.0, time_limit=0.3)
        began = time.perf_counter()
        with pytest.warns(UserWarning, match="after 1 of n_init=50 restarts; raise time_limit=0.3"):
            fitted = model(inference, n_init=50).fit(data)
        assert time.perf_counter() - began < 10.0
        assert [run.status for run in fitted.runs_] == ["time_limit"]

    def test_restarts_that_it_cut_off_go_on_when_resumed(self, data, tmp_path, monkeypatch):
        """The second of three runs is stopped by the limit; a resumed fit ends as one without a limit does."""
        short, whole = VI(max_iter=8, tolerance=0.0), model(VI(max_iter=8, tolerance=0.0), n_init=3).fit(data)
        told = Progress.update

        def update(self, state):
            told(self, state)
            if self.outlook.run == 1 and state.iteration == 4:
                state.deadline = -1.0

        monkeypatch.setattr(Progress, "update", update)
        limited = VI(max_iter=8, tolerance=0.0, time_limit=600.0)
        with pytest.warns(UserWarning, match="2 of n_init=3 restarts"):
            cut = model(limited, n_init=3).fit(data, checkpoint=tmp_path / "c")
        assert [run.status for run in cut.runs_] == ["max_iter", "time_limit"]
        monkeypatch.undo()
        resumed = model(short, n_init=3).fit(data, checkpoint=tmp_path / "c", resume=True)
        assert resumed.runs_ == whole.runs_
        assert np.array_equal(resumed.transition_, whole.transition_)


class TestCheckpointsThatExist:
    def test_they_are_not_overwritten(self, data, tmp_path):
        path = tmp_path / "c"
        model(VI(max_iter=3)).fit(data, checkpoint=path)
        before = path.read_bytes()
        with pytest.raises(InputError, match="exists already: resume=True continues .* resume=False begins again"):
            model(VI(max_iter=3)).fit(data, checkpoint=path)
        assert path.read_bytes() == before

    def test_unless_that_is_wanted(self, data, tmp_path):
        model(VI(max_iter=3)).fit(data, checkpoint=tmp_path / "c")
        again = model(VI(max_iter=5, tolerance=0.0)).fit(data, checkpoint=tmp_path / "c", resume=False)
        assert len(again.trace_) == 5


class TestSize:
    def arrays(self, path):
        with safe_open(str(path), framework="numpy") as file:
            header = json.loads(file.metadata()[HEADER])
            return {name: file.get_slice(name).get_shape() for name in file.keys()}, header  # noqa: SIM118

    @pytest.mark.parametrize("inference", [SCVI, SVI])
    def test_a_table_of_words_is_kept_once(self, inference, data, tmp_path):
        """Statistics, a scaled copy of them and the parameters made from them were three tables of the vocabulary."""
        n_words = 1000
        words = HMM(
            3, Categorical(n_categories=n_words), random_state=0,
            inference=inference(max_updates=20, length=10, batch=4, report_every=10),
        )  # fmt: skip
        words.fit(data, checkpoint=tmp_path / "c")
        found, header = self.arrays(tmp_path / "c")
        assert [name for name, shape in found.items() if n_words in shape] == ["run0.statistics.emission.counts"]
        assert header["kind"] == KIND

    def test_a_run_that_stopped_between_two_reports_goes_on_in_the_same_bits(self, data, tmp_path):
        def words(max_updates):
            inference = SCVI(max_updates=max_updates, length=10, batch=4, report_every=10)
            return model(inference)

        words(25).fit(data, checkpoint=tmp_path / "c")
        resumed = words(40).fit(data, checkpoint=tmp_path / "c", resume=True)
        whole = words(40).fit(data)
        assert np.array_equal(resumed.emission_.probabilities, whole.emission_.probabilities)
        assert np.array_equal(resumed.transition_, whole.transition_)

    def test_a_finished_run_has_its_parameters_again(self, data, tmp_path):
        inference = SVI(max_updates=20, length=10, batch=4, report_every=10, average=True)
        first = model(inference).fit(data, checkpoint=tmp_path / "c")
        again = model(inference).fit(data, checkpoint=tmp_path / "c", resume=True)
        assert np.array_equal(again.emission_.probabilities, first.emission_.probabilities)
