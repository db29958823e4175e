// Writes the snapshot from which the pages' Python starts (see book/_static/live/snapshot.js).
//
//     node make.mjs RUNTIME PACKAGES OUTPUT
//
// RUNTIME is Pyodide's folder, PACKAGES one with the unpacked packages. Two Pythons are started. The
// first imports everything as always: this tells which libraries are needed and compiles the
// modules. The second has those libraries from the beginning. Libraries that are chosen by what a browser
// can do end in .wasm; they are not there yet when before.py runs, and are loaded by after.py.

import { Buffer } from "node:buffer";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { loadLibraries, writeFiles } from "../../_static/live/snapshot.js";

const [runtime, packages, output] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(join(runtime, name)));
const { loadPyodide } = await load("pyodide.mjs");
const { default: create } = await load("pyodide.asm.mjs");
const lock = JSON.parse(readFileSync(join(runtime, "pyodide-lock.json")));
const code = (name) => readFileSync(new URL(name, import.meta.url), "utf8");
const bare = { ...lock, packages: {} };
const PROGRAM = ["pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip"];
const SITE = "/lib/python3.14/site-packages/";

const found = readdirSync(packages, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
  .toSorted()
  .map((file) => ({ path: SITE + file.slice(packages.length).replace(/^\//, ""), bytes: readFileSync(file) }));

// Starts Python with files, and with libraries loaded before it.
async function start(files, libraries) {
  const started = { table: 0 };
  let constructors = [];
  started.python = await loadPyodide({
    indexURL: runtime,
    lockFileContents: bare,
    _makeSnapshot: true,
    env: { MPLBACKEND: "module://page_backend" },
    createPyodideModule: (settings) => {
      settings.preRun.push((module) => {
        started.module = module;
        constructors = loadLibraries(module, libraries);
        started.table = module.wasmTable.length;
      });
      return create(settings);
    },
  });
  const { module, python } = started;
  for (const construct of constructors) construct(module);
  writeFiles(module, files.filter(({ path }) => !path.endsWith(".wasm")).map(({ path, bytes }) => ({ path, bytes: bytes.slice() })));
  python.runPython("import importlib; importlib.invalidate_caches()");
  python.runPython(code("before.py"), { globals: python.toPy({}) });
  return started;
}

// What the first Python has compiled, and the libraries it has loaded.
const first = await start(found, []);
const compiled = [];
const walk = (folder) => {
  for (const name of first.module.FS.readdir(folder)) {
    const path = `${folder}${name}`;
    if (name.startsWith(".")) continue;
    if (first.module.FS.isDir(first.module.FS.stat(path).mode)) walk(`${path}/`);
    else if (name.endsWith(".pyc")) compiled.push({ path, bytes: first.module.FS.readFile(path) });
  }
};
walk(SITE);
const opened = Object.keys(first.module.LDSO.loadedLibsByName).filter((path) => path.endsWith(".so"));
const libraries = found.filter(({ path }) => opened.includes(path));

const { python, module, table } = await start([...found, ...compiled],
  libraries.map(({ path, bytes }) => ({ path, compiled: new WebAssembly.Module(bytes) })));
for (let i = table; i < module.wasmTable.length; i++) {
  if (module.wasmTable.get(i)) throw new Error(`function ${i} is not of a library`);
}
for (const { fd, path } of module.FS.streams.filter(Boolean)) {
  if (fd > 2) throw new Error(`${path} is still open`);
}
clean(module);
const snapshot = python.makeMemorySnapshot();
const offset = new Uint32Array(snapshot.buffer, 0, 2)[1];

// Overwrites what is free in memory: it would only make the file larger.
function clean({ _malloc, _free, HEAPU8 }) {
  const taken = [];
  for (let size = 1 << 24; size >= 64; size >>= 1) {
    for (let free = HEAPU8.length; free > 0; free -= size) {
      const at = _malloc(size);
      if (!at || at + size > HEAPU8.length) break;
      HEAPU8.fill(0, at, at + size);
      taken.push(at);
    }
  }
  taken.forEach(_free);
}

const files = found.filter(({ path }) => !path.endsWith(".so") || !opened.includes(path));
const lengths = (list) => list.map(({ path, bytes }) => [path, bytes.length]);
const handles = Object.entries(module.LDSO.loadedLibsByHandle)
  .filter(([, library]) => opened.includes(library.name))
  .map(([address, library]) => [address, library.name]);
const program = PROGRAM.map((path) => ({ path, bytes: readFileSync(join(runtime, path)) }));
const header = new TextEncoder().encode(JSON.stringify({
  lock: bare,
  after: code("after.py"),
  table,
  runtime: lengths(program),
  state: offset,
  memory: snapshot.length - offset,
  libraries: lengths(libraries),
  files: lengths(files),
  handles: Object.fromEntries(handles),
}));
const length = new Uint8Array(new Uint32Array([header.length]).buffer);
const bytes = (list) => list.map((one) => one.bytes);
const parts = [length, header, ...bytes(program), snapshot.subarray(0, offset)];
parts.push(...bytes(libraries), ...bytes(files), snapshot.subarray(offset));
writeFileSync(output, gzipSync(Buffer.concat(parts), { level: 9 }));
process.exit(0); // Pyodide would wait for more
