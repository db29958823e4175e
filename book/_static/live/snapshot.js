// Python as it is after its imports, in one file: its program and its memory, and what goes with
// them. book/_runtime/snapshot/make.mjs writes it, the page's worker starts from it.
//
// The file is gzipped: four bytes with the length of a JSON header, the header, and then, one after
// the other, what the header gives the lengths of:
//
//   runtime    [[name, length], ...] files of Pyodide
//   state      what Pyodide remembers of JavaScript's objects
//   libraries  [[path, length], ...] in the order in which they are loaded
//   files      [[path, length], ...] that Python may still want to read
//   memory     all of it
//
// and besides `lock`, a lock file, `table`, the number of functions once the libraries are loaded,
// `handles`, {address: path} of the libraries that Python has opened, and `after`, code that is run
// in the end. Memory is full of addresses. They hold because each library is loaded at the same place:
// before Python, in the same order.

const WASM = { headers: { "Content-Type": "application/wasm" } };

// Loads libraries into a module whose Python has not started yet; returns what they would do first.
export function loadLibraries(module, libraries) {
  // one function that some engines lack: without it the others would be at other places
  if (!trampoline(module)[0]) module.wasmTable.grow(1);
  const own = module.onPostCtors.splice(0);
  for (const { path, compiled } of libraries) {
    const library = module.newDSO(path, undefined, "loading");
    library.refcount = Infinity;
    library.global = false;
    library.exports = module.loadWebAssemblyModule(compiled, { nodelete: true }, path, {});
  }
  const constructors = module.onPostCtors.splice(0);
  module.onPostCtors.push(...own);
  return constructors;
}

// Where Python keeps the place of that function.
function trampoline({ HEAP32, __PyRuntime, __PyEM_EMSCRIPTEN_TRAMPOLINE_OFFSET }) {
  const at = (__PyRuntime + HEAP32[__PyEM_EMSCRIPTEN_TRAMPOLINE_OFFSET / 4]) / 4;
  return HEAP32.subarray(at, at + 1);
}

// Writes files of which Python has not heard.
export function writeFiles({ FS }, files) {
  for (const { path, bytes } of files) {
    FS.mkdirTree(path.slice(0, path.lastIndexOf("/")));
    FS.writeFile(path, bytes, { canOwn: true });
    FS.utime(path, 0, 0); // so that what was compiled fits its source
  }
}

// Starts Python from the file, which comes as a stream; `mark` hears the end of each step.
export async function restore(stream, mark = () => {}) {
  const parts = new Parts(stream.pipeThrough(new DecompressionStream("gzip")));
  const header = await parts.header();
  const runtime = new Map();
  for (const [name, length] of header.runtime) runtime.set(name, await parts.take(length));
  const state = await parts.take(header.state);
  mark("program");
  const rest = read(parts, header);
  let failed;
  const failure = new Promise((_, reject) => { failed = reject; });

  async function addLibraries(module) {
    loadLibraries(module, await rest.libraries);
    const count = module.wasmTable.length;
    if (count !== header.table) throw new Error(`${count} functions instead of ${header.table}`);
    module.removeRunDependency("libraries");
  }

  async function createPyodideModule(settings) {
    settings.preRun.push((module) => {
      mark("compiled");
      module.addRunDependency("libraries");
      addLibraries(module).catch(failed);
    });
    const { default: create } = await script(runtime.get("pyodide.asm.mjs"));
    const module = await Promise.race([create(settings), failure]);
    mark("libraries");
    const memory = await rest.memory;
    mark("memory");
    writeFiles(module, await rest.files);
    fill(module, memory);
    for (const [address, path] of Object.entries(header.handles)) {
      module.LDSO.loadedLibsByHandle[address] = module.LDSO.loadedLibsByName[path];
    }
    return module;
  }

  const { loadPyodide } = await script(runtime.get("pyodide.mjs"));
  const direct = globalThis.fetch;
  globalThis.fetch = async (url) => new Response(runtime.get(new URL(url).pathname.slice(1)), WASM);
  try {
    // Pyodide is given an empty memory, for it would wait for a full one before it compiles
    const options = { lockFileContents: header.lock, _loadSnapshot: state, createPyodideModule };
    const indexURL = new URL("/", globalThis.location).href;
    const python = await loadPyodide({ indexURL, ...options });
    python.runPython(header.after, { globals: python.toPy({}) });
    return python;
  } finally {
    globalThis.fetch = direct;
  }
}

export async function script(text) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  return import(address).finally(() => URL.revokeObjectURL(address));
}

function fill(module, memory) {
  const place = trampoline(module)[0];
  module.growMemory(memory.length);
  module.HEAPU8.set(memory);
  trampoline(module)[0] = place;
}

// Reads on while Pyodide compiles; each library is compiled as soon as it is there.
function read(parts, header) {
  const libraries = (async () => {
    const waiting = [];
    for (const [path, length] of header.libraries) {
      const bytes = await parts.take(length);
      waiting.push(WebAssembly.compile(bytes).then((compiled) => ({ path, compiled })));
    }
    return waiting;
  })();
  const files = libraries.then(async () => {
    const all = [];
    for (const [path, length] of header.files) all.push({ path, bytes: await parts.take(length) });
    return all;
  });
  const memory = files.then(() => parts.take(header.memory));
  for (const part of [files, memory]) part.catch(() => {}); // told by whoever waits for it first
  return { libraries: libraries.then((waiting) => Promise.all(waiting)), files, memory };
}

class Parts {
  constructor(stream) {
    this.reader = stream.getReader();
    this.rest = new Uint8Array();
  }

  async header() {
    const length = new DataView((await this.take(4)).buffer).getUint32(0, true);
    return JSON.parse(new TextDecoder().decode(await this.take(length)));
  }

  async take(length) {
    const part = new Uint8Array(length);
    for (let filled = 0; filled < length;) {
      if (!this.rest.length) {
        const { value, done } = await this.reader.read();
        if (done) throw new Error("the snapshot is cut off");
        this.rest = value;
      }
      const piece = this.rest.subarray(0, length - filled);
      part.set(piece, filled);
      filled += piece.length;
      this.rest = this.rest.subarray(piece.length);
    }
    return part;
  }
}
