"""A remote agent made with the official A2A SDK for Python: it asks for a city, then tells the weather.

Usage: a2a_agent.py PORT true|false (whether it streams)
"""

import sys

import uvicorn
from a2a.helpers.proto_helpers import new_text_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandlerV2
from a2a.server.routes.agent_card_routes import create_agent_card_routes
from a2a.server.routes.jsonrpc_routes import create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part,
                       Role, Task, TaskState, TaskStatus)
from starlette.applications import Starlette


class Weather(AgentExecutor):
    async def execute(self, context, queue):
        updater = TaskUpdater(queue, context.task_id, context.context_id)
        if not context.current_task:
            status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
            task = Task(id=context.task_id, context_id=context.context_id, status=status)
            await queue.enqueue_event(task)
            await updater.start_work()
            question = new_text_message("Which city?", role=Role.ROLE_AGENT)
            await updater.requires_input(message=question)
            return
        await updater.start_work()
        told = context.get_user_input()
        await updater.add_artifact([Part(text=f"It rains in {told}.")])
        await updater.complete()

    async def cancel(self, context, queue):
        await TaskUpdater(queue, context.task_id, context.context_id).cancel()


port, streams = int(sys.argv[1]), sys.argv[2] == "true"
interface = AgentInterface(
    url=f"http://127.0.0.1:{port}/rpc", protocol_binding="JSONRPC", protocol_version="1.0")
card = AgentCard(
    name="Weather", description="Tells the weather.", version="1",
    supported_interfaces=[interface], capabilities=AgentCapabilities(streaming=streams),
    default_input_modes=["text/plain"], default_output_modes=["text/plain"],
    skills=[AgentSkill(id="weather", name="Weather", description="Tells the weather.", tags=["weather"])])
handler = DefaultRequestHandlerV2(Weather(), InMemoryTaskStore(), card)
routes = create_agent_card_routes(card) + create_jsonrpc_routes(handler, "/rpc")
uvicorn.run(Starlette(routes=routes), port=port, log_level="warning")
