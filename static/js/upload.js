// Code on its way: files, a folder or a zip are sent when they are chosen, so that reload and errors elsewhere keep them.
// Until they have arrived they stay in the field, and go with the form as they would without JavaScript.
import { showError } from "./errors.js";
import { tokenOf } from "./sending.js";
import { gettext, ngettext, said } from "./words.js";

let latest = 0;

export function startUpload(form, changed) {
  const input = form.querySelector('input[name="code_files"]');
  const place = form.querySelector("[data-file-list]");
  if (!input || !place) return;
  const { paths, upload_sha256: digest, upload_label: label } = form.elements;
  const tell = (words) => place.replaceChildren(...(words ? [Object.assign(document.createElement("p"), { textContent: words })] : []));
  const take = async (files, names) => {
    paths.value = JSON.stringify(names);
    digest.value = label.value = "";
    showError(form, "code_files", []);
    form.querySelector("[data-upload-kept]")?.remove();
    if (!files.length) {
      changed();
      return tell("");
    }
    const mine = (latest += 1);
    const words = { files: files.length, size: size(files) };
    const told = (one, many) => said(ngettext(one, many, files.length), words);
    tell(told("{files} file, {size}: being sent", "{files} files, {size}: being sent"));
    const sent = await send(form, files, names);
    if (mine !== latest) return; // other files were chosen meanwhile
    if (sent.error) {
      // once, at the field: the outlook and the summary lead here
      tell("");
      showError(form, "code_files", [sent.error]);
      return changed();
    }
    if (!sent.sha256) return tell(told("{files} file, {size}: sent with the form", "{files} files, {size}: sent with the form"));
    digest.value = sent.sha256;
    const some = sent.paths.join(", ") + (sent.files > sent.paths.length ? ", …" : "");
    const kept = ngettext("{files} file ({some}), sha256 {digest}", "{files} files ({some}), sha256 {digest}", sent.files);
    label.value = said(kept, { files: sent.files, some, digest: sent.sha256.slice(0, 12) });
    input.value = paths.value = "";
    form.elements.written.value = "form";
    tell(said(gettext("{files}: kept on the portal"), { files: label.value }));
    changed();
  };
  input.addEventListener("change", () => {
    const files = [...input.files];
    take(files, inside(files.map((file) => file.webkitRelativePath || file.name)));
  });
  form.addEventListener("filled", () => tell(label.value)); // a draft came back, or the YAML names other code
  form.querySelector("[data-folder]")?.addEventListener("click", () => {
    input.webkitdirectory = true;
    input.click();
    input.webkitdirectory = false;
  });
  const zone = form.querySelector("[data-drop]");
  zone?.addEventListener("dragover", (event) => event.preventDefault());
  zone?.addEventListener("drop", async (event) => {
    event.preventDefault();
    let found;
    try {
      found = await filesOf(event.dataTransfer);
    } catch (error) {
      // moved or taken away while it was dropped: the browser says so in its own words
      showError(form, "code_files", [said(gettext("What was dropped could not be read: {why}"), { why: error.message })]);
      return changed();
    }
    if (!found.length) return; // a text or a link was dropped
    const box = new DataTransfer();
    for (const { file } of found) box.items.add(file);
    input.files = box.files;
    take([...input.files], inside(found.map(({ path }) => path)));
  });
}

function inside(names) {
  // of one folder its content is the code: commands start in it, as if one stood in that folder
  const top = names.length ? names[0].slice(0, names[0].indexOf("/") + 1) : "";
  return top && names.every((name) => name.startsWith(top)) ? names.map((name) => name.slice(top.length)) : names;
}

async function send(form, files, names) {
  const body = new FormData();
  files.forEach((file, index) => {
    body.append("file", file);
    body.append("path", names[index]);
  });
  try {
    const headers = { "X-CSRFToken": tokenOf(form), Accept: "application/json" };
    const answer = await fetch(form.dataset.uploadUrl, { method: "POST", body, headers, credentials: "same-origin" });
    const document = await answer.json();
    return answer.ok ? document : { error: document.error?.message };
  } catch {
    return {}; // the portal is away: the form takes them along when it is sent
  }
}

async function filesOf(transfer) {
  const found = [];
  // all of them at once: after the first pause the browser has forgotten what was dropped
  const items = [...transfer.items].filter((item) => item.kind === "file");
  const dropped = items.map((item) => ({ entry: item.webkitGetAsEntry(), file: item.getAsFile() }));
  for (const { entry, file } of dropped) {
    if (entry) await walk(entry, "", found);
    else if (file) found.push({ file, path: file.name });
  }
  return found;
}

async function walk(entry, base, found) {
  const path = `${base}${entry.name}`;
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    found.push({ file, path });
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return;
    for (const inner of some) await walk(inner, `${path}/`, found);
  }
}

function size(files) {
  const bytes = files.reduce((sum, file) => sum + file.size, 0);
  return bytes < 2 ** 20 ? `${Math.ceil(bytes / 1024)} KiB` : `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}
