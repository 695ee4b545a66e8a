// Runs BullMQ code for the tests: node shell.mjs URL PACKAGE, where the package is bullmq or bullmq6.
// Each line that comes in is a JSON text with the body of an async function; the line that goes out is
// [what it returned, null] or [null, error].
import * as readline from "node:readline";

const [url, bullmq] = process.argv.slice(2);
const { FlowProducer, Queue, QueueEvents } = await import(bullmq);
const options = { connection: { url }, prefix: "emq" };
const AsyncFunction = (async () => {}).constructor;
const opened = new Map();

const open = (key, make) => {
  if (!opened.has(key)) opened.set(key, make());
  return opened.get(key);
};

const queue = (name) => open(`queue ${name}`, () => new Queue(name, options));
const flow = () => open("flow", () => new FlowProducer(options));

// The events of a queue from its first one on, as [event, what it says].
const events = (name) =>
  open(`events ${name}`, () => {
    const seen = [];
    const listener = new QueueEvents(name, { ...options, lastEventId: "0-0" });
    for (const event of ["added", "waiting", "active", "stalled", "failed", "completed"])
      listener.on(event, (said) => seen.push([event, said]));
    listener.on("error", (error) => console.error(error));
    return seen;
  });

// What Job.waitUntilFinished listens to.
const listener = (name) => open(`listener ${name}`, () => new QueueEvents(name, options));

// What bull-board answers to a GET of its API, say of "/api/queues/:queueName/:jobId/logs".
const board = async (route, params) => {
  const { createBullBoard } = await import("@bull-board/api");
  const { BullMQAdapter } = await import("@bull-board/api/bullMQAdapter");
  const heard = {};
  const serverAdapter = new Proxy({}, { get: (_, setter) => (value) => ((heard[setter] = value), serverAdapter) });
  const adapter = new BullMQAdapter(queue(params.queueName));
  createBullBoard({ queues: [adapter], serverAdapter, options: { uiBasePath: ".", uiConfig: {} } });
  const { handler } = heard.setApiRoutes.find((each) => each.method === "get" && each.route === route);
  const request = { queues: heard.setQueues, params, query: {}, body: {}, headers: {}, method: "get" };
  return (await handler(request)).body;
};

for await (const line of readline.createInterface({ input: process.stdin })) {
  let answer;
  try {
    const body = new AsyncFunction("queue", "flow", "events", "listener", "board", JSON.parse(line));
    answer = [(await body(queue, flow, events, listener, board)) ?? null, null];
  } catch (error) {
    answer = [null, String(error?.stack ?? error)];
  }
  console.log(JSON.stringify(answer));
}
process.exit(0);
