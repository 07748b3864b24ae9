from .read_spec import load_spec as load_spec
from .results import CellResult as CellResult
from .results import Group as Group
from .results import Results as Results
from .run import run_experiment as run_experiment
from .spec import Spec as Spec
from .spec import find_spec as find_spec
from .spec import shipped_specs as shipped_specs
