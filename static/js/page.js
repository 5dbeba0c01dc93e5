// What every page gets. Its template adds the modules of its own parts: the browser holds a page's load back until they have run, so
// nobody types or clicks into a page that does not listen yet.
import { startClocks } from "./time.js";
import { startConfirm } from "./confirm.js";
import { startCopy } from "./copy.js";
import { list, startEnds } from "./ends.js";
import { startKeys } from "./keys.js";
import { startBell } from "./notices.js";
import { startVanishing } from "./toast.js";
import { startTheme } from "./toggle.js";

startTheme();
startClocks();
startConfirm();
startCopy();
startKeys();
startVanishing();
startBell(list);
startEnds();

// on a phone rows of links scroll: the one that is shown now is brought into sight
for (const current of document.querySelectorAll(".tabs [aria-current], .rail [aria-current]")) {
  current.scrollIntoView({ block: "nearest", inline: "center" });
}
