// Adds jobs and works them off with BullMQ, 8 at a time, for benchmarks/broker.py: node bullmq_no_ops.mjs URL MESSAGES.
// Writes a line when all are added, waits for one, and writes another when all are done.
import { createRequire } from "node:module";
const packages = createRequire(new URL("../../tests/support/programs/package.json", import.meta.url));
const { Queue, Worker } = packages("bullmq");

const [url, messages] = process.argv.slice(2);
const connection = { url };
const queue = new Queue("q", { connection, defaultJobOptions: { removeOnComplete: 1000 } });
for (let number = 0; number < Number(messages); number++) await queue.add("work", { args: [number] });
console.log("added");
await new Promise((resolve) => process.stdin.once("data", resolve));

let done = 0;
const worker = new Worker("q", async () => null, { connection, concurrency: 8 });
await new Promise((resolve) => worker.on("completed", () => ++done === Number(messages) && resolve()));
console.log("done");
process.exit(0);
