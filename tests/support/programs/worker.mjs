// A BullMQ worker: node worker.mjs URL PACKAGE QUEUE MODE [OPTIONS]. Says what it does, a JSON line each.
//   hold    takes jobs and never finishes them      die     takes a job and kills itself
//   finish  completes jobs
const [url, bullmq, queue, mode, options = "{}"] = process.argv.slice(2);
const { Worker } = await import(bullmq);
const say = (...words) => console.log(JSON.stringify(words));

const process_job = async (job) => {
  say("took", job.id);
  if (mode === "die") process.kill(process.pid, "SIGKILL");
  if (mode !== "finish") await new Promise(() => {});
  return `done by ${mode}`;
};

const worker = new Worker(queue, process_job, {
  connection: { url },
  prefix: "emq",
  lockDuration: mode === "finish" ? 30000 : 500,
  drainDelay: 1,
  skipStalledCheck: true,
  ...JSON.parse(options),
});
worker.on("completed", (job) => say("completed", job.id));
worker.on("failed", (job, error) => say("failed", job.id, error.message));
worker.on("error", (error) => console.error(error));
worker.on("ready", () => say("ready"));
