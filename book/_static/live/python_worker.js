// The page's Python: Pyodide in a worker, so that the page stays responsive while a cell runs.
//
// The page sends {type: "start", runtime, files, wheel, packages, interrupt} once and then
// {type: "run", id, source, title, alt, prefix, force, asserts, above} for each cell, one at a time. It receives
// {type: "progress", text}, {type: "ready"}, {type: "message", id, ...} as live_runner.py
// describes them, and {type: "done", id, ok} or {type: "missing", id, names,
// needed}: what no cell has defined yet, and which of the cells above do.

const DRAWS = /\b(plots|matplotlib|pyplot)\b/; // what makes a cell need matplotlib
const OURS = ["live_runner.py", "page_backend.py", "inline_svg.py"];
const quiet = { messageCallback: () => {}, errorCallback: () => {} };
let python, cells, runner, loaded = false, current = 0;

const say = (message) => postMessage(message);
const progress = (text) => say({ type: "progress", text });
const report = (json) => say({ type: "message", id: current, ...JSON.parse(json) });

async function textAt(url) {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url}: ${answer.status}`);
  return answer.text();
}

async function start({ runtime, files, wheel, draws, interrupt }) {
  progress("Loading Python");
  const [{ loadPyodide }, wheelAnswer, ...sources] = await Promise.all([
    import(runtime + "pyodide.mjs"),
    fetch(wheel),
    ...OURS.map((name) => textAt(files + name)),
  ]);
  if (!wheelAnswer.ok) throw new Error(`${wheel}: ${wheelAnswer.status}`);
  // packages given here are fetched while the interpreter still compiles
  python = await loadPyodide({
    indexURL: runtime,
    packages: draws ? ["numpy", "matplotlib"] : ["numpy"],
    stdout: () => progress("Loading NumPy" + (draws ? " and matplotlib" : "")),
  });
  loaded = draws;
  progress("Loading the package");
  const extractDir = python.runPython("import sysconfig; sysconfig.get_path('purelib')");
  python.unpackArchive(await wheelAnswer.arrayBuffer(), "wheel", { extractDir });
  OURS.forEach((name, i) => python.FS.writeFile(`${extractDir}/${name}`, sources[i]));
  python.runPython("import importlib; importlib.invalidate_caches()");
  if (interrupt) python.setInterruptBuffer(interrupt);
  cells = python.pyimport("live_runner");
  const svg = python.pyimport("inline_svg");
  runner = cells.start(report, svg.inline_svg);
}

function plain(list) {
  const values = list.toJs();
  list.destroy();
  return values;
}

async function run({ id, source, title, alt, prefix, force, asserts, above }) {
  current = id;
  if (!force) {
    const names = plain(runner.missing_names(source));
    const needed = names.length ? plain(cells.needed_cells(python.toPy(above), python.toPy(names))) : [];
    if (names.length) return say({ type: "missing", id, names, needed });
  }
  if (!loaded && DRAWS.test(source)) {
    progress("Loading matplotlib");
    await python.loadPackage("matplotlib", quiet);
    loaded = true;
  }
  say({ type: "running", id, small: asserts === false || runner.follows_smaller(source) });
  say({ type: "done", id, ok: runner.run(source, title, alt, prefix, asserts ?? true) });
}

let turn = Promise.resolve();
onmessage = ({ data }) => {
  const act = data.type === "start" ? start : run;
  turn = turn.then(() => act(data)).then(
    () => data.type === "start" && say({ type: "ready" }),
    (error) => say({ type: "broken", id: data.id, text: String(error?.message ?? error) }),
  );
};
