"""Classes and functions with annotations, and the endpoint definitions that they become."""

from __future__ import annotations

import abc
import functools
import inspect
import itertools
import threading
from collections.abc import Callable
from typing import Annotated, Any

import pytest

import jmsapi
from jmsapi import (
    JMSConnectionFactory,
    JMSConnectionFactoryDefinition,
    JMSContext,
    JMSDestinationDefinition,
    Message,
    MessageListener,
)
from jmsapi.injection import Inject
from jmsapi.listener import (
    Acknowledge,
    ActivationSpec,
    ApplicationException,
    ClientId,
    DeploymentException,
    Durability,
    EndpointDefinition,
    JMSDestinationListener,
    JMSDurableTopicListener,
    JMSListener,
    JMSListenerProperties,
    JMSListenerProperty,
    JMSMessageDrivenBean,
    JMSNonDurableTopicListener,
    JMSQueueListener,
    MessageDriven,
    MessageSelector,
    SubscriptionDurability,
    SubscriptionName,
    TransactionAttribute,
    activation_properties,
    definitions,
    deploy,
)

QUEUE, TOPIC = JMSListener.Type.QUEUE, JMSListener.Type.TOPIC
CONFIG = {"destinationLookup": "orders", "destinationType": "javax.jms.Queue"}


def callback(message: Message) -> None: ...


def decorated(*decorators: Callable[[Any], Any]) -> Callable[..., None]:
    """Give a function of its own with decorators, the first one topmost."""

    def function(message: Message) -> None: ...

    return functools.reduce(lambda target, decorator: decorator(target), reversed(decorators), function)


def properties(*decorators: Callable[[Any], Any]) -> dict[str, object]:
    return dict(activation_properties(decorated(*decorators)))


def refused(code: str, *targets: object, **options: Any) -> str:
    with pytest.raises(DeploymentException) as caught:
        definitions(*targets, **options)
    assert caught.value.error_code == code
    return str(caught.value)


def spec_of(*targets: object, **options: Any) -> ActivationSpec:
    (one,) = definitions(*targets, **options)
    return one.spec


# ---- annotations to properties ----------------------------------------------------------------------------------------
def test_each_annotation_of_option_a_sets_its_property() -> None:
    assert properties(
        JMSListener(lookup="news", type=TOPIC),
        JMSConnectionFactory("cf"),
        SubscriptionDurability(Durability.DURABLE),
        ClientId("me"),
        SubscriptionName("s"),
        MessageSelector("a = 1"),
        Acknowledge(JMSContext.DUPS_OK_ACKNOWLEDGE),
        TransactionAttribute.BEAN,
        JMSListenerProperty("concurrency", "1"),
    ) == {
        "destinationLookup": "news",
        "destinationType": "javax.jms.Topic",
        "connectionFactoryLookup": "cf",
        "subscriptionDurability": "Durable",
        "clientId": "me",
        "subscriptionName": "s",
        "messageSelector": "a = 1",
        "acknowledgeMode": "Dups-ok-acknowledge",
        "transactionAttribute": "Bean",
        "concurrency": "1",
    }


def test_the_order_of_decorators_does_not_matter_and_the_function_stays_as_it_was() -> None:
    stack = [JMSListener(lookup="q", type=QUEUE), MessageSelector("a = 1"), JMSListenerProperty("messageSelector", "a = 2")]
    for order in itertools.permutations(stack):
        calls: list[str] = []

        def function(text: str, calls: list[str] = calls) -> int:
            calls.append(text)
            return 7

        made = functools.reduce(lambda target, decorator: decorator(target), order, function)
        assert made is function
        assert made("x") == 7
        assert calls == ["x"]
        assert activation_properties(made)["messageSelector"] == "a = 2"


def test_the_mode_is_said_by_constant_enum_or_text() -> None:
    assert properties(Acknowledge(JMSContext.AUTO_ACKNOWLEDGE))["acknowledgeMode"] == "Auto-acknowledge"
    assert properties(Acknowledge(Acknowledge.Mode.DUPS_OK))["acknowledgeMode"] == "Dups-ok-acknowledge"
    assert "acknowledgeMode" in refused(
        "bad-activation", decorated(JMSQueueListener("q"), Acknowledge(JMSContext.CLIENT_ACKNOWLEDGE))
    )


def test_options_b_and_c_say_the_same_as_option_a() -> None:
    further = {"message_selector": "a = 1", "acknowledge": JMSContext.DUPS_OK_ACKNOWLEDGE, "connection_factory_lookup": "cf"}
    of_a = (MessageSelector("a = 1"), Acknowledge(JMSContext.DUPS_OK_ACKNOWLEDGE), JMSConnectionFactory("cf"))
    durable = {"client_id": "me", "subscription_name": "s"}
    for a, b, c in [
        (
            (JMSListener(lookup="d", type=QUEUE), *of_a),
            JMSQueueListener("d", **further),
            JMSDestinationListener("d", type=QUEUE, **further),
        ),
        (
            (JMSListener(lookup="d", type=TOPIC), SubscriptionDurability(Durability.NON_DURABLE), *of_a),
            JMSNonDurableTopicListener("d", **further),
            JMSDestinationListener("d", type=TOPIC, subscription_durability=Durability.NON_DURABLE, **further),
        ),
        (
            (
                JMSListener(lookup="d", type=TOPIC),
                SubscriptionDurability(Durability.DURABLE),
                ClientId("me"),
                SubscriptionName("s"),
                *of_a,
            ),
            JMSDurableTopicListener("d", **further, **durable),
            JMSDestinationListener("d", type=TOPIC, subscription_durability=Durability.DURABLE, **further, **durable),
        ),
    ]:
        assert properties(*a) == properties(b) == properties(c)


def test_attributes_that_do_not_fit_are_no_parameters() -> None:
    for wrong in [
        lambda: JMSQueueListener("q", client_id="a"),  # type: ignore[call-arg]
        lambda: JMSNonDurableTopicListener("t", client_id="a"),  # type: ignore[call-arg]
        lambda: JMSListener(lookup="q"),  # type: ignore[call-arg]
        lambda: JMSListenerProperty("a", 5),  # type: ignore[arg-type]
        lambda: JMSListenerProperty(5, "a"),  # type: ignore[arg-type]
    ]:
        with pytest.raises(TypeError):
            wrong()
    for kind in (JMSQueueListener, JMSDurableTopicListener, JMSNonDurableTopicListener):
        assert not {"type", "subscription_durability"} & set(inspect.signature(kind).parameters)
    for kind in (SubscriptionDurability, ClientId, SubscriptionName, MessageSelector, Acknowledge, JMSConnectionFactory):
        assert list(inspect.signature(kind).parameters) == ["value"]


# ---- which of them counts ---------------------------------------------------------------------------------------------
def test_each_place_wins_over_those_before_it() -> None:
    @MessageDriven({"messageSelector": "p = 3"})
    class Bean:
        @JMSListener(lookup="q", type=QUEUE)
        @MessageSelector("p = 1")
        @JMSListenerProperty("messageSelector", "p = 2")
        def on(self, message: Message) -> None: ...

    assert properties(MessageSelector("p = 1"))["messageSelector"] == "p = 1"
    assert activation_properties(Bean.on)["messageSelector"] == "p = 2"
    assert activation_properties(Bean.on, Bean)["messageSelector"] == "p = 3"
    assert spec_of(Bean).message_selector == "p = 3"
    name = definitions(Bean)[0].name
    group = definitions(Bean)[0].group
    assert spec_of(Bean, descriptor={group: {"message_selector": "p = 4"}}).message_selector == "p = 4"
    both = {group: {"messageSelector": "p = 4"}, name: {"messageSelector": "p = 5"}}
    assert spec_of(Bean, descriptor=both).message_selector == "p = 5"
    assert spec_of(decorated(JMSQueueListener("q"))).message_selector is None


def test_what_the_class_says_holds_for_each_of_its_callbacks() -> None:
    @TransactionAttribute.BEAN
    @MessageDriven({"message_selector": "a = 0", "prefetch": 3})
    class Bean:
        @JMSQueueListener("one", message_selector="a = 1")
        def one(self, message: Message) -> None: ...

        @TransactionAttribute.NOT_SUPPORTED
        @JMSQueueListener("two", message_selector="a = 2")
        def two(self, message: Message) -> None: ...

    first, second = definitions(Bean)
    assert [first.spec.message_selector, second.spec.message_selector] == ["a = 0", "a = 0"]
    assert [first.spec.prefetch, second.spec.prefetch] == [3, 3]
    assert [first.transaction, second.transaction] == [TransactionAttribute.BEAN, TransactionAttribute.NOT_SUPPORTED]
    assert [first.name, second.name] == [f"{first.group}.one", f"{first.group}.two"]
    assert first.group.endswith("Bean")


def test_repeated_properties_are_the_same_as_their_container() -> None:
    foo, bar = JMSListenerProperty("prefetch", "1"), JMSListenerProperty("concurrency", "2")
    assert properties(foo, bar) == properties(JMSListenerProperties([foo, bar])) == {"prefetch": "1", "concurrency": "2"}


def test_two_values_in_one_place_are_refused() -> None:
    queue = JMSQueueListener("q", message_selector="a = 1")
    assert "leave one of them out" in refused("bad-activation", decorated(queue, MessageSelector("a = 2")))
    twice = (JMSListenerProperty("prefetch", "1"), JMSListenerProperty("prefetch", "2"))
    assert "prefetch to '1' and to '2'" in refused("bad-activation", decorated(queue, *twice))
    assert "transactionAttribute" in refused(
        "bad-activation", decorated(queue, TransactionAttribute.BEAN, TransactionAttribute.REQUIRED)
    )
    assert spec_of(decorated(queue, MessageSelector("a = 1"))).message_selector == "a = 1"


def test_the_descriptor_may_only_configure_what_is_deployed() -> None:
    function = decorated(JMSQueueListener("q"))
    found = refused("bad-activation", function, descriptor={"shop.Ordres": {}})
    assert "'shop.Ordres', which is not deployed" in found


def test_a_property_that_nobody_knows_is_handed_on_and_refused() -> None:
    assert properties(JMSListenerProperty("foo1", "bar1"))["foo1"] == "bar1"
    assert "'foo1'" in refused("unknown-property", decorated(JMSQueueListener("q"), JMSListenerProperty("foo1", "bar1")))


# ---- kinds of classes -------------------------------------------------------------------------------------------------
class Legacy(MessageListener):
    """A class of the old kind."""

    got: list[Message]

    def __init__(self, got: list[Message] | None = None) -> None:
        self.got = [] if got is None else got

    def on_message(self, message: Message) -> None:
        self.got.append(message)


@pytest.fixture
def message() -> Message:
    with jmsapi.connection_factory("inproc://definitions").create_context() as context:
        return context.create_text_message("x")


def test_a_legacy_class_is_configured_as_a_whole(message: Message) -> None:
    @MessageDriven(CONFIG)
    class Orders(Legacy):
        pass

    (one,) = definitions(Orders)
    assert one.legacy
    bean = one.make()
    assert isinstance(bean, Orders)
    one.call(bean, message)
    assert bean.got == [message]
    assert "destinationType is missing" in refused("bad-activation", Legacy)


@pytest.mark.parametrize(
    "annotation",
    [
        JMSListener(lookup="q", type=QUEUE),
        JMSConnectionFactory("cf"),
        SubscriptionDurability("Durable"),
        ClientId("c"),
        SubscriptionName("s"),
        MessageSelector("a = 1"),
        Acknowledge(1),
        JMSListenerProperty("a", "b"),
        JMSListenerProperties([JMSListenerProperty("a", "b")]),
        JMSQueueListener("q"),
        JMSDurableTopicListener("t"),
        JMSNonDurableTopicListener("t"),
        JMSDestinationListener("t"),
        TransactionAttribute.BEAN,
    ],
    ids=lambda annotation: type(annotation).__name__,
)
@pytest.mark.parametrize("where", ["on_message", "other"])
def test_a_legacy_class_with_an_annotation_on_a_method_is_refused(annotation: Callable[[Any], Any], where: str) -> None:
    def method(self: object, message: Message) -> None: ...

    mixed = MessageDriven(CONFIG)(type("Mixed", (Legacy,), {where: annotation(method)}))
    assert f"Mixed.{where} has " in refused("mixed-listeners", mixed)


def test_the_marker_class_changes_nothing() -> None:
    class Marked(JMSMessageDrivenBean):
        @JMSQueueListener("q")
        def on(self, message: Message) -> None: ...

    class Unmarked:
        @JMSQueueListener("q")
        def on(self, message: Message) -> None: ...

    assert spec_of(Marked) == spec_of(Unmarked)


def test_what_has_no_callback_is_refused_with_what_to_do() -> None:
    class Nothing(JMSMessageDrivenBean):
        def on(self, message: Message) -> None: ...

    class Half:
        @MessageSelector("a = 1")
        def on(self, message: Message) -> None: ...

    class Duck:
        def on_message(self, message: Message) -> None: ...

    class Misplaced:
        @MessageDriven(CONFIG)
        @JMSQueueListener("q")
        def on(self, message: Message) -> None: ...

    assert "decorate a method or function" in refused("no-callback", Nothing)
    assert "add JMSListener" in refused("no-callback", Half)
    assert "derive from MessageListener" in refused("no-callback", Duck)
    assert "MessageDriven, which is for the class" in refused("no-callback", Misplaced)
    assert "decorates the class" in refused("no-callback", JMSQueueListener("q")(type("Whole", (), {})))
    assert "decorate a method or function" in refused("no-callback", callback)
    for wrong in (Legacy(), 5, functools.partial(callback, None)):
        assert "give a class, a function" in refused("no-callback", wrong)


def test_one_callback_has_one_listener_annotation() -> None:
    both = decorated(JMSListener(lookup="q", type=QUEUE), JMSQueueListener("q"))
    assert "JMSListener and JMSQueueListener" in refused("mixed-listeners", both)


def test_a_method_that_overrides_a_callback_is_none_unless_it_says_so() -> None:
    class Base:
        @JMSQueueListener("one")
        def one(self, message: Message) -> None: ...

        @JMSQueueListener("two")
        def two(self, message: Message) -> None: ...

    class Derived(Base):
        def one(self, message: Message) -> None: ...

    assert [found.name.rpartition(".")[2] for found in definitions(Derived)] == ["two"]


def test_static_and_class_methods_are_callbacks_too(message: Message) -> None:
    got: list[object] = []

    class Bean:
        @JMSQueueListener("one")
        @staticmethod
        def one(message: Message) -> None:
            got.append(message)

        @classmethod
        @JMSQueueListener("two")
        def two(cls, message: Message) -> None:
            got.append((cls, message))

    for found in definitions(Bean):
        found.call(found.make(), message)
    assert got == [message, (Bean, message)]


def test_instances_are_made_anew_with_the_arguments_given(message: Message) -> None:
    class Bean:
        def __init__(self, got: list[object], *, word: str) -> None:
            self.got = got
            self.word = word

        @JMSQueueListener("q")
        def on(self, message: Message) -> None:
            self.got.append((self.word, self, message))

    got: list[object] = []
    (one,) = definitions(functools.partial(Bean, got, word="w"))
    first, second = one.make(), one.make()
    assert first is not second
    one.call(first, message)
    one.call(second, message)
    assert got == [("w", first, message), ("w", second, message)]


def test_a_function_has_no_instance(message: Message) -> None:
    got: list[Message] = []

    @JMSQueueListener("q")
    def function(message: Message) -> None:
        got.append(message)

    (one,) = definitions(function)
    assert one.make() is None
    one.call(None, message)
    assert got == [message]
    assert one.name == one.group == f"{function.__module__}.{function.__qualname__}"


def test_what_a_callback_raises_comes_out_as_it_is(message: Message) -> None:
    error = ValueError("mine")

    @JMSQueueListener("q")
    def function(message: Message) -> None:
        raise error

    (one,) = definitions(function)
    with pytest.raises(ValueError, match="mine") as caught:
        one.call(one.make(), message)
    assert caught.value is error


def test_injected_attributes_have_a_request_for_each_message(message: Message) -> None:
    jmsapi.register_object("default", jmsapi.connection_factory("inproc://definitions"))
    seen: list[int] = []

    class Bean:
        jms: Annotated[JMSContext, Inject()]

        @JMSQueueListener("q")
        def on(self, message: Message) -> None:
            self.jms.create_producer().send(self.jms.create_queue("out"), "sent")
            seen.append(1)

    try:
        (one,) = definitions(Bean)
        bean = one.make()
        one.call(bean, message)
        one.call(bean, message)
    finally:
        jmsapi.register_object("default", None)
    assert seen == [1, 1]
    assert isinstance(bean, Bean)
    with pytest.raises(jmsapi.IllegalStateRuntimeException):
        bean.jms.create_message()


def test_attributes_that_only_type_checkers_can_read_are_no_matter_unless_they_are_injected() -> None:
    class Bean:
        helper: "OnlyForCheckers"  # type: ignore[name-defined]  # noqa: F821, UP037

        @JMSQueueListener("q")
        def on(self, message: Message) -> None: ...

    assert isinstance(definitions(Bean)[0].make(), Bean)
    Bean.__annotations__["jms"] = "Annotated[JMSContext, OnlyForCheckers]"
    assert "cannot be read" in refused("bad-callback", Bean)


def test_a_factory_on_the_class_is_for_what_is_injected() -> None:
    @JMSConnectionFactory("cf")
    class Idle:
        @JMSQueueListener("q")
        def on(self, message: Message) -> None: ...

    @JMSConnectionFactory("cf")
    class Used:
        jms: Annotated[JMSContext, Inject()]

        @JMSQueueListener("q")
        def on(self, message: Message) -> None: ...

    assert "decorate the callback" in refused("no-callback", Idle)
    assert spec_of(Used).connection_factory_lookup is None


# ---- names, and what goes together ------------------------------------------------------------------------------------
def test_an_endpoint_may_be_named() -> None:
    @MessageDriven(name="orders")
    class Bean:
        @JMSQueueListener("q")
        def on(self, message: Message) -> None: ...

    @MessageDriven(CONFIG, name="old")
    class Old(Legacy):
        pass

    assert [one.name for one in definitions(Bean, Old)] == ["orders.on", "old"]
    assert "deployed twice" in refused("bad-activation", Bean, Bean)


def test_one_client_id_for_two_endpoints_of_one_factory_is_refused() -> None:
    @MessageDriven({"clientId": "me"})
    class Bean:
        @JMSQueueListener("one")
        def one(self, message: Message) -> None: ...

        @JMSQueueListener("two")
        def two(self, message: Message) -> None: ...

    assert "give each its own clientId" in refused("bad-activation", Bean)
    durable = JMSDurableTopicListener("t", client_id="me", subscription_name="s")
    first, second = decorated(durable), decorated(durable)
    second.__qualname__ = "second"
    assert "client id 'me'" in refused("bad-activation", first, second)

    third = decorated(
        JMSDurableTopicListener("t", client_id="me", subscription_name="s", connection_factory_lookup="another broker")
    )
    third.__qualname__ = "third"
    assert len(definitions(first, third)) == 2


def test_callbacks_of_a_class_share_one_number_of_instances() -> None:
    class Bean:
        @JMSListenerProperty("maxInstances", "2")
        @JMSQueueListener("one")
        def one(self, message: Message) -> None: ...

        @JMSQueueListener("two")
        def two(self, message: Message) -> None: ...

    assert "maxInstances" in refused("bad-activation", Bean)
    assert [one.spec.max_instances for one in definitions(MessageDriven({"maxInstances": "2"})(Bean))] == [2, 2]


def test_batches_need_a_callback_that_takes_a_list() -> None:
    ten = JMSListenerProperty("batchSize", "10")

    @ten
    @JMSQueueListener("q")
    def batch(messages: list[Message]) -> None: ...

    assert spec_of(batch).batch_size == 10
    assert "list[Message]" in refused("bad-activation", decorated(ten, JMSQueueListener("q")))


# ---- exceptions -------------------------------------------------------------------------------------------------------
@ApplicationException(rollback=True)
class Rollback(Exception):
    pass


@ApplicationException()
class Commit(Exception):
    pass


@ApplicationException(inherited=False)
class Alone(Exception):
    pass


def test_exceptions_are_of_the_application_if_their_class_says_so() -> None:
    definition: EndpointDefinition = definitions(
        decorated(MessageDriven(application_exceptions={KeyError: True, Commit: True}), JMSQueueListener("q"))
    )[0]
    kinds: list[tuple[type[BaseException], bool | None]] = [
        (Rollback, True),
        (type("Sub", (Rollback,), {}), True),
        (Commit, True),
        (ApplicationException(rollback=False)(type("Own", (Rollback,), {})), False),
        (Alone, False),
        (type("Child", (Alone,), {}), None),
        (KeyError, True),
        (ValueError, None),
        (jmsapi.JMSException, None),
    ]
    for kind, expected in kinds:
        assert definition.rollback_of(kind("x")) is expected, kind
    plain = definitions(decorated(JMSQueueListener("q")))[0]
    assert plain.rollback_of(Commit()) is False
    assert plain.rollback_of(KeyError()) is None
    with pytest.raises(TypeError, match="class of exceptions"):
        ApplicationException()(int)  # type: ignore[type-var]


# ---- definition annotations -------------------------------------------------------------------------------------------
def test_a_deployment_binds_what_its_classes_define_until_it_stops() -> None:
    came = threading.Semaphore(0)

    @JMSConnectionFactoryDefinition(name="java:app/shop", properties=["url=inproc://definitions"])
    @JMSDestinationDefinition(name="java:app/orders", interface_name="Queue", destination_name="defined.orders")
    class Bean:
        @JMSQueueListener("java:app/orders")
        def on(self, body: str) -> None:
            came.release()

    with jmsapi.connection_factory("inproc://definitions").create_context() as context:
        for target in (Bean, functools.partial(Bean)):
            with deploy(target, factory="java:app/shop"):
                assert jmsapi.lookup("java:app/orders", jmsapi.Queue).queue_name == "defined.orders"
                context.create_producer().send(context.create_queue("defined.orders"), "one")
                assert came.acquire(timeout=20)
            with pytest.raises(jmsapi.JMSException, match="nothing is registered"):
                jmsapi.lookup("java:app/orders")


def test_a_deployment_that_fails_leaves_nothing_bound() -> None:
    definition = JMSDestinationDefinition(name="java:app/left", interface_name="Topic")

    class Bean:
        @JMSQueueListener("java:app/left")
        def on(self, body: str) -> None: ...

    with pytest.raises(DeploymentException, match="java:app/left"):
        deploy(definition(Bean), factory="inproc://definitions")
    with pytest.raises(jmsapi.JMSException, match="nothing is registered"):
        jmsapi.lookup("java:app/left")
    wrong = JMSDestinationDefinition(name="java:app/left", interface_name="Stack")
    with pytest.raises(DeploymentException, match="Queue, Topic"):
        deploy(wrong(type("Wrong", (), {})), factory="inproc://definitions")


def test_a_class_that_cannot_be_made_is_refused_before_there_are_messages() -> None:
    class Listens(abc.ABC):
        @abc.abstractmethod
        def name(self) -> str: ...

        @JMSQueueListener("orders")
        def on_order(self, message: Message) -> None:
            self.name()

    class Shop:
        def __init__(self, database: object, *, name: str = "shop") -> None: ...

        @JMSQueueListener("orders")
        def on_order(self, message: Message) -> None: ...

    class Old(MessageListener):
        def __init__(self, database: object) -> None: ...

        def on_message(self, message: Message) -> None: ...

    class Unwilling:
        def __init__(self) -> None:
            raise AssertionError("it is made when the first message comes")

        @JMSQueueListener("orders")
        def on_order(self, message: Message) -> None: ...

    shop: Any = Shop
    for target, said in (
        (shop, r"missing a required argument: 'database'; deploy functools\.partial\(Shop, "),
        (functools.partial(shop, name="x"), "missing a required argument: 'database'"),
        (functools.partial(shop, 1, 2), "too many positional arguments"),
        (functools.partial(shop, 1, nome="x"), "nome"),
        (MessageDriven(CONFIG)(Old), "missing a required argument: 'database'"),
        (Listens, "is abstract, so it cannot be made: it lacks name"),
    ):
        with pytest.raises(DeploymentException, match=said) as caught:
            definitions(target)
        assert caught.value.error_code == "bad-callback"
    assert definitions(functools.partial(shop, 1, name="x"), Unwilling)


@pytest.mark.parametrize(
    "wrong", [{"factory": None}, {"factory": 5}, {"on_error": 5}, {"wrap": "x"}, {"injector": 5}, {"descriptor": [1]}]
)
def test_an_argument_of_deploy_of_a_wrong_kind_is_refused_by_name(wrong: dict[str, Any]) -> None:
    def on_order(message: Message) -> None: ...

    with pytest.raises(jmsapi.IllegalArgumentException, match=f"deploy: {next(iter(wrong))} is .*, not "):
        deploy(JMSQueueListener("orders")(on_order), **{"factory": "inproc://wrong", **wrong})
