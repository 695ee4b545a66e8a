// A worker of BullMQ for Node.js for benchmarks/recovery.py: its defaults, and 8 jobs at a time.
const { createRequire } = require("node:module");
const { join } = require("node:path");
const packages = createRequire(join(__dirname, "../../tests/support/programs/package.json"));
const { Worker } = packages("bullmq");
const Redis = packages("ioredis");

const notes = new Redis(process.env.BENCH_NOTES_URL);

const processJob = async (job) => {
  if (job.name === "load") return void (await notes.incr("load"));
  const runs = await notes.hincrby("runs", job.data.number, 1);
  await notes.rpush("starts", `${job.data.number} ${Date.now() / 1000} ${process.pid}`);
  if (runs === 1) await new Promise(() => {});
};

new Worker("q", processJob, { connection: { url: process.env.BENCH_URL }, concurrency: 8 }).on("error", console.error);
