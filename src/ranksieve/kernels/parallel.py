"""`run_parts`: a loop over parts of the work on all threads.

Same as a `prange` loop in a kernel with `parallel=True`, which takes several times as long to compile: Numba compiles
and optimises the body of such a loop three times, and analyses all of it as array expressions.
"""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, types

from ranksieve.kernels.lanes import BYTE, INT, LONG, intrinsic

POINTER = BYTE.as_pointer()
LOOP = ir.FunctionType(ir.VoidType(), [POINTER.as_pointer(), LONG.as_pointer(), LONG.as_pointer(), POINTER])
PARALLEL_FOR = ir.FunctionType(ir.VoidType(), [POINTER] * 5 + [LONG, LONG, INT])  # Numba's, of every kind of threads


@intrinsic
def _run_parts(typing, body, n, arguments):
    """Code that calls a compiled kernel for ranges of 0:n, one for each thread."""
    types_of_call = (types.intp, types.intp, *arguments)
    signature = body.get_call_type(typing, types_of_call, {})

    def code(context, builder, _, values):
        result = body.dispatcher.get_compile_result(signature)
        context.active_code_library.add_linking_library(result.library)
        n, given = values[1], cgutils.unpack_tuple(builder, values[2])
        threads = builder.sext(builder.call(_external(builder, ir.FunctionType(INT, []), "get_num_threads"), []), LONG)
        n_parts = builder.select(builder.icmp_signed("<", n, threads), n, threads)
        failed = cgutils.alloca_once_value(builder, BYTE(0))
        work = cgutils.pack_struct(builder, [n, n_parts, failed, *given])
        place = cgutils.alloca_once_value(builder, work)
        loop = _loop_over_parts(context, builder.module, result.fndesc, signature, work.type)
        _call_parallel_for(builder, loop, n_parts, place)
        # Numba has set the number of threads to that of the parts, for all that follows
        set_threads = _external(builder, ir.FunctionType(ir.VoidType(), [INT]), "set_num_threads")
        builder.call(set_threads, [builder.trunc(threads, INT)])
        with builder.if_then(builder.icmp_unsigned("!=", builder.load(failed), BYTE(0)), likely=False):
            context.call_conv.return_user_exc(builder, MemoryError, ("not enough memory for all threads",))
        return context.get_dummy_value()

    return types.void(body, types.intp, arguments), code


def _external(builder, kind, name):
    """A function of Numba's runtime, declared in the module that is built."""
    return cgutils.get_or_insert_function(builder.module, kind, name)


def _call_parallel_for(builder, loop, n_parts, work):
    """Numba passes each thread the address 0, plus its first part times the step 1, and the number of its parts."""
    threads = builder.trunc(n_parts, INT)
    address = cgutils.alloca_once_value(builder, ir.Constant(POINTER, None))
    step = cgutils.alloca_once_value(builder, LONG(1))
    size = cgutils.alloca_once_value(builder, n_parts)
    pointers = [builder.bitcast(one, POINTER) for one in (loop, address, size, step, work)]
    with builder.if_then(builder.icmp_signed(">", n_parts, LONG(1))):
        builder.call(
            _external(builder, PARALLEL_FOR, "numba_parallel_for"), [*pointers, LONG(0), LONG(1), threads]
        )  # fmt: skip
    with builder.if_then(builder.icmp_signed("==", n_parts, LONG(1))):  # needs no threads
        builder.call(loop, [builder.bitcast(address, LOOP.args[0]), size, step, pointers[-1]])


def _loop_over_parts(context, module, kernel, signature, work_type):
    """A function with the parameters that Numba's threads pass; it calls the kernel once for each of its parts."""
    loop = ir.Function(module, LOOP, module.get_unique_name("parts_of_" + kernel.mangled_name))
    loop.linkage = "internal"
    loop.attributes.add("noinline")
    builder = ir.IRBuilder(loop.append_basic_block())
    addresses, sizes, _, place = loop.args
    work = builder.load(builder.bitcast(place, work_type.as_pointer()))
    n, n_parts, failed, *given = (builder.extract_value(work, i) for i in range(len(work_type.elements)))
    first = builder.ptrtoint(builder.load(addresses), LONG)
    with cgutils.for_range(builder, builder.load(sizes)) as parts:
        part = builder.add(first, parts.index)
        ends = [
            builder.sdiv(builder.mul(n, number), n_parts) for number in (part, builder.add(part, LONG(1)))
        ]  # fmt: skip
        status, _ = context.call_internal_no_propagate(builder, kernel, signature, [*ends, *given])
        with builder.if_then(status.is_error, likely=False):
            builder.store(BYTE(1), failed)
    builder.ret_void()
    return loop


def run_parts(body: Any, n: int, arguments: tuple[Any, ...]) -> None:
    """Call `body(first, last, *arguments)` for ranges that make up 0:n, one for each thread; for use in kernels.

    The body is a kernel that writes to its arguments; what it returns is lost. It must not raise; where it runs out of
    memory, `run_parts` raises a MemoryError when all threads are done.
    """
    body(0, n, *arguments)  # where the JIT is disabled


if not numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
    run_parts = _run_parts
