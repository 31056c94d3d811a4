"""Java's `Admin` client of one cluster, with time limits and errors of Lockstep's own.

Every request that asks or changes a cluster goes through it. It takes the Java client properties as they are. Each
request has a deadline, and answers cross the gateway as text.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from py4j.protocol import Py4JError, Py4JJavaError

from sinks.faults import ClusterUnreachable, ItemFault, JavaGone, NotSupported, RightsMissing
from sinks.kafka.jvm.java_errors import (
    NO_ANSWER,
    TIMED_OUT,
    TURNED_AWAY,
    fault_of,
    java_error,
    not_repeated,
    raised,
    stops_request,
)
from sinks.kafka.jvm.java_rows import NOTHING, JavaRows, LeftOut, rows_of
from sinks.kafka.ports.cluster import CountRequest, count_nothing
from sinks.kafka.ports.permitted import ask_again
from sinks.kafka.reachability import JUST_NOW, REFUSED_FOR, reachability
from sinks.kafka.request_timeout import ONE, WHOLE, request_timeout
from streaming.errors import LockstepError

SLOW_AFTER_MS = 500
"""Milliseconds after which a request counts as slow."""

LOOK_AFTER_MS = 1_000
"""Milliseconds of waiting after which a plain socket tries whether the cluster refuses connections."""

ANSWER_GRACE_S = 2.0
"""Seconds that an answer may take beyond the time of its request, so that Java gives up first and names the cause."""

MISSING_CLASS = re.compile(r"(?:Class |ClassNotFoundException: |NoClassDefFoundError: )([\w.$/]+)")

SENT_ONCE = {"retries": "0"}
"""Java's properties of a client that repeats no request."""

LOGIN_LIMITS = ("sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms", "sasl.login.retry.backoff.max.ms")
"""Properties that limit a login at a token endpoint, for which Java has no limit by default. A login takes at most
their sum."""

RETRIES_AFTER = {"retry.backoff.ms": "20"}
"""Java's first pause before a retry. Each pause is twice as long as the one before, up to a second (KIP-580). Java's
client asks twice about a classic group (KIP-848), so each answer about groups includes this pause."""

TURNED_AWAY_PAUSE = 0.2
"""Seconds until a request is sent again after a broker turned it away."""

SETTING = re.compile(r"\b((?:sasl|ssl)\.[a-z.]*[a-z]|clientId|clientSecret)\b")
"""Finds the name of a setting in the text of Java's ConfigException, which may also show its value."""

Gateway = Callable[[], Any]
"""Returns py4j's gateway to a JVM with Kafka's client; may start one, and raise LockstepError where that fails."""

K = TypeVar("K", bound=Hashable)

Slow = Callable[[Sequence[K]], Mapping[K, ItemFault]]


@dataclass(frozen=True)
class Settled(Generic[K]):
    """Result of a request for many items. `answers`: a Java list in the order of the keys, null for a fault."""

    keys: Sequence[K]
    faults: Mapping[K, ItemFault]
    answers: Any


class JavaAdmin:
    """Java's `Admin` of one cluster. Opens no connection and no JVM before the first request. Thread-safe. `timeout`:
    seconds that a request may take."""

    def __init__(
        self, alias: str, properties: Mapping[str, str], gateway: Gateway, count: CountRequest = count_nothing
    ) -> None:
        self.alias, self.properties, self._gateway, self.count = alias, dict(properties), gateway, count
        self.timeout = request_timeout(alias, properties)
        self.servers = properties.get("bootstrap.servers", "")
        self._reachability = reachability(alias, self.servers)
        self._lock, self._logging_in = threading.Lock(), threading.Lock()
        self._readers: list[Any] = []
        self._writers: list[Any] = []
        self._closed = False

    @property
    def rows(self) -> JavaRows:
        """Builds and reads many Java objects at once."""
        return rows_of(self._gateway())

    @property
    def jvm(self) -> Any:
        return self.rows.jvm

    @property
    def gateway(self) -> Any:
        return self._gateway()

    @property
    def client(self) -> Any:
        """Java's `Admin` for reading. Raises RightsMissing, ClusterUnreachable, and LockstepError if it cannot be
        created."""
        return self._clients(self._readers, 1, self.properties)[0]

    def writers(self, number: int = 1) -> list[Any]:
        """Returns `number` Java `Admin` clients for writing. A broker answers the requests of one connection one by
        one.

        They send a request once. Java would repeat a request whose connection broke, and could delete what another
        client created in between. Raises as `client`.
        """
        began = time.monotonic()
        found = self._clients(self._writers, number, self.properties | SENT_ONCE)
        if time.monotonic() - began > JUST_NOW:
            # A login takes long, and a permit holds for one request.
            ask_again()
        return found

    def _clients(self, opened: list[Any], number: int, properties: Mapping[str, str]) -> list[Any]:
        # Not under the lock of everything else: with OAUTHBEARER a client logs in while it is made.
        if not self._logging_in.acquire(timeout=self.timeout + ANSWER_GRACE_S):
            raise ClusterUnreachable(
                f"cluster {self.alias}: no login within {self.timeout:g} s; is the token endpoint up?"
            )
        try:
            found = opened[:number]
            while len(found) < number and not self._closed:
                made = java_admin(self.alias, self.rows, properties)
                # Another thread may have closed, and emptied, what was opened so far.
                with self._lock:
                    opened.append(made)
                    found = opened[:number]
        finally:
            self._logging_in.release()
        if self._closed:
            # The close that came meanwhile did not see the new client.
            self.close()
            raise ClusterUnreachable(f"cluster {self.alias}: its client is closed")
        return found

    def answers(self, settled: Settled[K], left_out: LeftOut = NOTHING) -> dict[K, Any]:
        """Returns the answer of each key without a fault, without the fields that are left out."""
        found = zip(settled.keys, self.rows.read(settled.answers, left_out), strict=True)
        return {key: one for key, one in found if key not in settled.faults}

    def call(self, api: str, request: Callable[[Any], Any], own_faults: Collection[str] = ()) -> Any:
        """Returns the result of a request's future. Raises ClusterUnreachable, RightsMissing, NotSupported.

        `own_faults`: codes of faults that concern single items. If one of them ended the request, the result is None.
        """
        with self._asking(api, whole=not own_faults) as asked:
            try:
                return self._waited(request(self.client), asked)
            except Py4JJavaError as error:
                found = java_error(error.java_exception.toString())
                if found.code not in own_faults:
                    raise asked.stopped(found) from None
                asked.result = found.code
                return None

    def metadata_epoch(self) -> int | None:
        """Returns the offset up to which the answering broker follows the cluster's metadata log; None without KRaft.

        Raises as `call`. A client with one idle connection asks the same broker next.
        """
        try:
            features = self.call("ApiVersions", lambda client: client.describeFeatures().featureMetadata())
        except NotSupported:
            return None
        epoch = features.finalizedFeaturesEpoch()
        return int(epoch.get()) if epoch.isPresent() else None

    def refused(self, request: Callable[[Any], Any]) -> ItemFault | None:
        """Returns why a request failed; None if it was answered. The request is not counted. Raises ClusterUnreachable
        before the request, and as `client`."""
        self._reachability.check(self.timeout)
        try:
            wait_ms = int((self.timeout + ANSWER_GRACE_S) * 1000)
            request(self.client).get(wait_ms, self.jvm.java.util.concurrent.TimeUnit.MILLISECONDS)
        except Py4JJavaError as error:
            return java_error(error.java_exception.toString())
        return None

    def write(self, api: str, keys: Sequence[K], request: Callable[[Any], Any]) -> Settled[K]:
        """Like `settle`, for a request that writes. It is sent once, and never after this call has returned or raised.

        Only a request that brokers refused as a whole, because they are not in charge, is sent again.
        """
        over, until = False, time.monotonic() + self.timeout
        try:
            while True:
                settled = self._settled(api, keys, request, None, writes=True)
                codes = {fault.code for fault in settled.faults.values()}
                turned_away = len(settled.faults) == len(keys) and codes <= TURNED_AWAY
                if not turned_away or time.monotonic() >= until:
                    break
                time.sleep(TURNED_AWAY_PAUSE)
                ask_again()
            over = not any(fault.unknown for fault in settled.faults.values())
            return settled
        finally:
            if not over:
                self._close_clients(self._writers)

    def settle(
        self, api: str, keys: Sequence[K], request: Callable[[Any], Any], slow: Slow[K] | None = None
    ) -> Settled[K]:
        """Returns the result of each of many futures. `request` returns a Java list of them in the order of the keys.

        `slow`: gets the keys that have no answer after a moment, and returns those that will have none, with the
        reason. Raises as `call` if no key was answered, or if the client was denied as a whole.
        """
        return self._settled(api, keys, request, slow, writes=False)

    def _settled(
        self, api: str, keys: Sequence[K], request: Callable[[Any], Any], slow: Slow[K] | None, *, writes: bool
    ) -> Settled[K]:
        with self._asking(api, writes=writes) as asked:
            try:
                futures = request(self.writers()[0] if writes else self.client)
            except Py4JJavaError as error:
                raise asked.stopped(java_error(error.java_exception.toString())) from None
            faults = self._faults(keys, futures, asked, slow)
            if writes:
                faults = {key: self._closer(fault, futures[keys.index(key)]) for key, fault in faults.items()}
            first = next(iter(faults.values()), None)
            if first is not None and len(faults) == len(keys) and stops_request(first.code):
                raise asked.stopped(first)
            asked.result = first.code if first is not None else "ok"
            return Settled(keys, faults, self.rows.values(futures))

    def _faults(self, keys: Sequence[K], futures: Any, asked: _Asking, slow: Slow[K] | None) -> dict[K, ItemFault]:
        whole, known = self.rows.all_of(futures), dict[K, ItemFault]()
        if slow is not None and not self._ends(whole, asked.unit, SLOW_AFTER_MS):
            waiting = [key for key, done in zip(keys, self.rows.done(futures), strict=True) if not done]
            known = dict(slow(waiting))
            if len(known) == len(waiting):
                return known | self._told(keys, futures)
        try:
            self._waited(whole, asked)
        except Py4JJavaError:
            return self._late(keys, futures) | known | self._told(keys, futures)
        return {}

    def _late(self, keys: Sequence[K], futures: Any) -> dict[K, ItemFault]:
        done = zip(keys, self.rows.done(futures), strict=True)
        return {key: fault_of(TIMED_OUT, "no answer in time") for key, ended in done if not ended}

    def _told(self, keys: Sequence[K], futures: Any) -> dict[K, ItemFault]:
        errors = zip(keys, self.rows.errors(futures), strict=True)
        return {key: java_error(text) for key, text in errors if text is not None}

    def _closer(self, fault: ItemFault, future: Any) -> ItemFault:
        """Returns the cause of a failed write. Java does not repeat it, and only says that the time is up."""
        if fault.code != TIMED_OUT or not future.isDone():
            return fault
        try:
            future.getNow(None)
        except Py4JJavaError as error:
            return not_repeated(_causes(error))
        return fault

    def _waited(self, future: Any, asked: _Asking) -> Any:
        """Returns the result of a future. Raises Py4JJavaError for its error.

        Raises ClusterUnreachable once the cluster has refused all connections for a while. Java's client would wait its
        whole time limit.
        """
        until, refused_since = time.monotonic() + asked.within + ANSWER_GRACE_S, None
        while True:
            try:
                return future.get(LOOK_AFTER_MS, asked.unit)
            except Py4JJavaError:
                if future.isDone():
                    return future.get(0, asked.unit)
                if (now := time.monotonic()) >= until:
                    raise
            if self._reachability.refusal() is None:
                refused_since = None
            elif refused_since is None:
                refused_since = now
            elif now - refused_since >= REFUSED_FOR:
                asked.result = "REFUSED"
                self._reachability.check(0.0, look=True)

    def _ends(self, future: Any, unit: Any, within_ms: int) -> bool:
        """Whether the future ends within this time, with a result or an error."""
        try:
            future.get(within_ms, unit)
        except Py4JJavaError:
            return bool(future.isDone())
        return True

    def raised(self, api: str, fault: ItemFault) -> LockstepError:
        """Returns the exception for a fault that concerns the whole request."""
        return raised(self.alias, self.servers, api, fault, self.timeout)

    def _asking(self, api: str, *, whole: bool = False, writes: bool = False) -> _Asking:
        within = self.timeout
        if writes:
            self._reachability.check(within)
        else:
            within = self._reachability.deadline(within)
        return _Asking(self, api, within, whole=whole)

    def learn_nodes(self, nodes: Iterable[tuple[str, int]]) -> None:
        """Take in host and port of each broker that the cluster has now."""
        self._reachability.learn(nodes)

    def close(self) -> None:
        """Close the clients without waiting for requests under way."""
        self._closed = True
        self._close_clients(self._readers)
        self._close_clients(self._writers)

    def _close_clients(self, opened: list[Any]) -> None:
        with self._lock:
            clients = opened[:]
            opened.clear()
        for client in clients:
            try:
                client.close(self.jvm.java.time.Duration.ZERO)
            except (Py4JError, LockstepError):
                # With the JVM its clients are gone.
                return


class _Asking:
    """One request. It counts the result, and turns errors of the gateway into Lockstep's."""

    def __init__(self, admin: JavaAdmin, api: str, within: float, *, whole: bool) -> None:
        """`within`: seconds. `whole`: the request concerns the cluster, not single items."""
        self.within = within
        self._admin, self._api, self._asked, self._whole = admin, api, time.monotonic(), whole
        self.result = "ok"

    @property
    def unit(self) -> Any:
        return self._admin.jvm.java.util.concurrent.TimeUnit.MILLISECONDS

    def stopped(self, error: ItemFault) -> LockstepError:
        """Returns the exception for an error that concerns the whole request."""
        admin, waited = self._admin, time.monotonic() - self._asked
        self.result = error.code
        stopped = raised(admin.alias, admin.servers, self._api, error, min(waited, admin.timeout))
        if error.code in NO_ANSWER and waited >= JUST_NOW and self._whole:
            # Not after a write: what became of it is looked up right afterwards.
            admin._reachability.gave_up(str(stopped))
        return stopped

    def __enter__(self) -> _Asking:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        admin = self._admin
        broken = error if isinstance(error, Py4JError) and not isinstance(error, Py4JJavaError) else None
        if broken is not None or isinstance(error, JavaGone):
            self.result = JavaGone.code
        elif isinstance(error, LockstepError) and self.result == "ok":
            self.result = "NOT_ASKED"
        admin.count(admin.alias, self._api, self.result)
        if error is None:
            admin._reachability.answered()
        if broken is not None:
            raise gone(admin.alias, self._api, broken) from None


def gone(alias: str, api: str, error: Py4JError) -> JavaGone:
    """Returns the exception for a JVM that does not answer. It has ended, or its client's version lacks the method."""
    said = str(error).splitlines()[0] if str(error) else "it ended"
    return JavaGone(f"cluster {alias}: {api}: Lockstep's Java process gave no answer ({said})")


def java_properties(alias: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Returns the properties of a Java client that gives up on a silent cluster within its
    `request_timeout`."""
    limit = int(request_timeout(alias, properties) * 1000)
    # Java refuses a request that may take longer than the call that it is part of.
    limits = {WHOLE: str(limit), ONE: str(min(int(properties.get(ONE, limit * 2 // 3)), limit))}
    return dict.fromkeys(LOGIN_LIMITS, str(limit // len(LOGIN_LIMITS))) | RETRIES_AFTER | dict(properties) | limits


def java_admin(alias: str, rows: JavaRows, properties: Mapping[str, str]) -> Any:
    """Returns a new `Admin` of the JVM. With OAUTHBEARER it logs in now.

    Raises RightsMissing, and LockstepError if it cannot be created. Java's own text is left out, because it may repeat
    a whole token.
    """
    began = time.monotonic()
    try:
        clients = rows.jvm.org.apache.kafka.clients.admin
        return clients.AdminClient.create(rows.properties(java_properties(alias, properties)))
    except Py4JJavaError as error:
        raise unmade(alias, properties, error, time.monotonic() - began) from None


def unmade(alias: str, properties: Mapping[str, str], error: Py4JJavaError, waited: float) -> LockstepError:
    """Returns why Java's client or its login cannot be created. `waited`: seconds.

    From Java's text it takes only names of settings and classes, because the rest may show a secret.
    """
    causes = list(_causes(error))
    missing = next((found.group(1) for one in causes if (found := MISSING_CLASS.search(one))), None)
    if missing is not None:
        return LockstepError(
            f"cluster {alias}: Java finds no class {missing.replace('/', '.')}, which the settings of `{alias}.` "
            "name. Correct the name, or put the jar that has the class into the environment variable LOCKSTEP_JARS "
            "(under spark-submit: --jars)"
        )
    if any("bootstrap" in one for one in causes):
        return ClusterUnreachable(
            f"cluster {alias}: no address of {alias}.bootstrap.servers can be resolved; is it right?"
        )
    classes = [java_class(one) for one in causes]
    if "LoginException" in classes and waited * len(LOGIN_LIMITS) >= request_timeout(alias, properties):
        return ClusterUnreachable(
            f"cluster {alias}: its login got no token within {waited:.2g} s; is the token endpoint up?"
        )
    names = ", ".join(dict.fromkeys(classes))
    said = next((found[1] for one in causes if "ConfigException" in one and (found := SETTING.search(one))), None)
    if said is not None:
        check = f"check {said}, as `{alias}.{said}` or as an option of `{alias}.sasl.jaas.config`"
    elif "LoginException" in classes:
        check = (
            f"the login failed. Check the user, secret or keytab in `{alias}.sasl.jaas.config`, and whether "
            "the token endpoint or KDC answers"
        )
    else:
        check = f"check the security settings of `{alias}.` in the properties file"
    return RightsMissing(f"cluster {alias}: Java's client cannot be created with these settings: {names}; {check}")


def java_class(text: str) -> str:
    """Returns the simple name of the class in a `Throwable.toString` text."""
    return text.partition(":")[0].rpartition(".")[2]


def _causes(error: Py4JJavaError) -> Iterator[str]:
    thrown = error.java_exception
    while thrown is not None:
        yield str(thrown.toString())
        thrown = thrown.getCause()
