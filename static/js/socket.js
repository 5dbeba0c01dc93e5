// One socket a page. Every topic is subscribed with the last seq it has, so a reconnect brings what was missed, once.
// When no socket can be had the page asks REST every few seconds instead, and says what it knows as of when.
import { clock } from "./time.js";

const BEAT_LOST = 5000; // the server beats every 4 s; a half-open connection shows by its silence
const FIRST_WAIT = 300;
const LAST_WAIT = 15000;
const POLL_AFTER = 3; // failures in a row
const POLL_EVERY = 5000;
const HIDDEN_PAUSE = 30000;

const topics = new Map(); // name -> {seq, take, poll}
let socket = null;
let failures = 0;
let heardAt = 0;
let asOf = null;
let polling = 0;
let retry = 0;
let hiddenTimer = 0;

export function follow(name, since, take, poll = null) {
  // take(type, data, seq) gets snapshot, change, gone and refused; poll() asks REST where sockets fail
  topics.set(name, { seq: since, take, poll });
  if (!socket) connect();
  else if (socket.readyState === WebSocket.OPEN) send({ subscribe: { [name]: since } });
}

export function unfollow(name) {
  topics.delete(name);
  if (socket && socket.readyState === WebSocket.OPEN) send({ unsubscribe: [name] });
}

function send(message) {
  socket.send(JSON.stringify(message));
}

function connect() {
  clearTimeout(retry);
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const mine = new WebSocket(`${scheme}://${location.host}/ws/`);
  socket = mine;
  mine.addEventListener("open", () => {
    heard();
    send({ subscribe: Object.fromEntries([...topics].map(([name, topic]) => [name, topic.seq])) });
  });
  mine.addEventListener("message", (event) => {
    if (mine !== socket) return;
    heard();
    receive(JSON.parse(event.data));
  });
  mine.addEventListener("close", (event) => {
    if (mine === socket) lost(event.code);
  });
}

function heard() {
  heardAt = Date.now();
  asOf = new Date();
  failures = 0;
  stopPolling();
  say("live");
}

function receive(frame) {
  const topic = topics.get(frame.topic);
  if (!topic) return;
  if (frame.seq !== null && frame.seq !== undefined) {
    if (frame.type === "change" && topic.seq !== null && frame.seq <= topic.seq) return;
    topic.seq = frame.seq;
  }
  topic.take(frame.type, frame.data, frame.seq);
}

function lost(code) {
  socket = null;
  if (code === 4001 || code === 4401) {
    say("ended");
    return;
  }
  failures += 1;
  say("reconnecting");
  if (failures >= POLL_AFTER) startPolling();
  const wait = Math.min(LAST_WAIT, FIRST_WAIT * 2 ** (failures - 1)) * (0.7 + Math.random() * 0.6);
  retry = setTimeout(connect, wait);
}

setInterval(() => {
  if (!socket || Date.now() - heardAt < BEAT_LOST) return;
  if (socket.readyState === WebSocket.CONNECTING && Date.now() - heardAt < 2 * BEAT_LOST) return;
  const silent = socket;
  socket = null;
  silent.close();
  if (!document.hidden || topics.size) lost(0);
}, 500);

function startPolling() {
  if (polling) return;
  polling = setInterval(async () => {
    for (const topic of topics.values()) {
      if (!topic.poll) continue;
      try {
        await topic.poll(topic);
        asOf = new Date();
        say("polling");
      } catch {
        say("reconnecting"); // the next round asks again
      }
    }
  }, POLL_EVERY);
}

function stopPolling() {
  clearInterval(polling);
  polling = 0;
}

function say(state) {
  const words = {
    live: () => `live, as of ${clock(asOf)}`,
    polling: () => `as of ${clock(asOf)}, asked every 5 s`,
    reconnecting: () => (asOf ? `as of ${clock(asOf)}, reconnecting` : "connecting"),
    ended: () => "signed out: reload to sign in again",
  }[state]();
  for (const place of document.querySelectorAll("[data-live]")) {
    place.dataset.state = state;
    place.textContent = words;
  }
  document.dispatchEvent(new CustomEvent("live", { detail: state }));
}

// a tab nobody looks at is not served; what it missed comes when it is looked at again
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiddenTimer);
  if (document.hidden) {
    hiddenTimer = setTimeout(() => {
      const open = socket;
      socket = null;
      clearTimeout(retry);
      if (open) open.close();
    }, HIDDEN_PAUSE);
  } else if (!socket && topics.size) connect();
});

export async function ask(url) {
  const answer = await fetch(url, { headers: { Accept: "application/json" }, credentials: "same-origin" });
  if (!answer.ok) throw new Error(`${url}: ${answer.status}`);
  return answer.json();
}
