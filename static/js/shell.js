// A shell in a worker: opened by a button, its end told in words, one window of bytes each way so that no flood piles up.
import { write } from "./copy.js";
import { openTerminal } from "./terminal.js";
import { toast } from "./toast.js";
import { gettext, ngettext, said } from "./words.js";

const IN_FLIGHT = 64 * 1024; // bytes typed or pasted that the program has not taken yet
const CHUNK = 16 * 1024;
const KEYS = { escape: "\x1b", tab: "\t", interrupt: "\x03", up: "\x1b[A" };

const box = document.querySelector("[data-shell]");
const place = box.querySelector("[data-shell-terminal]");
const button = box.querySelector("[data-shell-open]");
const leave = box.querySelector("[data-shell-close]");
const told = box.querySelector("[data-shell-said]");
const reader = box.querySelector("[data-shell-reader]");
const encoder = new TextEncoder();
let terminal = null;
let socket = null;
let worker = "";
let typed = []; // chunks that wait for their turn
let inFlight = 0;
let ended = null;

const WORDS = {
  exited: () => gettext("The shell has ended."),
  broke_off: ({ why }) => said(gettext("The shell has ended: {why}"), { why }),
  not_running: () => said(gettext("{worker} does not run, so there is nothing to open a shell in."), { worker }),
  forbidden: ({ why }) => said(gettext("The cluster does not let you open a shell there: {why}"), { why }),
  refused: ({ why }) => said(gettext("The shell could not be opened: {why}"), { why }),
  too_many: ({ why }) => said(gettext("You have {count} shells open, and may have no more. Close one of them first."), { count: why }),
  idle: () => {
    const minutes = Number(box.dataset.idle);
    return said(ngettext("Closed: for {minutes} minute there was no key and no output.", "Closed: for {minutes} minutes there was no key and no output.", minutes), { minutes });
  },
  no_right: () => gettext("Closed: you may not open a shell in this job any more."),
  session_over: () => gettext("Closed: you are signed out. Reload to sign in again."),
  worker_ended: () => gettext("Closed: the worker has ended."),
  unsure: () => gettext("Closed: the portal could not find out whether you still may have it."),
  too_much: () => gettext("Closed: more was typed or pasted than the program reads."),
  lost: () => gettext("The connection broke off, and the shell was closed with it."),
  never: () => gettext("The shell could not be opened: the portal did not answer, or you may not open one here."),
};

function open() {
  if (socket) return;
  worker = box.querySelector("[data-shell-worker]")?.value ?? "";
  if (!worker) {
    told.textContent = gettext("No worker runs now, so there is nothing to open a shell in.");
    return;
  }
  terminal ||= makeTerminal();
  terminal.reset();
  ended = null;
  typed = [];
  inFlight = 0;
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const mine = new WebSocket(`${scheme}://${location.host}/ws/jobs/${box.dataset.shell}/shell/?worker=${encodeURIComponent(worker)}`);
  mine.binaryType = "arraybuffer";
  socket = mine;
  let accepted = false;
  say("opening", said(gettext("Opening a shell in {worker} …"), { worker }));
  mine.addEventListener("open", () => {
    accepted = true;
  });
  mine.addEventListener("message", ({ data }) => {
    if (typeof data === "string") obey(JSON.parse(data));
    else draw(mine, new Uint8Array(data));
  });
  mine.addEventListener("close", () => {
    if (mine !== socket) return;
    socket = null;
    const how = ended ?? { ended: accepted ? "lost" : "never" };
    say("closed", (WORDS[how.ended] ?? WORDS.lost)(how));
    const hadFocus = place.contains(document.activeElement);
    button.textContent = gettext("Open again");
    if (hadFocus) button.focus();
  });
}

function obey(frame) {
  if ("opened" in frame) {
    say("open", said(gettext("Connected to {worker}."), { worker: frame.opened }));
    tellSize();
    terminal.focus();
  } else if ("taken" in frame) {
    inFlight -= frame.taken;
    pump();
  } else if ("closing" in frame) {
    say("open", said(ngettext("Without a key or output it closes in {seconds} second.", "Without a key or output it closes in {seconds} seconds.", frame.closing), { seconds: frame.closing }));
  } else if ("ended" in frame) ended = frame;
}

function draw(mine, bytes) {
  if (mine !== socket) return;
  // told when it is on the screen: a program that writes faster waits for us
  terminal.write(bytes, () => mine.readyState === WebSocket.OPEN && mine.send(JSON.stringify({ drawn: bytes.length })));
}

function type(bytes) {
  if (box.dataset.state !== "open") return;
  for (let start = 0; start < bytes.length; start += CHUNK) typed.push(bytes.subarray(start, start + CHUNK));
  pump();
}

function pump() {
  while (typed.length && socket?.readyState === WebSocket.OPEN && inFlight + typed[0].length <= IN_FLIGHT) {
    const chunk = typed.shift();
    inFlight += chunk.length;
    socket.send(chunk);
  }
}

function tellSize() {
  if (box.dataset.state === "open" && socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ size: [terminal.cols, terminal.rows] }));
}

function makeTerminal() {
  const made = openTerminal(place, { screenReaderMode: reader.checked });
  made.onData((text) => type(encoder.encode(text)));
  made.onBinary((text) => type(Uint8Array.from(text, (char) => char.charCodeAt(0))));
  made.onResize(tellSize);
  made.attachCustomKeyEventHandler((event) => {
    if (!event.ctrlKey || !event.shiftKey || event.isComposing) return true;
    if (event.code === "KeyL") {
      // Tab belongs to the shell, so the keyboard needs another way out
      event.preventDefault();
      if (event.type === "keydown") (leave.hidden ? button : leave).focus();
      return false;
    }
    if (event.code === "KeyC" && made.hasSelection()) {
      event.preventDefault();
      if (event.type === "keydown") write(made.getSelection()).then(() => made.focus(), (error) => toast(said(gettext("It could not be copied: {why}"), { why: error.message })));
      return false;
    }
    return true;
  });
  return made;
}

function say(state, words) {
  box.dataset.state = state;
  told.textContent = words;
  button.hidden = state !== "closed";
  leave.hidden = state === "closed";
}

button.addEventListener("click", open);
button.disabled = false; // from now on somebody listens
leave.addEventListener("click", () => {
  if (!socket) return;
  ended ||= { ended: "exited" };
  socket.close();
});
reader.addEventListener("change", () => {
  if (terminal) terminal.options.screenReaderMode = reader.checked;
});
for (const key of box.querySelectorAll("[data-shell-key]")) {
  key.addEventListener("click", () => {
    type(encoder.encode(KEYS[key.dataset.shellKey]));
    terminal.focus();
  });
}
// the list of workers is drawn anew when one of them changes
document.addEventListener("refreshed", () => {
  const list = box.querySelector("[data-shell-worker]");
  if (list && worker && [...list.options].some((one) => one.value === worker)) list.value = worker;
});
