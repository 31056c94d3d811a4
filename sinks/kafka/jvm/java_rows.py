"""Many Java objects, and many futures, in a few calls over the gateway.

A call over py4j takes 0.1 ms, and several times that in a JVM that has just started. So arguments travel as one text of
rows, and Java builds an object from each row. Answers travel as one text, which Jackson writes. Method handles call
Kafka's classes: nothing is compiled, and no jar of ours is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from threading import Lock
from typing import Any

import orjson
from py4j.java_gateway import JavaClass

TEXT = "java.lang.String"
OBJECT, OBJECTS = "java.lang.Object", "[Ljava.lang.Object;"
LIST, SET, MAP = "java.util.ArrayList", "java.util.HashSet", "java.util.Map"
FUTURE = "org.apache.kafka.common.KafkaFuture"
STAGE, COMPLETABLE = "java.util.concurrent.CompletionStage", "java.util.concurrent.CompletableFuture"
FUNCTION, OPERATOR = "java.util.function.Function", "java.util.function.UnaryOperator"
BOTH, COLLECTION = "java.util.function.BiFunction", "java.util.Collection"
DESCRIPTORS: Mapping[str, str] = {"int": "I", "short": "S", "long": "J", "void": "V"}
"""Descriptors of Java's types that are no classes (JVM specification, 4.3)."""

PARSERS: Mapping[str, tuple[str, str]] = {
    "int": ("java.lang.Integer", "parseInt"),
    "short": ("java.lang.Short", "parseShort"),
    "long": ("java.lang.Long", "parseLong"),
}
"""Java's class and method that parse a word, by the type of the number."""

JVMS_KNOWN = 2
"""JVMs whose `JavaRows` are kept: the driver's, and the small one that a command used before it."""

Row = Sequence[str | None]
LeftOut = Mapping[str, tuple[str, ...]]
"""Fields of an answer that stay in the JVM, by class."""

NOTHING: LeftOut = {}


@dataclass(frozen=True)
class Make:
    """How to build an object from words: with a class's constructor of these parameters, or with its static method
    `by`.

    A parameter is TEXT, one of PARSERS, an enum's class, or another Make. It takes one word, a Make as many as it
    needs.
    """

    type: str
    parameters: tuple[str | Make, ...]
    by: str = ""

    @property
    def words(self) -> int:
        """How many words of a row it takes."""
        return sum(one.words if isinstance(one, Make) else 1 for one in self.parameters)


WORD = Make(TEXT, (TEXT,))
TOPIC_PARTITION = Make("org.apache.kafka.common.TopicPartition", (TEXT, "int"))


class JavaNames:
    """Java packages and classes by name. py4j's own `jvm` asks the JVM for each part of a name, each time."""

    __slots__ = ("_client", "_known", "_name")

    def __init__(self, client: Any, name: str = "") -> None:
        self._client, self._name = client, name
        # Not attributes: CPython 3.11 ends with SIGSEGV where threads add attributes to objects of one class.
        self._known: dict[str, Any] = {}

    def __getattr__(self, part: str) -> Any:
        if part.startswith("__"):
            raise AttributeError(part)
        found = self._known.get(part)
        if found is None:
            name = f"{self._name}.{part}" if self._name else part
            found = KnownClass(name, self._client) if part[0].isupper() else JavaNames(self._client, name)
            found = self._known.setdefault(part, found)
        return found


class KnownClass(JavaClass):  # type: ignore[misc]  # py4j brings no types
    """A class whose static methods, constants and inner classes are looked up once."""

    def __init__(self, name: str, client: Any) -> None:
        super().__init__(name, client)
        self._known: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name not in self._known:
            self._known[name] = super().__getattr__(name)
        return self._known[name]


def rows_of(gateway: Any) -> JavaRows:
    """Returns the JavaRows that all clients of a JVM share. `gateway`: py4j's."""
    with _making:
        return _made(gateway)


def load_admin(gateway: Any) -> None:
    """Load what the first `Admin` of a JVM waits for longest: how rows are read, Java's MBeans, the client's settings.
    `gateway`: py4j's."""
    jvm = rows_of(gateway).jvm
    jvm.java.lang.management.ManagementFactory.getPlatformMBeanServer()
    jvm.org.apache.kafka.clients.admin.AdminClientConfig.configNames()


@lru_cache(maxsize=JVMS_KNOWN)
def _made(gateway: Any) -> JavaRows:
    return JavaRows(gateway)


_making = Lock()


class JavaRows:
    """Builds and reads collections in the JVM behind a py4j gateway. Thread-safe."""

    def __init__(self, gateway: Any) -> None:
        self._gateway, self._client = gateway, gateway._gateway_client
        self.jvm = JavaNames(self._client)
        lang = self.jvm.java.lang
        self._handles, self._types = lang.invoke.MethodHandles, lang.invoke.MethodType
        self._proxies, self._lookup = lang.invoke.MethodHandleProxies, self._handles.publicLookup()
        self._loader = lang.Thread.currentThread().getContextClassLoader()
        self._collectors, self._list = self.jvm.java.util.stream.Collectors, self.jvm.java.util.ArrayList
        self._mapper = _field_mapper(self.jvm.com.fasterxml.jackson)
        self._writers: dict[Any, Any] = {(): self._mapper}
        self.type, self._generic = cache(self._class), cache(self._new_generic)
        self._part, self._method, self._getter = cache(self._new_part), cache(self._handle), cache(self._new_getter)
        self._of_futures: dict[str, Any] = {}
        factory = self._mapper.getTypeFactory()
        self._rows = factory.constructCollectionType(self.type(LIST), self.type(OBJECTS))

    def _class(self, name: str) -> Any:
        # Only the context class loader knows Spark's jars.
        return self.jvm.java.lang.Class.forName(name, True, self._loader)

    def text(self, value: Any, left_out: LeftOut = NOTHING) -> str:
        """Returns a Java value as JSON, by its fields. Kafka's classes lack the getters that Jackson looks for, or have
        too many."""
        key = tuple(left_out.items())
        if key not in self._writers:
            self._writers[key] = self._writer(left_out)
        return str(self._writers[key].writeValueAsString(value))

    def read(self, value: Any, left_out: LeftOut = NOTHING) -> Any:
        """Returns a Java value as a Python value, read from its JSON."""
        return orjson.loads(self.text(value, left_out))

    def _writer(self, left_out: LeftOut) -> Any:
        ignoring = self.jvm.com.fasterxml.jackson.annotation.JsonIgnoreProperties.Value
        mapper = self._mapper.copy()
        for name, fields in left_out.items():
            ignored = self._mapper.readValue(orjson.dumps(fields).decode(), self.type(SET))
            mapper.configOverride(self.type(name)).setIgnorals(ignoring.forIgnoredProperties(ignored))
        return mapper

    def properties(self, values: Mapping[str, str]) -> Any:
        """Returns a Java map of strings."""
        return self._mapper.readValue(orjson.dumps(dict(values)).decode(), self.type("java.util.HashMap"))

    def texts(self, words: Iterable[str]) -> Any:
        """Returns a Java list of strings."""
        return self._mapper.readValue(orjson.dumps(list(words)).decode(), self.type(LIST))

    def _read_rows(self, rows: Iterable[Row]) -> Any:
        return self._mapper.readValue(orjson.dumps(list(rows)).decode(), self._rows)

    def made(self, make: Make, rows: Iterable[Row]) -> Any:
        """Returns a Java list with an object for each row."""
        found = self._read_rows(rows)
        found.replaceAll(self._part(make, 0, make.words))
        return found

    def one(self, name: str, *arguments: Any) -> Any:
        """Returns a new Java object. `name`: the class's full name; inner classes as `Outer$Inner`. The class has one
        constructor."""
        (constructor,) = self.type(name).getConstructors()
        given = self._gateway.new_array(self.jvm.java.lang.Object, len(arguments))
        for at, argument in enumerate(arguments):
            given[at] = argument
        return constructor.newInstance(given)

    def pairs(self, key: Make, value: Make, rows: Iterable[Row]) -> Any:
        """Returns a Java map. Each row has the words of a key, then the words of its value."""
        width = key.words + value.words
        collector = self._collectors.toMap(self._part(key, 0, width), self._part(value, key.words, width))
        return self._read_rows(rows).stream().collect(collector)

    def groups(self, key: Make, item: Make, rows: Iterable[Row]) -> Any:
        """Returns a Java map from each key to the list of its items."""
        width = key.words + item.words
        items = self._collectors.mapping(self._part(item, key.words, width), self._collectors.toList())
        collector = self._collectors.groupingBy(self._part(key, 0, width), items)
        return self._read_rows(rows).stream().collect(collector)

    def maps(self, group: Make, key: Make, value: Make, rows: Iterable[Row]) -> Any:
        """Returns a Java map from each group to the map of its pairs."""
        first, width = group.words, group.words + key.words + value.words
        of_group = self._collectors.toMap(self._part(key, first, width), self._part(value, first + key.words, width))
        collector = self._collectors.groupingBy(self._part(group, 0, width), of_group)
        return self._read_rows(rows).stream().collect(collector)

    def by(self, result: Any, owner: str, method: str, keys: Any, parameter: str) -> Any:
        """Returns a Java list of `result.method(key)` for each key. `owner`: the class that declares the method."""
        return self._mapped(keys, self._operator(self._method(owner, method, parameter).bindTo(result)))

    def of_map(self, answers: Any, keys: Any) -> Any:
        """Returns a Java list of a Java map's value for each key."""
        return self.by(answers, MAP, "get", keys, OBJECT)

    def by_pairs(self, result: Any, owner: str, method: str, keys: Any, pairs: Any) -> Any:
        """Returns a Java list of `result.method(key, pairs.get(key))` for each key, a text. `pairs`: a Java map."""
        called = self._method(owner, method, TEXT, MAP).bindTo(result)
        value = self._method(MAP, "get", OBJECT).bindTo(pairs)
        both = self._handles.collectArguments(called, 1, value)
        twice = self._gateway.new_array(KnownClass("int", self._client), 2)
        return self._mapped(keys, self._operator(self._handles.permuteArguments(both, self._generic(1), twice)))

    def each(self, items: Any, owner: str, method: str) -> Any:
        """Returns a Java list of `item.method()` for each item."""
        return self._mapped(items, self._getter(owner, method))

    def _new_getter(self, owner: str, method: str) -> Any:
        return self._operator(self._method(owner, method))

    def all_of(self, futures: Any) -> Any:
        """Returns a future that is done once all of a Java list are done."""
        if "all" not in self._of_futures:
            # py4j calls a method of an interface that the object's class names itself.
            self._of_futures["all"] = self._proxies.asInterfaceInstance(self.type(FUNCTION), self._waiter())
        return self._of_futures["all"].apply(futures)

    def done(self, futures: Any) -> list[bool]:
        found: list[bool] = self.read(self.each(futures, FUTURE, "isDone"))
        return found

    def errors(self, futures: Any) -> list[str | None]:
        """Returns each future's error as `Throwable.toString` gives it; None if it has a result or is not done."""
        function = self._of_future("error", lambda: self._joined([self._picker(1), self._shown()]))
        return [None if one == "null" else one for one in self.read(self._mapped(futures, function))]

    def values(self, futures: Any) -> Any:
        """Returns a Java list of the futures' results; null for an error, and for a future that is not done."""
        return self._mapped(futures, self._of_future("value", lambda: self._picker(0)))

    def _mapped(self, items: Any, function: Any) -> Any:
        found = self._list(items)
        found.replaceAll(function)
        return found

    def _of_future(self, name: str, make: Any) -> Any:
        if name not in self._of_futures:
            self._of_futures[name] = self._operator(make())
        return self._of_futures[name]

    def _handle(self, owner: str, method: str, *parameters: str) -> Any:
        """Returns a handle of a Java method, with objects as arguments and as its result."""
        found = self.type(owner).getMethod(method, self._method_type("void", parameters).parameterArray())
        return self._lookup.unreflect(found).asType(self._generic(1 + len(parameters)))

    def _new_part(self, make: Make, at: int, width: int) -> Any:
        """Returns a function that builds an object from the words of a row, from `at` on."""
        whole = self._built(make).asType(self._generic(make.words))
        for place, count in ((0, at), (at + make.words, width - at - make.words)):
            if count:
                whole = self._handles.dropArguments(whole, place, self._generic(count).parameterList())
        return self._operator(whole.asSpreader(self.type(OBJECTS), width))

    def _built(self, make: Make) -> Any:
        """Returns a handle that builds an object from words."""
        types, owner = [one.type if isinstance(one, Make) else one for one in make.parameters], self.type(make.type)
        constructed = self._method_type("void", types)
        if make.by:
            built = self._lookup.unreflect(owner.getMethod(make.by, constructed.parameterArray()))
        else:
            built = self._lookup.findConstructor(owner, constructed)
        # From the last parameter on, because one parameter may take several words.
        for at, parameter in reversed(list(enumerate(make.parameters))):
            if parameter != TEXT:
                part = self._built(parameter) if isinstance(parameter, Make) else self._parser(parameter)
                built = self._handles.collectArguments(built, at, part)
        return built

    def _parser(self, parameter: str) -> Any:
        owner, method = PARSERS.get(parameter, (parameter, "valueOf"))
        return self._lookup.findStatic(self.type(owner), method, self._method_type(parameter, [TEXT]))

    def _picker(self, at: int) -> Any:
        """Returns a handle from a future to its result (0) or its error (1); to null while it is not done."""
        identity, one = self._handles.identity(self.type(OBJECT)), self._generic(1).parameterList()
        both = self._proxies.asInterfaceInstance(self.type(BOTH), self._handles.dropArguments(identity, 1 - at, one))
        return self._joined(
            [
                self._virtual(FUTURE, "toCompletionStage", STAGE),
                self._given(self._virtual(STAGE, "handle", STAGE, BOTH), BOTH, both),
                self._virtual(STAGE, "toCompletableFuture", COMPLETABLE),
                self._given(self._virtual(COMPLETABLE, "getNow", OBJECT, OBJECT), OBJECT, None),
            ]
        )

    def _shown(self) -> Any:
        return self._lookup.findStatic(self.type("java.util.Objects"), "toString", self._method_type(TEXT, [OBJECT]))

    def _waiter(self) -> Any:
        many, none = f"[L{FUTURE};", self.jvm.java.lang.reflect.Array.newInstance(self.type(FUTURE), 0)
        collected = self._given(self._virtual(COLLECTION, "toArray", OBJECTS, OBJECTS), OBJECTS, none)
        typed = collected.asType(self._method_type(many, [COLLECTION]))
        wait = self._lookup.findStatic(self.type(FUTURE), "allOf", self._method_type(FUTURE, [many]))
        return self._joined([typed, wait.asFixedArity()])

    def _joined(self, steps: Sequence[Any]) -> Any:
        whole = steps[0]
        for step in steps[1:]:
            whole = self._handles.filterReturnValue(whole, step)
        return whole

    def _given(self, handle: Any, type_name: str, value: Any) -> Any:
        """Returns the handle with its second argument fixed to `value`."""
        return self._handles.collectArguments(handle, 1, self._handles.constant(self.type(type_name), value))

    def _virtual(self, owner: str, method: str, returned: str, *parameters: str) -> Any:
        return self._lookup.findVirtual(self.type(owner), method, self._method_type(returned, parameters))

    def _method_type(self, returned: str, parameters: Iterable[str]) -> Any:
        descriptor = f"({''.join(map(_descriptor, parameters))}){_descriptor(returned)}"
        return self._types.fromMethodDescriptorString(descriptor, self._loader)

    def _operator(self, handle: Any) -> Any:
        """Returns a function for streams and lists. `handle`: has one argument."""
        return self._proxies.asInterfaceInstance(self.type(OPERATOR), handle)

    def _new_generic(self, arguments: int) -> Any:
        """Returns the type of a handle from so many objects to one object."""
        return self._types.genericMethodType(arguments)


def _descriptor(name: str) -> str:
    if name.startswith("["):
        return name.replace(".", "/")
    return DESCRIPTORS.get(name) or f"L{name.replace('.', '/')};"


def _field_mapper(jackson: Any) -> Any:
    """Returns Jackson's mapper, set to read fields only."""
    visibility, accessor = jackson.annotation.JsonAutoDetect.Visibility, jackson.annotation.PropertyAccessor
    mapper = jackson.databind.ObjectMapper()
    mapper.setVisibility(accessor.ALL, visibility.NONE)
    mapper.setVisibility(accessor.FIELD, visibility.ANY)
    # Some values are only counted: none of their fields is left.
    mapper.disable(jackson.databind.SerializationFeature.FAIL_ON_EMPTY_BEANS)
    return mapper
