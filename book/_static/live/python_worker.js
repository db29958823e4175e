// The page's Python: Pyodide in a worker, so that the page stays responsive while a cell runs.
//
// The page sends {type: "start", runtime, files, wheel, snapshot, bytes, patience, parts, interrupt, word} once and then
// {type: "run", id, source, title, alt, prefix, force, asserts, steps, above} for each cell, one at a time, {type: "mount",
// folder, files} for files that Python shall see, [{name, data: Blob}], and for a file of the reader's {type: "takeFile",
// id, name, given, encoding, least, blob}, "readFile" or "removeFile". It receives
// {type: "progress", text, bytes, total}, {type: "ready", times, word}, {type: "message", id, ...} as live_runner.py
// describes them, and {type: "done", id, ok} or {type: "missing", id, names, needed}: what no cell
// has defined yet, and which of the cells above do. {type: "broken", text, load} ends it all; `load` says that
// only the loading has failed, which may go better another time.

import { Downloads } from "./downloads.js";
import { restore, script } from "./snapshot.js";

const OURS = ["live_runner.py", "page_backend.py", "inline_svg.py", "cell_names.py", "plain_errors.py", "shape_errors.py", "own_lines.py", "step_through.py"];
const PAUSE = 200; // ms between two questions
const INTERRUPT = 2; // SIGINT, as Pyodide wants it
const times = {};
let python, cells, runner, current = 0;

const sendMessage = (json) => postMessage({ type: "message", id: current, ...JSON.parse(json) });
const markTime = (step) => { times[step] = performance.now() / 1000; };

async function start(settings) {
  const text = "Loading Python, NumPy and matplotlib";
  let said = 0;
  const downloads = new Downloads({
    patience: settings.patience,
    total: settings.bytes,
    onbytes: (bytes, total) => {
      if (bytes < total && performance.now() - said < 100) return;
      said = performance.now();
      postMessage({ type: "progress", text, bytes, total });
    },
  });
  postMessage({ type: "progress", text });
  // Pyodide tells nobody of what it could not fetch
  await Promise.race([launch(settings, downloads), downloads.failure]).catch((error) => {
    throw Object.assign(error, { load: true });
  });
  if (settings.parts) {
    const folder = python.runPython("import os; os.getcwd()"); // where Python looks for it
    python.FS.writeFile(`${folder}/my_parts.py`, settings.parts);
  }
  const asks = !settings.interrupt && settings.word && answerTo(settings.word) === "go";
  if (settings.interrupt) python.setInterruptBuffer(settings.interrupt);
  if (asks) python.setInterruptBuffer(new Asking(settings.word));
  cells = python.pyimport("live_runner");
  runner = cells.start(sendMessage, python.pyimport("inline_svg").inline_svg);
  markTime("cells");
  return { word: asks ? settings.word : null };
}

// What the service worker answers to a word, while Python waits; "" if none does.
function answerTo(word) {
  const request = new XMLHttpRequest();
  request.open("GET", new URL(`stop?${word}`, import.meta.url), false);
  try {
    request.send();
    return request.responseText;
  } catch {
    return "";
  }
}

// Stands in for the byte that a page without shared memory cannot share; Python reads it while it runs.
class Asking {
  constructor(word) {
    Object.assign(this, { word, last: 0 });
  }

  get 0() {
    const now = performance.now();
    if (now - this.last < PAUSE) return 0;
    this.last = now;
    return answerTo(`${this.word}-${current}`) === "stop" ? INTERRUPT : 0;
  }

  set 0(read) {} // it was told once
}

async function launch(settings, downloads) {
  globalThis.fetch = downloads.fetch; // Pyodide's too
  python = settings.snapshot && await fromSnapshot(settings, downloads) || await fromPackages(settings);
}

// Python as it was after its imports.
async function fromSnapshot({ snapshot }, downloads) {
  try {
    return await restore((await fetch(snapshot)).body, markTime);
  } catch (error) {
    if (downloads.failed) throw error;
    console.warn(`Python starts without its snapshot: ${error?.message ?? error}`);
    await deleteFromCaches(snapshot).catch(() => {});
    return null;
  }
}

// What service-worker.js has kept and does not serve is fetched the next time.
async function deleteFromCaches(address) {
  const names = await caches.keys();
  await Promise.all(names.map(async (name) => (await caches.open(name)).delete(address)));
}

// Python that has imported nothing yet.
async function fromPackages({ runtime, files, wheel }) {
  // what is imported cannot be watched: it is fetched first
  const scripts = ["pyodide.mjs", "pyodide.asm.mjs"].map(async (name) => (
    script(await (await fetch(runtime + name)).text())
  ));
  const ours = [wheel, ...OURS.map((name) => files + name)].map(async (url) => (
    new Uint8Array(await (await fetch(url)).arrayBuffer())
  ));
  const [{ loadPyodide }, { default: createPyodideModule }] = await Promise.all(scripts);
  const packages = ["numpy", "matplotlib"];
  const started = await loadPyodide({ indexURL: runtime, createPyodideModule, packages, stdout: () => {} });
  const [archive, ...sources] = await Promise.all(ours);
  const extractDir = started.runPython("import sysconfig; sysconfig.get_path('purelib')");
  started.unpackArchive(archive, "wheel", { extractDir });
  OURS.forEach((name, i) => started.FS.writeFile(`${extractDir}/${name}`, sources[i]));
  started.runPython("import importlib; importlib.invalidate_caches()");
  return started;
}

function plain(list) {
  const values = list.toJs();
  list.destroy();
  return values;
}

function run(cell) {
  const { id, source } = cell;
  current = id;
  const names = cell.force ? [] : plain(runner.missing_names(source));
  if (names.length) {
    const needed = plain(cells.needed_cells(python.toPy(cell.above), python.toPy(names)));
    return postMessage({ type: "missing", id, names, needed });
  }
  postMessage({ type: "running", id, small: cell.asserts === false || runner.follows_smaller(source) });
  const ok = runner.run(source, cell.title, cell.alt, cell.prefix, cell.asserts ?? true, cell.steps ?? false);
  return postMessage({ type: "done", id, ok });
}

// Nothing is copied: Python reads the files where they are.
function mount({ folder, files }) {
  const { FS } = python;
  if (FS.analyzePath(folder).exists) FS.unmount(folder);
  else FS.mkdirTree(folder);
  FS.mount(FS.filesystems.WORKERFS, { blobs: files }, folder);
}

// Takes a file of the reader's, if it is one that the cells can read, and sends what there is to say of it.
async function takeFile({ id, blob, ...file }) {
  const size = `${(blob.size / 1e6).toFixed(1)} MB`;
  let answer = { ok: false, text: `There is no room for ${file.given}: it has ${size}.` };
  try {
    python.FS.writeFile("dropped", new Uint8Array(await blob.arrayBuffer()));
    answer = JSON.parse(cells.take_file("dropped", file.name, file.given, file.encoding, file.least));
  } catch (error) {
    console.warn(error);
  }
  postMessage({ type: "done", id, ...answer });
}

function readFile({ id, name }) {
  const { exists } = python.FS.analyzePath(name);
  postMessage({ type: "done", id, ok: exists, bytes: exists ? python.FS.readFile(name) : null });
}

function removeFile({ id, name }) {
  if (python.FS.analyzePath(name).exists) python.FS.unlink(name);
  postMessage({ type: "done", id, ok: true });
}

let last = Promise.resolve();
const handlers = { start, mount, run, takeFile, readFile, removeFile };
onmessage = ({ data }) => {
  last = last.then(() => handlers[data.type](data)).then(
    (begun) => data.type === "start" && postMessage({ type: "ready", times, ...begun }),
    (error) => postMessage({ type: "broken", id: data.id, text: String(error?.message ?? error), load: error?.load }),
  );
};
