// The page's Python: Pyodide in a worker, so that the page stays responsive while a cell runs.
//
// The page sends {type: "start", runtime, files, wheel, snapshot, bytes, patience, parts, interrupt} once and then
// {type: "run", id, source, title, alt, prefix, force, asserts, above} for each cell, one at a time, {type: "mount",
// folder, files} for files that Python shall see, [{name, data: Blob}], and for a file of the reader's {type: "put", id,
// name, given, encoding, least, blob}, "get" or "remove". It receives
// {type: "progress", text, bytes, total}, {type: "ready", times}, {type: "message", id, ...} as live_runner.py
// describes them, and {type: "done", id, ok} or {type: "missing", id, names, needed}: what no cell
// has defined yet, and which of the cells above do. {type: "broken", text, load} ends it all; `load` says that
// only the loading has failed, which may go better another time.

import { Downloads } from "./downloads.js";
import { restore, script } from "./snapshot.js";

const OURS = ["live_runner.py", "page_backend.py", "inline_svg.py", "cell_names.py", "plain_errors.py"];
const times = {};
let python, cells, runner, current = 0;

const say = (message) => postMessage(message);
const report = (json) => say({ type: "message", id: current, ...JSON.parse(json) });
const mark = (step) => { times[step] = performance.now() / 1000; };

async function start(settings) {
  const text = "Loading Python, NumPy and matplotlib";
  let said = 0;
  const downloads = new Downloads({
    patience: settings.patience,
    total: settings.bytes,
    onbytes: (bytes, total) => {
      if (bytes < total && performance.now() - said < 100) return;
      said = performance.now();
      say({ type: "progress", text, bytes, total });
    },
  });
  say({ type: "progress", text });
  // Pyodide tells nobody of what it could not fetch
  await Promise.race([launch(settings, downloads), downloads.failure]).catch((error) => {
    throw Object.assign(error, { load: true });
  });
  if (settings.parts) {
    const folder = python.runPython("import os; os.getcwd()"); // where Python looks for it
    python.FS.writeFile(`${folder}/my_parts.py`, settings.parts);
  }
  if (settings.interrupt) python.setInterruptBuffer(settings.interrupt);
  cells = python.pyimport("live_runner");
  runner = cells.start(report, python.pyimport("inline_svg").inline_svg);
  mark("cells");
}

async function launch(settings, downloads) {
  globalThis.fetch = downloads.fetch; // Pyodide's too
  python = settings.snapshot && await fromSnapshot(settings, downloads) || await fromPackages(settings);
}

// Python as it was after its imports.
async function fromSnapshot({ snapshot }, downloads) {
  try {
    return await restore((await fetch(snapshot)).body, mark);
  } catch (error) {
    if (downloads.failed) throw error;
    console.warn(`Python starts without its snapshot: ${error?.message ?? error}`);
    await giveBack(snapshot).catch(() => {});
    return null;
  }
}

// What service-worker.js has kept and does not serve is fetched the next time.
async function giveBack(address) {
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

function run({ id, source, title, alt, prefix, force, asserts, above }) {
  current = id;
  if (!force) {
    const names = plain(runner.missing_names(source));
    const needed = names.length ? plain(cells.needed_cells(python.toPy(above), python.toPy(names))) : [];
    if (names.length) return say({ type: "missing", id, names, needed });
  }
  say({ type: "running", id, small: asserts === false || runner.follows_smaller(source) });
  say({ type: "done", id, ok: runner.run(source, title, alt, prefix, asserts ?? true) });
}

// Nothing is copied: Python reads the files where they are.
function mount({ folder, files }) {
  const { FS } = python;
  if (FS.analyzePath(folder).exists) FS.unmount(folder);
  else FS.mkdirTree(folder);
  FS.mount(FS.filesystems.WORKERFS, { blobs: files }, folder);
}

// Gives Python a file of the reader's, if it is one that the cells can read; what there is to say of it.
async function put({ id, name, given, encoding, least, blob }) {
  let told = { ok: false, text: `There is no room for ${given}: it has ${(blob.size / 1e6).toFixed(1)} MB.` };
  try {
    python.FS.writeFile("dropped", new Uint8Array(await blob.arrayBuffer()));
    told = JSON.parse(cells.take_file("dropped", name, given, encoding, least));
  } catch (error) {
    console.warn(error);
  }
  say({ type: "done", id, ...told });
}

function get({ id, name }) {
  const { exists } = python.FS.analyzePath(name);
  say({ type: "done", id, ok: exists, bytes: exists ? python.FS.readFile(name) : null });
}

function remove({ id, name }) {
  if (python.FS.analyzePath(name).exists) python.FS.unlink(name);
  say({ type: "done", id, ok: true });
}

let turn = Promise.resolve();
const acts = { start, mount, run, put, get, remove };
onmessage = ({ data }) => {
  turn = turn.then(() => acts[data.type](data)).then(
    () => data.type === "start" && say({ type: "ready", times }),
    (error) => say({ type: "broken", id: data.id, text: String(error?.message ?? error), load: error?.load }),
  );
};
