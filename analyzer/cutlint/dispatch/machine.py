"""Host code run: what is known is computed, and where it is not, both ways are followed.

With `explore` unset everything must be known: that is how the list of tactics is made, as a CPU would. With it set, an
``if`` or ``switch`` over an input runs all its branches, each under its condition; what comes out is every call of a
launcher that the code can make, with the conditions that lead there, and every ``TLLM_THROW`` or failing check with
those that lead to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from cutlint.dispatch.program import Function, Parameter, Program, Unit
from cutlint.dispatch.trace import Block, Item, Launch, Refusal, Switch
from cutlint.dispatch.values import (
    OPAQUE,
    Choices,
    Condition,
    Enumerator,
    Place,
    Reference,
    Symbol,
    Value,
    copied,
    spelled,
    truth,
)
from cutlint.evaluate import Type
from cutlint.expression import NotUnderstood

MAX_DEPTH = 30  # calls within calls: host code has about ten
MAX_STEPS = 2_000_000  # statements of one run: host code that lists tactics has a few thousand

Signal = str | None  # how a statement ended: None, or one of these
BREAK, CONTINUE, RETURN, THROW = "break", "continue", "return", "throw"

_ENDS = Block((), [])  # the last item of a call that never returns

Run = Callable[["Frame"], Value]
Step = Callable[["Frame"], Signal]


class Lost(NotUnderstood):
    """Host code that cutlint cannot follow, and where."""

    def __init__(self, message: str, place: Place) -> None:
        super().__init__(message)
        self.place = place


class Thrown(Exception):
    """The code that runs throws: `message` is its text."""

    def __init__(self, message: str, place: Place) -> None:
        super().__init__(message)
        self.place = place


class Question(msgspec.Struct, frozen=True, eq=False):
    """A call of a function that looks at shared memory: its arguments by their parameters' names."""

    function: str
    place: Place
    arguments: dict[str, Value]


class Branch(msgspec.Struct, frozen=True, eq=False):
    """One way on: what is assumed, and what then runs. `label` is that of a case."""

    conditions: tuple[Condition, ...]
    step: Step
    label: Value = None


class Activation:
    """One call of a function: what it returned, each with the conditions since it was entered."""

    __slots__ = ("base", "returns")

    def __init__(self, base: int) -> None:
        self.base = base
        self.returns: list[tuple[tuple[Condition, ...], Value]] = []


class Frame:
    """Names of one block, and the block around it."""

    __slots__ = ("activation", "names", "parent")

    def __init__(self, parent: Frame | None, activation: Activation | None = None) -> None:
        self.names: dict[str, Value] = {}
        self.parent = parent
        self.activation: Activation | None = activation
        if activation is None and parent is not None:
            self.activation = parent.activation

    def find(self, name: str) -> Frame | None:
        """The block that declares `name`."""
        frame: Frame | None = self
        while frame is not None:
            if name in frame.names:
                return frame
            frame = frame.parent
        return None


class Lazy:
    """An alias or a constant that is evaluated when it is asked for."""

    __slots__ = ("frame", "run")

    def __init__(self, run: Run, frame: Frame) -> None:
        self.run = run
        self.frame = frame


class Lambda(msgspec.Struct, frozen=True, eq=False):
    """A lambda expression with the block that it sees."""

    parameters: tuple[str, ...]
    body: Step
    frame: Frame
    place: Place


class Machine:
    """Runs the functions of `program`. `launchers` are the names of the functions whose calls are recorded."""

    def __init__(self, program: Program, launchers: frozenset[str] = frozenset(), explore: bool = False) -> None:
        from cutlint.dispatch.compiler import Compiler

        self.program = program
        self.launchers = launchers
        self.explore = explore
        self.compiler = Compiler(self)
        self.items: list[Item] = []
        self.lost: list[Lost] = []
        self.names_only = False  # follow a function template once for its arguments: it always calls the same
        self._instances: set[object] = set()
        self.asked: list[Question] = []
        self._memory: dict[int, bool] = {}
        self.conditions: list[Condition] = []
        self._assigned: list[tuple[Frame, str, Value]] | None = None
        self._depth = 0
        self._steps = 0
        self._since = 0  # the number of conditions when the current block of `items` began
        self._plain: dict[tuple[str, str | None], Function] = {}
        self._memo: dict[object, Value] = {}
        self._blocks: dict[object, tuple[list[Item], tuple[Condition, ...], Value]] = {}
        self._leading: frozenset[str] | None = None
        self.enumerations: dict[str, dict[str, int]] = {}

    def matters(self, text: str) -> bool:
        """Whether `text` names anything that leads to a launcher."""
        if self._leading is None:
            self._leading = leading(self.program, self.launchers)
        return not self._leading.isdisjoint(WORD.findall(text))

    def give_up(self, message: str, place: Place, text: str) -> None:
        """Something was not understood at `place`, in the code `text`.

        Raises:
            Lost: where everything must be known.
        """
        lost = Lost(message, place)
        if not self.explore:
            raise lost
        if self.matters(text):
            self.lost.append(lost)

    # -- names

    def lookup(self, frame: Frame, name: str) -> Value:
        """The value of `name`, or KeyError."""
        found = frame.find(name)
        if found is None:
            raise KeyError(name)
        value = found.names[name]
        if isinstance(value, Lazy):
            value = found.names[name] = value.run(value.frame)
        return value

    def assign(self, frame: Frame, name: str, value: Value) -> None:
        found = frame.find(name)
        if found is None:
            return  # a member or a global: nothing that decides what is dispatched
        if self._assigned is not None:
            self._assigned.append((found, name, found.names[name]))
        found.names[name] = value

    def class_frame(self, name: str, arguments: Sequence[Value]) -> Frame:
        """The names that members of the class `name` with these template arguments see."""
        frame = Frame(None)
        found = self.program.classes.get(name)
        if found is None:
            return frame
        self.bind_template(frame, found.template, arguments, found.unit)
        for constant, node in found.constants.items():
            frame.names[constant] = Lazy(self.compiler.expression(found.unit, node), frame)
        if self.explore:
            frame.names.update((member, Symbol("input", (member,))) for member in found.members)
        return frame

    def bind_template(
        self, frame: Frame, parameters: Sequence[Parameter], arguments: Sequence[Value], unit: Unit
    ) -> None:
        for index, parameter in enumerate(parameters):
            if index < len(arguments):
                frame.names[parameter.name] = arguments[index]
            elif parameter.default is not None and parameter.name:
                frame.names[parameter.name] = Lazy(self.compiler.expression(unit, parameter.default), frame)

    # -- what is followed both ways

    def fork(self, frame: Frame, branches: Sequence[Branch], place: Place, value: Symbol | None = None) -> Signal:
        """Run every branch under its conditions, each from the state before. For a ``switch``, `value` is what it is
        over and every branch has its label (the last one, without, is for all other values)."""
        if not self.explore:
            unknown = next((str(each.value) for each in branches[0].conditions), "something")
            raise Lost(f"depends on {unknown}, which is not known", place)
        mark, outer, items, since = len(self.conditions), self._assigned, self.items, self._since
        here = tuple(self.conditions[since:])
        ended: list[Signal] = []
        going: list[list[Condition]] = []
        touched: list[tuple[Frame, str, Value]] = []
        found: list[list[Item]] = []
        for branch in branches:
            self._assigned, self.items = [], []
            self.conditions.extend(branch.conditions)
            self._since = len(self.conditions)
            signal = branch.step(frame)
            found.append(self.items)
            if signal == CONTINUE:
                raise Lost("continues under a condition that is only known at run time", place)
            if signal in (None, BREAK):
                going.append(self.conditions[mark:])
                touched.extend(self._assigned)
            else:
                ended.append(signal)
            for block, name, before in reversed(self._assigned):
                block.names[name] = before
            del self.conditions[mark:]
        self._assigned, self.items, self._since = outer, items, since
        if value is not None:
            cases = {branch.label: some for branch, some in zip(branches[:-1], found[:-1], strict=True)}
            self.items.append(Switch(here, value, cases, found[-1]))
        else:
            blocks = zip(branches, found, strict=True)
            self.items.extend(Block((*here, *branch.conditions), some) for branch, some in blocks if some)
        for block, name, _ in touched:
            if self._assigned is not None:
                self._assigned.append((block, name, block.names[name]))
            block.names[name] = OPAQUE
        if not going:
            return RETURN if RETURN in ended else THROW
        if len(going) == 1:
            self.conditions.extend(going[0])
        return None

    def choose(self, frame: Frame, value: Value, first: Run, second: Run) -> Value:
        """``value ? first : second`` where `value` is not known: both, each under its condition."""
        found: list[tuple[tuple[Condition, ...], Value]] = []
        for holds, run in ((True, first), (False, second)):
            mark = len(self.conditions)
            self.conditions.append(Condition(value, holds))
            try:
                result = run(frame)
                found.append((tuple(self.conditions[mark:]), result))
            except Thrown:
                if not self.explore:
                    raise
            finally:
                del self.conditions[mark:]
        if not found:
            raise Thrown("", Place("", 0))
        if len(found) == 1:
            self.conditions.extend(found[0][0])
            return found[0][1]
        return Choices(tuple(found))

    def _here(self) -> tuple[Condition, ...]:
        """The conditions since the current block began."""
        return tuple(self.conditions[self._since :])

    def throw(self, message: str, place: Place) -> None:
        """The code throws here."""
        if self.explore:
            self.items.append(Refusal(self._here(), message, place))
        raise Thrown(message, place)

    def check(self, value: Value, message: str, place: Place) -> None:
        """``TLLM_CHECK``: throws where `value` is false; where it is not known, it holds from here on."""
        known = truth(value)
        if known is True:
            return
        if known is False:
            self.throw(message, place)
        if not self.explore:
            raise Lost(f"checks {value}, which is not known", place)
        self.items.append(Refusal((*self._here(), Condition(value, False)), message, place))
        self.conditions.append(Condition(value, True))

    # -- calls

    def call(self, callee: Value, arguments: Sequence[Value], place: Place) -> Value:
        """The value of a call.

        Raises:
            Thrown: when it never returns.
            NotUnderstood: when cutlint does not know what it does.
        """
        if isinstance(callee, Choices):
            return self._call_each(callee, arguments, place)
        if isinstance(callee, Lambda):
            frame = Frame(callee.frame, Activation(len(self.conditions)))
            for name, value in zip(callee.parameters, arguments, strict=False):
                frame.names[name] = value
            return self._enter(frame, callee.body)
        if isinstance(callee, Reference):
            if self.launch(callee):
                return None
            function = self._select(callee, arguments)
            if function is not None:
                return self._function(function, callee, arguments)
        if self.explore and not any(isinstance(each, (Lambda, Reference, Choices)) for each in arguments):
            return OPAQUE
        name = callee.name if isinstance(callee, (Reference, Type)) else str(callee)
        raise NotUnderstood(f"the function '{name}' is not known to cutlint")

    def launch(self, callee: Value) -> bool:
        """Record a call of `callee` if it is a launcher; what it is called with does not matter then."""
        if isinstance(callee, Reference) and callee.name in self.launchers:
            for each in callee.arguments:
                spelled(each)  # which says what of it is not known
            self.items.append(Launch(self._here(), callee))
            return True
        return False

    def _call_each(self, callee: Choices, arguments: Sequence[Value], place: Place) -> Value:
        results: list[tuple[tuple[Condition, ...], Value]] = []
        for conditions, each in callee.alternatives:
            mark = len(self.conditions)
            self.conditions.extend(conditions)
            try:
                value = self.call(each, arguments, place)
                results.append((tuple(self.conditions[mark:]), value))
            except Thrown:
                if not self.explore:
                    raise
            finally:
                del self.conditions[mark:]
        if not results:
            raise Thrown("", place)
        return Choices(tuple(results)) if any(value is not None for _, value in results) else None

    def _select(self, callee: Reference, arguments: Sequence[Value]) -> Function | None:
        """The definition that a call means, by the number of arguments and by ``enable_if``."""
        from cutlint.dispatch.overloads import fitting, plain

        key = (callee.name, None if callee.owner is None else callee.owner.name)
        if key in self._plain:
            return self._plain[key]
        listed = [each for each in self.program.functions.get(callee.name, ()) if each.body is not None]
        if callee.owner is not None:
            listed = [each for each in listed if each.owner == callee.owner.name]
        if len(listed) == 1 and plain(listed[0], len(arguments)):
            self._plain[key] = listed[0]
            return listed[0]
        found = [each for each in listed if fitting(self, each, callee, len(arguments))]
        if len(found) > 1 and any(each.pattern is not None for each in found):
            found = [each for each in found if each.pattern is not None]
        if len(found) > 1:
            raise NotUnderstood(f"{len(found)} functions '{callee.name}' could be meant")
        if not found and listed:
            raise NotUnderstood(f"no function '{callee.name}' takes these arguments")
        return found[0] if found else None

    def _function(self, function: Function, callee: Reference, arguments: Sequence[Value]) -> Value:
        if self.explore and function.template and self.matters(function.name):
            instance = (id(function), callee.owner, callee.arguments)
            if self.names_only and instance in self._instances:
                return OPAQUE
            self._instances.add(instance)
        if function.owner is None and all(isinstance(each, (int, Enumerator)) for each in arguments):
            key = (function.name, callee.arguments, tuple(arguments))
            if key not in self._memo:
                before = len(self.items) + len(self.asked)
                value = self._run(function, callee, arguments)
                if len(self.items) + len(self.asked) > before or not isinstance(value, (int, Type, list, Enumerator)):
                    return value
                self._memo[key] = copied(value)
            return copied(self._memo[key])
        if not self.explore or function.owner is not None or not all(isinstance(each, Symbol) for each in arguments):
            return self._run(function, callee, arguments)
        block_key = (id(function), callee.arguments, tuple(arguments))
        if block_key not in self._blocks:
            self._blocks[block_key] = self._block(function, callee, arguments)
        items, added, value = self._blocks[block_key]
        if items:
            self.items.append(Block(self._here(), items))
        self.conditions.extend(added)
        if items and items[-1] is _ENDS:
            raise Thrown("", Place("", 0))
        return value

    def _block(
        self, function: Function, callee: Reference, arguments: Sequence[Value]
    ) -> tuple[list[Item], tuple[Condition, ...], Value]:
        """What a call does, apart from where it stands."""
        outer, since, assigned, mark = self.items, self._since, self._assigned, len(self.conditions)
        self.items, self._since = [], mark
        try:
            value = self._run(function, callee, arguments)
        except Thrown:
            self.items.append(_ENDS)
            value = None
        finally:
            items, added = self.items, tuple(self.conditions[mark:])
            del self.conditions[mark:]
            self.items, self._since, self._assigned = outer, since, assigned
        return items, added, value

    def _run(self, function: Function, callee: Reference, arguments: Sequence[Value]) -> Value:
        from cutlint.dispatch.overloads import frame_for

        if not self.explore and self._about_memory(function):
            names = [each.name for each in function.parameters]
            place = function.unit.place(function.node)
            self.asked.append(Question(function.name, place, dict(zip(names, arguments, strict=False))))

        frame = frame_for(self, function, callee)
        frame.activation = Activation(len(self.conditions))
        for index, parameter in enumerate(function.parameters):
            if index < len(arguments):
                frame.names[parameter.name] = copied(arguments[index])
            elif parameter.default is not None:
                frame.names[parameter.name] = self.compiler.expression(function.unit, parameter.default)(frame)
        assert function.body is not None  # only definitions are selected
        return self._enter(frame, self.compiler.body(function.unit, function.body))

    def _enter(self, frame: Frame, body: Step) -> Value:
        activation = frame.activation
        assert activation is not None  # set by the callers
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise NotUnderstood(f"calls more than {MAX_DEPTH} deep")
        base = activation.base
        try:
            signal = body(frame)
            if signal is None:
                activation.returns.append((tuple(self.conditions[base:]), None))
        finally:
            self._depth -= 1
            del self.conditions[base:]
        returns = activation.returns
        if not returns:
            raise Thrown("", Place("", 0))
        if len(returns) == 1:
            self.conditions.extend(returns[0][0])
            return returns[0][1]
        if all(value is None for _, value in returns):
            return None
        return Choices(tuple(returns))

    def _about_memory(self, function: Function) -> bool:
        """Whether a function looks at shared memory."""
        known = self._memory.get(id(function))
        if known is None:
            text = function.unit.of(function.node)
            known = self._memory[id(function)] = _MEMORY.search(text) is not None
        return known

    def step(self, place: Place) -> None:
        """Count one more statement.

        Raises:
            Lost: when there were more than any host code has.
        """
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise Lost("takes more steps than cutlint follows", place)

    @property
    def branching(self) -> bool:
        """Whether a branch that may not be taken is being followed."""
        return self._assigned is not None


WORD = re.compile(r"[A-Za-z_]\w*")
_MEMORY = re.compile(r"(?<!NO_)smem|shared_?mem", re.I)


def leading(program: Program, launchers: frozenset[str]) -> frozenset[str]:
    """The names of the launchers and of the functions that lead to one."""
    words = {
        name: {word for each in listed if each.body is not None for word in WORD.findall(each.unit.of(each.body))}
        for name, listed in program.functions.items()
    }
    found = set(launchers)
    while more := {name for name, used in words.items() if name not in found and not used.isdisjoint(found)}:
        found |= more
    return frozenset(found)
