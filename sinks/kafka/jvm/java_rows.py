"""Many Java objects, and many futures, in a few calls over the gateway.

A call over py4j takes about 0.1 ms. So arguments travel as one text of rows, and Java builds an object from each row;
answers travel as one text, too. Method handles do it: nothing is compiled, and no jar of ours is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from sinks.kafka.jvm.field_json import FieldJson

TEXT = "java.lang.String"
OBJECT = "java.lang.Object"
FUTURE = "org.apache.kafka.common.KafkaFuture"
STAGE, COMPLETABLE = "java.util.concurrent.CompletionStage", "java.util.concurrent.CompletableFuture"
PARSERS: Mapping[str, tuple[str, str]] = {
    "int": ("java.lang.Integer", "parseInt"),
    "short": ("java.lang.Short", "parseShort"),
    "long": ("java.lang.Long", "parseLong"),
}
"""What makes a number of a word."""

Row = Sequence[str | None]


@dataclass(frozen=True)
class Make:
    """How an object is built of words: by a class's constructor with these parameters, or its static method `by`.

    A parameter is TEXT, one of PARSERS, an enum's class, or another Make. It takes a word, a Make as many as it needs.
    """

    type: str
    parameters: tuple[str | Make, ...]
    by: str = ""

    @property
    def words(self) -> int:
        """How many it takes of a row."""
        return sum(one.words if isinstance(one, Make) else 1 for one in self.parameters)


WORD = Make(TEXT, (TEXT,))
TOPIC_PARTITION = Make("org.apache.kafka.common.TopicPartition", (TEXT, "int"))


class JavaRows:
    """Builds and reads collections in the JVM behind a py4j gateway. May be called from any thread."""

    def __init__(self, gateway: Any) -> None:
        self._gateway, self._jvm = gateway, gateway.jvm
        lang = self._jvm.java.lang
        self._handles, self._types = lang.invoke.MethodHandles, lang.invoke.MethodType
        self._proxies, self._lookup = lang.invoke.MethodHandleProxies, self._handles.publicLookup()
        self._loader = lang.Thread.currentThread().getContextClassLoader()
        self._collectors, self._list = self._jvm.java.util.stream.Collectors, self._jvm.java.util.ArrayList
        self._json = FieldJson(self._jvm)
        self._parts: dict[tuple[Make, int, int], Any] = {}
        self._methods: dict[tuple[str, str], Any] = {}
        self._of_futures: dict[str, Any] = {}

    def type(self, name: str) -> Any:
        """Java's Class. py4j resolves no inner classes, and Spark's jars are in the context class loader only."""
        lang = self._jvm.java.lang
        if name in PARSERS:
            return lang.Class.forName(PARSERS[name][0]).getField("TYPE").get(None)
        return lang.Void.TYPE if name == "void" else lang.Class.forName(name, True, self._loader)

    def texts(self, words: Iterable[str]) -> Any:
        """A Java list of strings."""
        return self._json.list_of(list(words))

    def made(self, make: Make, rows: Iterable[Row]) -> Any:
        """A Java list with an object for each row."""
        return self._mapped(self._json.rows_of(list(rows)), self._part(make, 0, make.words))

    def one(self, name: str, *arguments: Any) -> Any:
        """A Java object by its class's full name, of its only constructor; inner classes as `Outer$Inner`."""
        (constructor,) = self.type(name).getConstructors()
        return constructor.newInstance(self._objects(arguments))

    def pairs(self, key: Make, value: Make, rows: Iterable[Row]) -> Any:
        """A Java map: each row has the words of a key, and then those of its value."""
        width = key.words + value.words
        collector = self._collectors.toMap(self._part(key, 0, width), self._part(value, key.words, width))
        return self._json.rows_of(list(rows)).stream().collect(collector)

    def groups(self, key: Make, item: Make, rows: Iterable[Row]) -> Any:
        """A Java map from each key to the list of its items."""
        width = key.words + item.words
        items = self._collectors.mapping(self._part(item, key.words, width), self._collectors.toList())
        collector = self._collectors.groupingBy(self._part(key, 0, width), items)
        return self._json.rows_of(list(rows)).stream().collect(collector)

    def maps(self, group: Make, key: Make, value: Make, rows: Iterable[Row]) -> Any:
        """A Java map from each group to the map of its pairs."""
        first, width = group.words, group.words + key.words + value.words
        of_group = self._collectors.toMap(self._part(key, first, width), self._part(value, first + key.words, width))
        collector = self._collectors.groupingBy(self._part(group, 0, width), of_group)
        return self._json.rows_of(list(rows)).stream().collect(collector)

    def by(self, result: Any, owner: str, method: str, keys: Any) -> Any:
        """A Java list of what `result.method(key)` returns for each key; `owner`: the class that declares it."""
        return self._mapped(keys, self._function(self._method(owner, method, 1).bindTo(result)))

    def by_pairs(self, result: Any, owner: str, method: str, keys: Any, pairs: Any) -> Any:
        """A Java list of what `result.method(key, pairs.get(key))` returns for each key; `pairs`: a Java map."""
        called = self._generic(self._method(owner, method, 2).bindTo(result))
        value = self._generic(self._method("java.util.Map", "get", 1).bindTo(pairs))
        both = self._handles.filterArguments(called, 1, self._filters([value]))
        twice = self._gateway.new_array(self._jvm.int, 2)
        once = self._types.genericMethodType(1)
        return self._mapped(keys, self._function(self._handles.permuteArguments(both, once, twice)))

    def each(self, items: Any, owner: str, method: str) -> Any:
        """A Java list of what `item.method()` returns for each item."""
        return self._mapped(items, self._function(self._method(owner, method, 0)))

    def all_of(self, futures: Any) -> Any:
        """A future that is done once all of a Java list are."""
        return self._of_future("all", self._waiter).apply(futures)

    def done(self, futures: Any) -> list[bool]:
        """Which of them are."""
        found: list[bool] = orjson.loads(self._json.text_of(self.each(futures, FUTURE, "isDone")))
        return found

    def errors(self, futures: Any) -> list[str | None]:
        """What each future came to, as `Throwable.toString` has it; None where it has an answer, or is not done."""
        function = self._of_future("error", lambda: self._joined([self._picker(1), self._shown()]))
        return [
            None if one == "null" else one for one in orjson.loads(self._json.text_of(self._mapped(futures, function)))
        ]

    def values(self, futures: Any) -> Any:
        """A Java list of their answers; null for errors, and for what is not done."""
        return self._mapped(futures, self._of_future("value", lambda: self._picker(0)))

    def _mapped(self, items: Any, function: Any) -> Any:
        return self._list(items.stream().map(function).toList())

    def _of_future(self, name: str, make: Any) -> Any:
        if name not in self._of_futures:
            self._of_futures[name] = self._function(make())
        return self._of_futures[name]

    def _method(self, owner: str, method: str, parameters: int) -> Any:
        if (owner, method) not in self._methods:
            all_of_them = (one for one in self.type(owner).getMethods() if one.getName() == method)
            found = next(one for one in all_of_them if one.getParameterCount() == parameters)
            self._methods[owner, method] = self._lookup.unreflect(found)
        return self._methods[owner, method]

    def _part(self, make: Make, at: int, width: int) -> Any:
        """A function from a row of this width to what the words from `at` on make."""
        if (make, at, width) not in self._parts:
            whole = self._generic(self._built(make))
            anything = self.type(OBJECT)
            for place, count in ((0, at), (at + make.words, width - at - make.words)):
                if count:
                    whole = self._handles.dropArguments(whole, place, self._classes([anything] * count))
            self._parts[make, at, width] = self._function(whole.asSpreader(self.type("[Ljava.lang.Object;"), width))
        return self._parts[make, at, width]

    def _built(self, make: Make) -> Any:
        """A handle that takes words."""
        types, owner = [one.type if isinstance(one, Make) else one for one in make.parameters], self.type(make.type)
        if make.by:
            built = self._lookup.unreflect(owner.getMethod(make.by, self._classes([self.type(one) for one in types])))
        else:
            built = self._lookup.findConstructor(owner, self._method_type("void", types))
        # From the last one on: what stands for one parameter may take several words.
        for at, parameter in reversed(list(enumerate(make.parameters))):
            if isinstance(parameter, Make):
                built = self._handles.collectArguments(built, at, self._built(parameter))
            elif parameter != TEXT:
                built = self._handles.filterArguments(built, at, self._filters([self._parser(parameter)]))
        return built

    def _parser(self, parameter: str) -> Any:
        owner, method = PARSERS.get(parameter, (parameter, "valueOf"))
        return self._lookup.findStatic(self.type(owner), method, self._method_type(parameter, [TEXT]))

    def _picker(self, at: int) -> Any:
        """A handle from a future to its answer (0), or to its error (1); to null while it is not done."""
        anything = self.type(OBJECT)
        pick = self._handles.dropArguments(self._handles.identity(anything), 1 - at, self._classes([anything]))
        both = self._proxies.asInterfaceInstance(self.type("java.util.function.BiFunction"), pick)
        handled = self._virtual(STAGE, "handle", STAGE, ["java.util.function.BiFunction"])
        now = self._virtual(COMPLETABLE, "getNow", OBJECT, [OBJECT])
        return self._joined(
            [
                self._virtual(FUTURE, "toCompletionStage", STAGE, []),
                self._handles.insertArguments(handled, 1, self._objects([both])),
                self._virtual(STAGE, "toCompletableFuture", COMPLETABLE, []),
                self._handles.insertArguments(now, 1, self._objects([None])),
            ]
        )

    def _shown(self) -> Any:
        return self._lookup.findStatic(self.type("java.util.Objects"), "toString", self._method_type(TEXT, [OBJECT]))

    def _waiter(self) -> Any:
        """A handle from a list of futures to `KafkaFuture.allOf`."""
        none = self._jvm.java.lang.reflect.Array.newInstance(self.type(FUTURE), 0)
        to_array = self._virtual("java.util.Collection", "toArray", "[Ljava.lang.Object;", ["[Ljava.lang.Object;"])
        collected = self._handles.insertArguments(to_array, 1, self._objects([none]))
        many = none.getClass()
        typed = collected.asType(self._types.methodType(many, self._classes([self.type("java.util.Collection")])))
        wait = self._types.methodType(self.type(FUTURE), self._classes([many]))
        return self._joined([typed, self._lookup.findStatic(self.type(FUTURE), "allOf", wait).asFixedArity()])

    def _joined(self, steps: Sequence[Any]) -> Any:
        whole = steps[0]
        for step in steps[1:]:
            whole = self._handles.filterReturnValue(whole, step)
        return whole

    def _virtual(self, owner: str, method: str, returned: str, parameters: Sequence[str]) -> Any:
        return self._lookup.findVirtual(self.type(owner), method, self._method_type(returned, parameters))

    def _method_type(self, returned: str, parameters: Sequence[str]) -> Any:
        return self._types.methodType(self.type(returned), self._classes([self.type(one) for one in parameters]))

    def _function(self, handle: Any) -> Any:
        return self._proxies.asInterfaceInstance(self.type("java.util.function.Function"), self._generic(handle))

    def _generic(self, handle: Any) -> Any:
        return handle.asType(handle.type().generic())

    def _classes(self, items: Sequence[Any]) -> Any:
        return self._filled(self._jvm.java.lang.Class, items)

    def _filters(self, items: Sequence[Any]) -> Any:
        return self._filled(self._jvm.java.lang.invoke.MethodHandle, items)

    def _objects(self, items: Sequence[Any]) -> Any:
        return self._filled(self._jvm.java.lang.Object, items)

    def _filled(self, kind: Any, items: Sequence[Any]) -> Any:
        array = self._gateway.new_array(kind, len(items))
        for at, item in enumerate(items):
            array[at] = item
        return array
