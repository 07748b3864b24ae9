"""Parts of Numba that are not its public interface and that the package uses: a new version may rename them."""

import llvmlite.binding as llvm
import numba
import pytest

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="about compiled code")

FILES = ("kernels/linking.py", "kernels/jit.py", "kernels/parallel.py", "threads.py")
SYMBOLS = ("numba_parallel_for", "get_num_threads", "set_num_threads")  # called by what kernels/parallel.py compiles


def plain(x):
    return x


def fail(file: str, missing: object) -> None:
    pytest.fail(
        f"Numba {numba.__version__} has no {missing}, which ranksieve/{file} uses. Look up in Numba's source what took "
        "its place, and adapt the file so that older versions work, too, down to the lowest in pyproject.toml (`make "
        f"lowest`). Until then install numba<{numba.__version__}."
    )


def used(file: str) -> list[tuple[object, str]]:
    """Objects of Numba, and the names of their attributes that a file of the package uses."""
    from numba.core.caching import FunctionCache
    from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
    from numba.core.registry import cpu_target
    from numba.np.ufunc import parallel

    kernel, cache, context = numba.njit(plain), FunctionCache(plain), cpu_target.target_context
    codegen = context.codegen()
    found: dict[str, list[tuple[object, str]]] = {
        "kernels/linking.py": [
            (JITCPUCodegen, "_library_class create_library set_env"),
            (codegen, "_engine"),
            (codegen._engine, "is_symbol_defined"),
            (JITCodeLibrary, "_unserialize serialize_using_object_code add_linking_library finalize"),
            (JITCodeLibrary, "get_pointer_to_function _get_module_for_linking"),
            (codegen.create_library("plain"), "_codegen _final_module _finalized _linking_libraries _dynamic_globals"),
        ],
        "kernels/jit.py": [
            (kernel, "_cache _compiling_counter compile get_call_template get_overload get_compile_result"),
            (cache, "load_overload _cache_file _cache_path _impl _py_func"),
            (cache._cache_file, "_load_index _index_name _index_path _data_name _source_stamp"),
            (cache._impl.locator, "get_source_stamp"),
        ],
        "kernels/parallel.py": [
            (kernel, "get_compile_result"),
            (type(context), "active_code_library call_internal_no_propagate"),
            (context, "call_conv"),
            (context.call_conv, "return_user_exc"),
        ],
        "threads.py": [(parallel, "_threading_layer")],
    }
    return found[file]


@pytest.mark.parametrize("file", FILES)
def test_numba_has_the_private_names_that_are_used(file):
    try:
        parts = used(file)
    except (ImportError, AttributeError) as error:
        fail(file, error)
    missing = [name for owner, names in parts for name in names.split() if not hasattr(owner, name)]
    if missing:
        fail(file, ", ".join(missing))


def test_numba_has_the_functions_that_compiled_code_calls():
    numba.get_num_threads()  # registers them
    missing = [name for name in SYMBOLS if not llvm.address_of_symbol(name)]
    if missing:
        fail("kernels/parallel.py", ", ".join(missing))
