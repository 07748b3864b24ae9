"""`Provenance`: where candidates come from, and how they differ from those that a model was trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ranksieve.data.features import is_dense
from ranksieve.errors import ParameterError, RanksieveWarning, check_whole, param
from ranksieve.retrieval.feature_names import depends_on_candidates, depends_on_list
from ranksieve.retrieval.first_stage import FirstStage
from ranksieve.text_formats import some_of


@dataclass(frozen=True)
class Provenance:
    """Where candidates come from: a first stage and its depth, or a run of another system; stored with data and models.

    Parameters
    ----------
    stage
        The model and parameters of the first stage, as `FirstStage.used` returns them; None for a run.
    depth
        The most candidates of a query; None for a run.
    """

    stage: Mapping[str, Any] | None = None
    depth: int | None = None

    def as_dict(self) -> dict[str, Any]:
        return {"source": "run"} if self.stage is None else {"source": "first stage", **vars(self)}

    @classmethod
    def of_model(cls, model: Any) -> Provenance | None:
        """The provenance of a model's training data; None where the model does not store it."""
        stored: Any = getattr(model, "info", {}).get("candidates")
        try:
            if stored["source"] == "run":
                return cls()
            check_whole("depth", stored["depth"])
            return cls(FirstStage(**stored["stage"]).used(), stored["depth"])
        except (TypeError, KeyError, ParameterError):  # nothing is stored, or something else
            return None

    def first_stage(self) -> FirstStage | None:
        return None if self.stage is None else FirstStage(**self.stage)

    def __str__(self) -> str:
        return "a run" if self.stage is None else str(self.first_stage())


def other_candidates(
    trained_on: Provenance, given: Provenance, used: Sequence[str], *, n_docs: int, of_run: bool
) -> RanksieveWarning | None:
    """The warning on features whose meaning changes, as candidates do not come from where those of training did.

    None if there is none, and if both are runs, which cannot be compared.
    """
    if trained_on == given or (trained_on.stage is None and of_run):
        return None
    if trained_on.stage != given.stage:
        bound = [name for name in used if depends_on_candidates(name)]
        got = "a run with other scores" if given.stage is None else f"candidates of {given}"
        what, cause = f"candidates of {trained_on} and gets {got}", "the first stage"
        remedy: tuple[Any, ...] = ("use the same one, or train on features of these candidates",)
    else:
        depths = (trained_on.depth, given.depth)
        same = None in depths or len({min(depth or 0, n_docs) for depth in depths}) == 1
        bound = [] if same else [name for name in used if depends_on_list(name)]
        what, cause = f"the {depths[0]} best candidates of a query and gets the {depths[1]} best", "the whole list"
        as_deep = " and a run as deep" if of_run else ""
        remedy = ("use ", param("depth", depths[0]), f"{as_deep}, or train on features of this depth")
    if not bound:
        return None
    return RanksieveWarning(
        f"the model was trained on {what}; of the {len(used)} features that it uses {len(bound)} depend on {cause} "
        f"({some_of(bound, 3)}), so ",
        *remedy,
    )


def other_vectors(
    trained: Mapping[str, Any] | None, given: Mapping[str, Any] | None, used: Sequence[str]
) -> RanksieveWarning | None:
    """The warning on vectors that may be of another encoder; `check_encoder` refuses those that certainly are."""
    if trained is None or given is None or trained == given or not any(map(is_dense, used)):
        return None
    if trained["name"] != given["name"]:
        return RanksieveWarning(
            f"the model was trained on vectors from {trained['name']}, and the index has vectors from {given['name']}; "
            "if these are different encoders, train on features of this index"
        )
    return RanksieveWarning(
        f"the encoder {given['name']} of the index was fitted on other texts than in training, so features dense.* "
        "differ a little; if the ranking becomes worse, train on features of this index"
    )
