// Points by REST: cards that come to the screen together ask together, in one request.
import { ask } from "./socket.js";

const AT_ONCE = 12; // keys of one request
let waiting = new Map(); // what is asked beside the keys -> [{key, resolve, reject}]

export function load(job, key, options) {
  const about = new URLSearchParams(options).toString();
  return new Promise((resolve, reject) => {
    if (!waiting.size) setTimeout(send, 0, job);
    if (!waiting.has(about)) waiting.set(about, []);
    waiting.get(about).push({ key, resolve, reject });
  });
}

function send(job) {
  const all = waiting;
  waiting = new Map();
  for (const [about, asked] of all) {
    for (let start = 0; start < asked.length; start += AT_ONCE) fetchSome(job, about, asked.slice(start, start + AT_ONCE));
  }
}

async function fetchSome(job, about, asked) {
  const keys = new URLSearchParams([...new Set(asked.map((one) => one.key))].map((key) => ["key", key]));
  try {
    const { series } = await ask(`/api/v1/jobs/${job}/series/?${keys}&${about}`);
    for (const { key, resolve } of asked) resolve(series.filter((one) => one.key === key));
  } catch (error) {
    for (const { reject } of asked) reject(error);
  }
}
