// One socket a page. Every topic is subscribed with the last seq it has, so a reconnect brings what was missed, once.
// When no socket can be had the page asks REST every few seconds instead, and says what it knows as of when.
import { clock } from "./time.js";
import { gettext, said } from "./words.js";

const BEAT_LOST = 4800; // the server beats every 4 s; a half-open connection shows by its silence, within 5 s
const TICK = 200;
const CONNECT_LOST = 10000; // a handshake on a slow line is no loss
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
let paused = false; // nobody looks: only what title and icon of the tab show is followed
let tickedAt = Date.now();
let ended = false; // signed out: nothing is asked any more

export function follow(name, since, take, poll = null) {
  // take(type, data, seq) gets snapshot, change, gone and refused; poll() asks REST where sockets fail
  topics.set(name, { seq: since, take, poll });
  if (paused && !isLight(name)) return;
  if (!socket) connect();
  else if (socket.readyState === WebSocket.OPEN) send({ subscribe: { [name]: since } });
}

export function unfollow(name) {
  topics.delete(name);
  if (socket && socket.readyState === WebSocket.OPEN) send({ unsubscribe: [name] });
}

function isLight(name) {
  return name.startsWith("job/");
}

function wanted(which = () => true) {
  return Object.fromEntries([...topics].filter(([name]) => which(name)).map(([name, topic]) => [name, topic.seq]));
}

function send(message) {
  socket.send(JSON.stringify(message));
}

function connect() {
  clearTimeout(retry);
  if (ended) return;
  heardAt = Date.now();
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const mine = new WebSocket(`${scheme}://${location.host}/ws/`);
  socket = mine;
  mine.addEventListener("open", () => {
    if (mine !== socket) return;
    heard();
    send({ subscribe: paused ? wanted(isLight) : wanted() });
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
  clearTimeout(retry);
  if (code === 4401) {
    end();
    return;
  }
  failures += 1;
  if (!polling) say("reconnecting");
  if (failures >= POLL_AFTER) startPolling();
  const wait = Math.min(LAST_WAIT, FIRST_WAIT * 2 ** (failures - 1)) * (0.7 + Math.random() * 0.6);
  retry = setTimeout(connect, wait);
}

function end() {
  ended = true;
  stopPolling();
  say("ended");
}

setInterval(() => {
  const now = Date.now();
  // a tab that was held up (drawing, sleep) has frames waiting that it could not read yet: that silence is its own
  if (now - tickedAt > 1000) heardAt = Math.max(heardAt, now - BEAT_LOST / 2);
  tickedAt = now;
  if (!socket) return;
  const patience = socket.readyState === WebSocket.CONNECTING ? CONNECT_LOST : BEAT_LOST;
  if (now - heardAt > patience) drop();
}, TICK);

function drop() {
  // closing a half-open socket may take minutes to be answered: it is left to itself
  const silent = socket;
  socket = null;
  silent.close();
  lost(0);
}

window.addEventListener("offline", () => socket && drop());
window.addEventListener("online", () => !socket && topics.size && !document.hidden && connect());

function startPolling() {
  if (polling) return;
  poll();
  polling = setInterval(poll, POLL_EVERY);
}

async function poll() {
  for (const topic of topics.values()) {
    if (!topic.poll) continue;
    try {
      await topic.poll();
      if (!polling) return; // the socket is back
      asOf = new Date();
      say("polling");
    } catch (error) {
      if (!polling) return;
      if (error.status === 401) end();
      else say("reconnecting"); // the next round asks again
    }
  }
}

function stopPolling() {
  clearInterval(polling);
  polling = 0;
}

function say(state) {
  const words = {
    live: () => said(gettext("live, as of {time}"), { time: clock(asOf) }),
    polling: () => said(gettext("as of {time}, asked every 5 s"), { time: clock(asOf) }),
    reconnecting: () => (asOf ? said(gettext("as of {time}, reconnecting"), { time: clock(asOf) }) : gettext("connecting")),
    ended: () => gettext("signed out: reload to sign in again"),
  }[state]();
  for (const place of document.querySelectorAll("[data-live]")) {
    place.dataset.state = state;
    place.textContent = words;
  }
  document.dispatchEvent(new CustomEvent("live", { detail: state }));
}

// a tab nobody looks at gets no points and lines; what it missed comes when it is looked at again
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiddenTimer);
  if (document.hidden) hiddenTimer = setTimeout(pause, HIDDEN_PAUSE);
  else resume();
});

function pause() {
  paused = true;
  const names = [...topics.keys()];
  if (names.some(isLight)) {
    if (socket?.readyState === WebSocket.OPEN) send({ unsubscribe: names.filter((name) => !isLight(name)) });
    return;
  }
  const open = socket;
  socket = null;
  clearTimeout(retry);
  stopPolling();
  if (open) open.close();
  if (!ended) say("reconnecting");
}

function resume() {
  const was = paused;
  paused = false;
  if (!topics.size || ended) return;
  if (!socket) connect();
  else if (was && socket.readyState === WebSocket.OPEN) send({ subscribe: wanted((name) => !isLight(name)) });
}

export async function ask(url) {
  const answer = await fetch(url, { headers: { Accept: "application/json" }, credentials: "same-origin" });
  if (!answer.ok) throw Object.assign(new Error(said(gettext("the portal answered {status}"), { status: answer.status })), { status: answer.status });
  return answer.json();
}
