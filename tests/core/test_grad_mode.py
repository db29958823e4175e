"""no_grad: as a context, and as a decorator of whatever Python can call."""

import asyncio
import contextvars
import inspect
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from exact_numbers import message

from tinytorch import Tensor, no_grad
from tinytorch.core.grad_mode import is_recording


def run(coroutine):
    """In a thread of its own: the browser's tests keep an event loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


def recorded():
    """Whether an operation records itself here and now."""
    return (Tensor([1.0], requires_grad=True) * 2).requires_grad


# A context ---------------------------------------------------------------------------------------


def test_nothing_is_recorded_inside_no_grad():
    with no_grad():
        assert not recorded() and not is_recording()
    assert recorded() and is_recording()


def test_block_that_is_closed_in_another_context_leaves_that_context_recording():
    def waiting():
        with no_grad():
            yield

    body = waiting()
    contextvars.copy_context().run(next, body)
    body.close()
    assert recorded()


def test_one_no_grad_object_nests_in_itself():
    quiet = no_grad()
    with quiet, quiet:
        pass
    assert recorded()


def test_recording_resumes_after_an_error():
    with pytest.raises(ZeroDivisionError), no_grad():
        raise ZeroDivisionError
    assert recorded()


def test_no_grad_holds_for_its_thread_only():
    found = []
    with no_grad():
        thread = threading.Thread(target=lambda: found.append(recorded()))
        thread.start()
        thread.join()
    assert found == [True]


def test_contexts_may_close_in_any_order():
    first, second = no_grad(), no_grad()
    first.__enter__()
    second.__enter__()
    first.__exit__()
    assert not recorded()
    second.__exit__()
    assert recorded()


def test_no_grad_of_one_task_does_not_affect_others():
    async def quiet():
        with no_grad():
            await asyncio.sleep(0)
            return recorded()

    async def loud():
        found = [recorded()]
        await asyncio.sleep(0)
        return [*found, recorded()]

    async def both():
        return await asyncio.gather(quiet(), loud())

    assert run(both()) == [False, [True, True]]


# A function --------------------------------------------------------------------------------------


def test_no_grad_decorates_a_function():
    @no_grad()
    def found():
        """Twice."""
        return recorded()

    assert not found() and recorded()
    assert (found.__name__, found.__doc__) == ("found", "Twice.")


# A generator -------------------------------------------------------------------------------------


@no_grad()
def talk():
    """Yields whether it records, and what it was sent or thrown."""
    heard = []
    try:
        while len(heard) < 3:
            try:
                heard.append((yield recorded()))
            except KeyError as error:
                heard.append((error.args[0], recorded()))
        return heard
    finally:
        LAST.append(recorded())


LAST = []


def test_decorated_generator_disables_recording_only_while_its_body_runs():
    assert inspect.isgeneratorfunction(talk)
    for inside in talk():
        assert not inside and recorded()
    assert recorded()


def test_decorated_generator_passes_on_values_errors_and_return():
    generator = talk()
    assert next(generator) is False
    assert generator.send("a") is False
    assert generator.throw(KeyError("b")) is False
    with pytest.raises(StopIteration) as end:
        generator.send("c")
    assert end.value.value == ["a", ("b", False), "c"]
    assert recorded()


def test_generator_that_is_closed_early_cleans_up_without_recording():
    generator = talk()
    next(generator)
    LAST.clear()
    generator.close()
    assert LAST == [False] and recorded()


# A coroutine --------------------------------------------------------------------------------------


@no_grad()
async def waits():
    before = recorded()
    await asyncio.sleep(0)
    return before, recorded()


def test_coroutine_records_nothing_while_its_body_runs():
    assert inspect.iscoroutinefunction(waits)
    assert run(waits()) == (False, False)
    assert recorded()


def test_asynchronous_generator_is_refused():
    async def echoes():
        yield recorded()

    assert message(TypeError, lambda: no_grad()(echoes)) == (
        "no_grad cannot decorate an asynchronous generator; write with no_grad(): between yields"
    )
