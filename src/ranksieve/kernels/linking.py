"""Code that is only linked into other code: it is not optimised and gets no machine code of its own.

Numba optimises each function, and translates it to machine code, together with all functions that it calls. Its callers
do the same again, up to the kernel that Python calls: a function five calls below is translated five times. Here the
kernel that Python calls is optimised and translated with all that it calls, and nothing else is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import llvmlite.binding as llvm
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.environment import lookup_environment
from numba.core.registry import cpu_target

ONLY_LINKED = "linked"  # marks code without machine code on disk
DYNAMIC = "numba.dynamic.globals"  # begins the names of addresses in this process; Numba does not store such code


_is_kernel = ContextVar("is_kernel", default=False)  # whether what is compiled now belongs to a kernel


@contextmanager
def linking() -> Iterator[None]:
    """What is compiled here may be linked without machine code; other libraries' functions are compiled as usual."""
    before = _is_kernel.set(True)
    try:
        yield
    finally:
        _is_kernel.reset(before)


class LinkedLibrary(JITCodeLibrary):
    """The code of a function. Machine code is made when its address is asked for, by Python for example."""

    _is_only_linked = False

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._may_be_linked = _is_kernel.get()

    def get_pointer_to_function(self, name: str) -> int:
        """The address of a function; 0 if it is not in this library.

        Numba asks for the function that Python calls. Only functions that Python cannot call have none.
        """
        if not self._may_be_linked:
            return int(super().get_pointer_to_function(name))
        is_here = self._has(name)
        if not (is_here or self._finalized):
            self._link()
        if self._is_only_linked and not is_here:
            return 0
        if self._is_only_linked:
            self._is_only_linked = self._finalized = False
        return int(super().get_pointer_to_function(name))

    def _has(self, name: str) -> bool:
        try:
            self._final_module.get_function(name)
        except NameError:
            return False
        return True

    def add_linking_library(self, library: Any) -> None:
        if isinstance(library, LinkedLibrary) and library._may_be_linked and not library._finalized:
            library._link()
        super().add_linking_library(library)

    def _link(self) -> None:
        """Add the code of the functions that are called."""
        for library in dict.fromkeys(self._linking_libraries):
            if hasattr(self, "_reload_init"):  # what is called when code is loaded from disk; old versions have none
                self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._linking_libraries.clear()
        variables = (variable.name for variable in self._final_module.global_variables)
        self._dynamic_globals += [name for name in variables if name.startswith(DYNAMIC)]
        self._finalized = self._is_only_linked = True

    def finalize(self) -> None:
        super().finalize()
        codegen: Any = self._codegen
        for variable in self._final_module.global_variables:
            environment = lookup_environment(variable.name)
            if environment is not None:
                codegen.set_env(variable.name, environment)

    def serialize_using_object_code(self) -> Any:
        if self._is_only_linked:
            return self.name, ONLY_LINKED, self._final_module.as_bitcode()
        return super().serialize_using_object_code()

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> Any:
        name, kind, code = state
        if kind != ONLY_LINKED:
            return super()._unserialize(codegen, state)
        library = codegen.create_library(name)
        library._may_be_linked = True
        library._final_module = llvm.parse_bitcode(code)
        library._finalized = library._is_only_linked = True
        return library


class LinkingCodegen(JITCPUCodegen):
    """Numba's maker of machine code, with `LinkedLibrary`."""

    _library_class = LinkedLibrary

    def set_env(self, env_name: str, env: Any) -> None:
        """Tell machine code where the globals of a function are; nothing where there is none."""
        if self._engine.is_symbol_defined(env_name):
            super().set_env(env_name, env)


def link_without_machine_code() -> None:
    """Let Numba make machine code only of those kernels that Python can call."""
    codegen = cpu_target.target_context.codegen()
    if type(codegen) is JITCPUCodegen:
        codegen.__class__ = LinkingCodegen
