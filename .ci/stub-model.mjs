// A model for coding agents on this machine: it makes whoever asks it run one command, then says that
// it is done. It speaks the protocols of the four that the presets know, streamed.
//
//   node .ci/stub-model.mjs LOG     prints the port that it listens on
//
// What is to be run stands in the prompt, between "RUN<<" and ">>". The command is asked for whether or
// not the agent offers a tool for it: a model is not to be trusted, and that is what is tried.
import { appendFileSync } from "node:fs";
import { createServer } from "node:http";

const DONE = "It is done.";
const log = process.argv[2];

const body = (request) =>
  new Promise((resolve) => {
    let text = "";
    request.on("data", (chunk) => (text += chunk));
    request.on("end", () => resolve(text));
  });

// The command in the prompt, and whether it was already asked for.
const wanted = (text) => {
  const all = [...text.matchAll(/RUN<<(.*?)>>/gs)];
  return all.length > 0 ? JSON.parse(`"${all.at(-1)[1]}"`) : undefined;
};

const events = (response, all) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const { event, data } of all) {
    if (event) response.write(`event: ${event}\n`);
    response.write(`data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`);
  }
  response.end();
};

// The first of these tools that is offered, else the last.
const pick = (offered, names) => names.find((name) => offered.includes(name)) ?? names.at(-1);

const responses = (asked, command) => {
  const offered = (asked.tools ?? []).map((tool) => tool.name ?? tool.type);
  const isAnswered = asked.input.some((item) => /call_output$/.test(item.type));
  const usage = { input_tokens: 100, input_tokens_details: { cached_tokens: 0 }, output_tokens: 10,
    output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 110 };
  let item;
  if (command && !isAnswered) {
    const name = pick(offered, ["exec_command", "shell_command", "exec", "shell"]);
    const given = { exec_command: { cmd: command }, shell_command: { command },
      shell: { command: ["sh", "-c", command] } }[name];
    item = given
      ? { type: "function_call", id: "fc_1", call_id: "call_1", name, arguments: JSON.stringify(given) }
      : { type: "custom_tool_call", id: "ct_1", call_id: "call_1", name,
          input: `await tools.exec_command(${JSON.stringify({ cmd: command })});` };
  } else {
    item = { type: "message", id: "msg_1", role: "assistant",
      content: [{ type: "output_text", text: DONE, annotations: [] }] };
  }
  return [
    { type: "response.created", response: { id: "resp_1" } },
    { type: "response.output_item.done", output_index: 0, item },
    { type: "response.completed", response: { id: "resp_1", usage } },
  ].map((data) => ({ event: data.type, data }));
};

const chat = (asked, command) => {
  const offered = (asked.tools ?? []).map((tool) => tool.function.name);
  const isAnswered = asked.messages.some((message) => message.role === "tool");
  const chunk = (delta, finish_reason = null) => ({
    data: { id: "c1", object: "chat.completion.chunk", created: 1, model: asked.model,
      choices: [{ index: 0, delta, finish_reason }] },
  });
  const usage = { data: { id: "c1", object: "chat.completion.chunk", created: 1, model: asked.model,
    choices: [], usage: { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 } } };
  const call = { name: "bash", arguments: JSON.stringify({ command, description: "runs it" }) };
  const said = command && !isAnswered && offered.length > 0
    ? [chunk({ role: "assistant", tool_calls: [{ index: 0, id: "call_1", type: "function",
        function: call }] }), chunk({}, "tool_calls")]
    : [chunk({ role: "assistant", content: DONE }), chunk({}, "stop")];
  return [...said, usage, { data: "[DONE]" }];
};

const messages = (asked, command) => {
  const isAnswered = JSON.stringify(asked.messages).includes('"tool_result"');
  const usage = { input_tokens: 100, output_tokens: 10 };
  const isCall = command && !isAnswered && (asked.tools ?? []).length > 0;
  const name = pick((asked.tools ?? []).map((tool) => tool.name), ["mcp__acp__Bash", "Bash"]);
  const start = isCall ? { type: "tool_use", id: "toolu_1", name, input: {} }
    : { type: "text", text: "" };
  const delta = isCall
    ? { type: "input_json_delta", partial_json: JSON.stringify({ command, description: "runs it", timeout: 60000 }) }
    : { type: "text_delta", text: DONE };
  return [
    { type: "message_start", message: { id: "msg_1", type: "message", role: "assistant",
      model: asked.model, content: [], stop_reason: null, stop_sequence: null, usage } },
    { type: "content_block_start", index: 0, content_block: start },
    { type: "content_block_delta", index: 0, delta },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: isCall ? "tool_use" : "end_turn",
      stop_sequence: null }, usage },
    { type: "message_stop" },
  ].map((data) => ({ event: data.type, data }));
};

const gemini = (asked, command) => {
  const text = JSON.stringify(asked);
  const isCall = command && !text.includes('"functionResponse"') && (asked.tools ?? []).length > 0;
  const shell = { functionCall: { name: "run_shell_command", args: { command } } };
  // Where it may not run commands it may edit.
  const [, content, file_path] = /^printf (\S+) > (\S+)$/.exec(command ?? "") ?? [];
  const edit = { functionCall: { name: "write_file", args: { file_path, content } } };
  // It asks a model which model to ask, and whose turn it is.
  const choice = { reasoning: "x", model_choice: "flash", complexity_score: 1, next_speaker: "user" };
  const isChoice = asked.generationConfig?.responseMimeType === "application/json";
  const parts = isChoice ? [{ text: JSON.stringify(choice) }] : !isCall ? [{ text: DONE }] : text.includes('"run_shell_command"') ? [shell] : [edit];
  return [{ data: { candidates: [{ content: { role: "model", parts }, finishReason: "STOP",
    index: 0 }], usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 10,
    totalTokenCount: 110 } } }];
};

const server = createServer(async (request, response) => {
  const text = await body(request);
  appendFileSync(log, `${request.method} ${request.url} ${text}\n`);
  const path = new URL(request.url, "http://stub").pathname;
  const json = (value) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(value));
  };
  if (request.method !== "POST") return json({ object: "list", data: [], models: [] });
  const asked = JSON.parse(text || "{}");
  const command = wanted(text);
  if (path.endsWith("/responses")) return events(response, responses(asked, command));
  if (path.endsWith("/chat/completions")) return events(response, chat(asked, command));
  if (path.endsWith("/messages")) return events(response, messages(asked, command));
  if (path.endsWith(":streamGenerateContent")) return events(response, gemini(asked, command));
  if (path.endsWith(":generateContent")) return json(gemini(asked, command)[0].data);
  if (path.endsWith("count_tokens")) return json({ input_tokens: 100 });
  if (path.endsWith(":countTokens")) return json({ totalTokens: 100 });
  json({});
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
