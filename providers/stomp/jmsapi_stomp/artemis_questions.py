"""Questions to Artemis's management: requests are messages to a queue of the broker's, answers come to one of ours.

All of it goes over a connection of its own, for the broker ends the one over which somebody asks who may not.
"""

from __future__ import annotations

from collections.abc import Sequence

from jmsapi.spi import ErrorKind, ProviderError
from jmsapi_brokers import artemis_management
from jmsapi_brokers.names import temporary_name
from jmsapi_stomp.access import BrokerAccess
from jmsapi_stomp.connection import StompConnection
from jmsapi_stomp.consumer import StompConsumer
from jmsapi_stomp.frames import Frame, command_frame
from jmsapi_stomp.subscribe_plan import SubscribePlan

__all__ = ["ArtemisQuestions"]

Question = tuple[str, tuple[str, str]]
"""A resource, and an operation with its body."""


class ArtemisQuestions:
    """Asks the management of the broker. I/O thread only.

    Args:
        access: The connection.
        connection: Takes the requests.
        replies: Subscribed to the queue for the answers.
    """

    def __init__(self, access: BrokerAccess, connection: StompConnection, replies: StompConsumer) -> None:
        self.connection = connection
        self.replies = replies
        self._answers = access.collect(replies)

    @classmethod
    async def begin(cls, access: BrokerAccess) -> ArtemisQuestions:
        """Connect, and subscribe to a queue for answers; who asked ends both."""
        connection = await access.connections.connect(None)
        plan = SubscribePlan(temporary_name(), [("subscription-type", "ANYCAST")], browse=True, unbounded=True)
        questions = cls(access, connection, access.auxiliary(plan, connection))
        try:
            await access.subscribe(questions.replies)
        except ProviderError:
            access.connections.drop(connection)
            raise
        return questions

    async def ask(self, questions: Sequence[Question]) -> list[object]:
        """Ask all at once and return the answers, in the same order: the result of each operation, or the text of its failure.

        Raises:
            ProviderError: SECURITY, the user may not ask; TIMEOUT; why the connection is lost.
        """
        return [artemis_management.answer_of(frame.body.decode("utf-8")) for frame in await self.ask_frames(questions)]

    async def ask_frames(self, questions: Sequence[Question]) -> list[Frame]:
        """Ask as ``ask`` does, and return the answers as they came."""
        reply_to = f"queue://{self.replies.plan.destination}"
        *first, last = [_request(resource, operation, body, reply_to) for resource, (operation, body) in questions]
        for frame in first:
            self.connection.write(frame)
        try:
            await self.connection.confirm(last)
        except ProviderError as cause:
            if cause.kind is not ErrorKind.PROTOCOL:
                raise
            # Artemis 2.56 tells nothing but that it could not send the message (test_who_may_not_manage_the_broker_...).
            raise ProviderError(ErrorKind.SECURITY, "the broker does not take the question") from cause
        return await self._answers.next(len(questions), "answers of the broker's management")


def _request(resource: str, operation: str, body: str, reply_to: str) -> bytes:
    head = command_frame("SEND", artemis_management.stomp_operation(resource, operation, reply_to))
    return head.removesuffix(b"\0") + body.encode() + b"\0"
